"""Settings are listed, described and changed by name, those of groups within beside the others."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from everlearn.core.settings import (
    RENAMED,
    change_settings,
    describe_settings,
    find_name,
    list_settings,
    setting,
)
from everlearn.core.validate import check_int
from everlearn.training.schedule import Schedule


@dataclass(frozen=True)
class Engine:
    power: int = setting(7, "how strong")
    fuel: str = setting("wood", "what it burns")

    def __post_init__(self) -> None:
        check_int(self.power, "power", 0, 9)


@dataclass(frozen=True)
class Cart:
    wheels: int = setting(4, "how many wheels")
    engine: Engine = Engine(power=5)
    name: str | None = setting(None, "how it is called")


@dataclass(frozen=True)
class Wagon:
    covered: bool = setting(False, "whether it has a roof")


def test_settings_are_listed_in_order_with_those_of_groups():
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


def test_every_setting_of_a_schedule_is_described():
    help_texts = describe_settings(Schedule())
    assert list(help_texts) == list(list_settings(Schedule())) != []
    assert all(help_texts.values())


def test_changes_reach_nested_groups_and_leave_the_rest():
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


@dataclass(frozen=True)
class Truck:
    weight_decay: float = setting(0.1, "of the wheels")
    learning_rate: float = setting(0.1, "of the driver")
    temperature: float = setting(0.1, "of the engine")
    snapshot_steps: int = setting(1, "of the dashboard camera")


def test_an_old_name_is_refused_with_the_new_one():
    with pytest.raises(ValueError, match="'decay' is now called 'weight_decay'; use"):
        change_settings(Truck(), {"decay": 0.5}, "truck")


def test_an_old_name_with_two_new_ones_lists_both():
    with pytest.raises(ValueError, match="now called 'temperature' or 'snapshot_steps'"):
        change_settings(Truck(), {"tau": 1}, "truck")


def test_an_old_name_is_unknown_where_no_new_one_exists():
    with pytest.raises(ValueError, match=r"unknown settings \['decay'\] of cart"):
        change_settings(Cart(), {"decay": 0.5}, "cart")


def test_lr_is_short_for_learning_rate():
    assert change_settings(Truck(), {"lr": 0.5}, "truck") == Truck(learning_rate=0.5)
    with pytest.raises(ValueError, match=r"unknown settings \['lr'\] of cart"):
        change_settings(Cart(), {"lr": 0.5}, "cart")
    with pytest.raises(ValueError, match="given twice, found lr, learning_rate"):
        change_settings(Truck(), {"lr": 0.5, "learning_rate": 0.5}, "truck")


def test_options_are_refused_as_they_are_typed():
    with pytest.raises(ValueError, match="--decay is now called --weight_decay"):
        find_name("decay", ["weight_decay"], "--{}".format)


def test_no_renamed_setting_has_itself_as_a_new_name():
    assert not any(old in new for old, new in RENAMED.items())
