"""Settings are listed, described and changed by name, those of groups within beside the others."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from everlearn.border import check_whole
from everlearn.learner import Pace
from everlearn.settings import change_settings, describe_settings, list_settings, setting


@dataclass(frozen=True)
class Engine:
    power: int = setting(7, "how strong")
    fuel: str = setting("wood", "what it burns")

    def __post_init__(self) -> None:
        check_whole(self.power, "power", 0, 9)


@dataclass(frozen=True)
class Cart:
    wheels: int = setting(4, "how many wheels")
    engine: Engine = Engine(power=5)
    name: str | None = setting(None, "how it is called")


@dataclass(frozen=True)
class Wagon:
    covered: bool = setting(False, "whether it has a roof")


def test_settings_are_listed_in_their_order_with_those_within():
    assert list(list_settings(Cart()).items()) == [
        ("wheels", 4),
        ("power", 5),
        ("fuel", "wood"),
        ("name", None),
    ]


def test_every_setting_listed_is_described():
    assert describe_settings(Cart()) == {
        "wheels": "how many wheels",
        "power": "how strong",
        "fuel": "what it burns",
        "name": "how it is called",
    }


def test_every_setting_of_a_pace_is_described():
    words = describe_settings(Pace())
    assert list(words) == list(list_settings(Pace())) != []
    assert all(words.values())


def test_changes_reach_a_group_within_and_leave_the_rest():
    start = Cart(wheels=3)
    changed = change_settings(start, {"power": 9, "name": "Anna"}, "cart")
    assert changed == Cart(wheels=3, engine=Engine(power=9), name="Anna")
    assert start == Cart(wheels=3)


def test_no_changes_give_the_same_settings():
    assert change_settings(Cart(), {}, "cart") == Cart()


def test_a_setting_can_be_changed_to_none_or_zero():
    start = Cart(name="Anna")
    assert change_settings(start, {"name": None, "power": 0}, "cart") == Cart(
        engine=Engine(power=0), name=None
    )


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(ValueError, match=r"unknown settings \['doors'\] of cart") as error:
        change_settings(Cart(), {"doors": 2, "wheels": 3}, "cart")
    assert all(name in str(error.value) for name in list_settings(Cart()))


def test_a_flag_is_true_or_false():
    assert change_settings(Wagon(), {"covered": True}, "wagon") == Wagon(covered=True)
    for wrong in ("no", 1, None):
        with pytest.raises(TypeError, match=f"covered must be True or False, found {wrong!r}"):
            change_settings(Wagon(), {"covered": wrong}, "wagon")


def test_a_group_is_no_setting_of_its_own():
    with pytest.raises(ValueError, match="engine"):
        change_settings(Cart(), {"engine": Engine()}, "cart")


def test_a_changed_value_is_checked_by_its_group():
    with pytest.raises(ValueError, match=r"power must lie in 0 .. 9, found 10"):
        change_settings(Cart(), {"power": 10}, "cart")
