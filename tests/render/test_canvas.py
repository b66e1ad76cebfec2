"""Canvas: colours and sizes."""

from __future__ import annotations

import numpy as np
import pytest

from everlearn.render import Canvas, parse_color


def test_default_levels_are_those_of_the_paper():
    background, shape, mark = Canvas().levels
    assert (background.tolist(), shape.tolist(), mark.tolist()) == ([169], [[255]], [[0]])


def test_colour_names_hex_codes_and_numbers_are_equivalent():
    assert parse_color("red") == parse_color("#ff0000") == parse_color((255, 0, 0))
    assert Canvas(colors=("red",)) == Canvas(colors=[[255, 0, 0]])
    assert hash(Canvas(colors=("red",))) == hash(Canvas(colors=("#FF0000",)))


def test_grey_is_the_mean_of_the_channels():
    assert Canvas(background=(30, 60, 90)).levels.background.tolist() == [60]


def test_without_a_mark_its_levels_are_those_of_the_shape():
    levels = Canvas(mark=None, colors=("white", "red"), channels=3).levels
    assert (levels.mark == levels.shape).all()


def test_to_dict_round_trips():
    canvas = Canvas(size=32, channels=3, background="#102030", colors=("red", "blue"), mark=None)
    assert Canvas(**canvas.to_dict()) == canvas


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"size": 0}, "canvas size"),
        ({"size": -5}, "canvas size"),
        ({"size": 5000}, "canvas size"),
        ({"size": 64.0}, "canvas size"),
        ({"channels": 2}, "channels"),
        ({"channels": True}, "channels"),
        ({"background": "mauve-ish"}, "unknown colour 'mauve-ish'"),
        ({"background": (0, 0, 256)}, "unknown colour"),
        ({"background": "#12345g"}, "unknown colour"),
        ({"colors": ()}, "colors"),
        ({"colors": "white"}, "colors"),
        ({"mark": 7}, "unknown colour 7"),
        ({"dtype": "float64"}, "dtype"),
        ({"parity": "yes"}, "parity"),
    ],
)
def test_invalid_settings_are_rejected(changes, message):
    with pytest.raises((ValueError, TypeError), match=message):
        Canvas(**changes)


def test_levels_are_int32():
    assert Canvas().levels.shape.dtype == np.int32
