"""Charts: valid SVG with a description; input that would mislead is refused."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from everlearn.report import Bar, Dot, Line, draw_bars, draw_dots, draw_lines
from everlearn.report.charts.axis import axis_limits, tick_label
from everlearn.report.charts.style import COLORS

pytestmark = pytest.mark.integration

pytest.importorskip("matplotlib")

SVG = "{http://www.w3.org/2000/svg}"
RISE = np.array([0.1, 0.4, 0.9])


def _line(label: str, method: str = "er", x=(1, 10, 100), mean=RISE) -> Line:
    return Line(label, method, np.array(x), mean, mean * 0.9, mean * 1.05)


def _lines(labels=("a", "b"), **changes) -> str:
    given = {"name": "n", "x": "tasks", "y": "accuracy", "description": "what is seen"} | changes
    return draw_lines([_line(label) for label in labels], **given)


def _dots(count: int, label: str = "dot") -> list[Dot]:
    return [Dot(f"{label} {k}", "er", 10.0 ** (k % 5), (k % 4) / 4) for k in range(count)]


DRAWINGS = {
    "lines": lambda label: _lines([label, "b"]),
    "dots": lambda label: draw_dots([Dot(label, "er", 9, 1)], "n", "x", "y", "what is seen"),
    "bars": lambda label: draw_bars([Bar(label, "er", 3, 2, 4)], "n", "x", "what is seen"),
}


def _texts(svg: str) -> list[str]:
    return ["".join(text.itertext()) for text in ElementTree.fromstring(svg).iter(f"{SVG}text")]


@pytest.mark.parametrize("draw", DRAWINGS.values(), ids=DRAWINGS)
def test_a_chart_is_valid_xml_with_description_and_labels(draw):
    hostile = "<script>\"'&$x$_|</svg>"
    svg = draw(hostile)
    assert ElementTree.fromstring(svg).get("aria-label") == "what is seen"
    assert hostile in _texts(svg)


@pytest.mark.parametrize("draw", DRAWINGS.values(), ids=DRAWINGS)
def test_colours_follow_light_and_dark(draw):
    body = draw("a").split("</style>", 1)[1]
    assert re.findall(r"(?:fill|stroke): #", body) == []


def test_charts_of_one_page_share_no_id():
    both = _lines(name="one") + _lines(name="two")
    ids = re.findall(r'\bid="([^"]+)"', both)
    assert ids
    assert len(ids) == len(set(ids))


def test_a_method_has_the_same_colour_in_all_charts():
    crowd = [_line(name, name) for name in ("agem", "dcl", "er", "x", "y")]
    colour = f"var(--violet, {COLORS['violet'].light})"
    assert colour in draw_lines(crowd, "n", "x", "y", "w")
    for svg in (draw("a") for draw in DRAWINGS.values()):
        assert colour in svg


def test_lines_of_different_lengths_share_a_chart():
    lines = [_line("long"), _line("short", x=(1, 2, 5))]
    assert {"long", "short"} <= set(_texts(draw_lines(lines, "n", "x", "y", "w")))


def test_integers_have_integer_ticks_and_powers_of_ten_are_written_out():
    ticks = _texts(_lines(log=True))
    assert {"1", "2", "5", "10", "100"} <= set(ticks)
    few = draw_lines([_line("a", x=(1, 2, 3))], "n", "x", "y", "w")
    assert "1.5" not in _texts(few)


def test_fractions_are_allowed_on_the_x_axis():
    line = _line("a", x=(0.001, 0.01, 0.1))
    assert {"0.001", "0.1"} <= set(_texts(draw_lines([line], "n", "x", "y", "w", log=True)))


def test_lines_above_the_top_are_refused_unless_it_is_automatic():
    line = _line("a", mean=RISE * 50)
    with pytest.raises(ValueError, match=r"lie in 0 .. 1, found 5 .. 45; give top=None"):
        draw_lines([line], "n", "x", "y", "w")
    assert "40" in _texts(draw_lines([line], "n", "x", "y", "w", top=None))


@pytest.mark.parametrize("x", [0, -1.0])
def test_a_logarithmic_axis_refuses_numbers_up_to_zero(x):
    with pytest.raises(ValueError, match="needs numbers over 0, found"):
        draw_lines([_line("a", x=(x, 1, 2))], "n", "x", "y", "w", log=True)
    with pytest.raises(ValueError, match="needs numbers over 0, found"):
        draw_dots([Dot("a", "er", x, 1)], "n", "x", "y", "w")
    draw_dots([Dot("a", "er", x, 1)], "n", "x", "y", "w", log=False)


def test_an_empty_chart_is_refused():
    with pytest.raises(ValueError, match="needs a line"):
        draw_lines([], "n", "x", "y", "w")
    with pytest.raises(ValueError, match="needs a dot"):
        draw_dots([], "n", "x", "y", "w")
    with pytest.raises(ValueError, match="needs a bar"):
        draw_bars([], "n", "x", "w")


def test_labels_that_do_not_fit_go_to_a_legend():
    svg = draw_dots(_dots(40, "a name that is so long that few of them"), "n", "x", "y", "w")
    texts = _texts(svg)
    assert all(f"a name that is so long that few of them {k}" in texts for k in range(40))


def test_bars_show_their_values():
    bars = [Bar("a", "er", 0.25, 0.2, 0.3), Bar("b", "dcl", -0.5, -0.6, -0.4)]
    assert {"0.250", "−0.500"} <= set(_texts(draw_bars(bars, "n", "x", "w")))


def test_the_same_chart_has_the_same_bytes():
    assert _lines() == _lines()
    dots = _dots(15)
    assert draw_dots(dots, "n", "x", "y", "w") == draw_dots(dots, "n", "x", "y", "w")


def test_axis_limits_contain_zero_and_all_values():
    assert axis_limits([[1, 2], [3]]) == pytest.approx((0, 3.18))
    assert axis_limits([[-2, 2]]) == pytest.approx((-2.24, 2.24))
    assert axis_limits([[0, 0]]) == pytest.approx((0, 0.06))


def test_tick_labels_are_short():
    labels = [tick_label(v) for v in (0, 0.5, -2, 2000, 10_000, 2e6, 5e9)]
    assert labels == ["0", "0.5", "−2", "2,000", "10k", "2M", "5G"]
