"""Colours: each method has its own, and all can be told from the paper and from one another."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from everlearn.methods import METHODS
from everlearn.report import style
from everlearn.report.style import FONT, HUES, SHADES, choose_inks, stride, text_width

# Machado et al. 2009, severity 1, on linear RGB; the first is what most see.
SIGHTS = {
    "usual": np.eye(3),
    "protanopia": [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
    "deuteranopia": [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
    "tritanopia": [[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]],
}


def _linear(color: str):
    c = np.array([int(color[k : k + 2], 16) for k in (1, 3, 5)]) / 255
    return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)


def _lab(rgb):
    to_xyz = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    xyz = np.array(to_xyz) @ np.clip(rgb, 0, 1) / [0.9505, 1, 1.089]
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def _contrast(a: str, b: str) -> float:
    dark, light = sorted(float(_linear(c) @ [0.2126, 0.7152, 0.0722]) for c in (a, b))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("hue", HUES)
@pytest.mark.parametrize("side", ["light", "dark"])
def test_lines_stand_out_from_the_paper(hue, side):
    assert _contrast(getattr(SHADES[hue], side), getattr(SHADES["paper"], side)) >= 3


@pytest.mark.parametrize("name", ["ink", "faint", "blue"])
@pytest.mark.parametrize("side", ["light", "dark"])
def test_words_and_links_can_be_read(name, side):
    """4.5 is what WCAG 2.2 asks for, level AA."""
    assert _contrast(getattr(SHADES[name], side), getattr(SHADES["paper"], side)) >= 4.5


@pytest.mark.parametrize("sight", SIGHTS)
@pytest.mark.parametrize("side", ["light", "dark"])
def test_lines_can_be_told_apart(sight, side):
    seen = [_lab(np.array(SIGHTS[sight]) @ _linear(getattr(SHADES[h], side))) for h in HUES]
    assert min(np.linalg.norm(a - b) for a, b in combinations(seen, 2)) > 12


def test_a_method_keeps_its_colour_in_any_company():
    alone = choose_inks({"dcl": "dcl"})["dcl"]
    crowd = {name: name for name in ("agem", "dcl", "der", "ewc", "joint", "zz")}
    assert choose_inks(crowd)["dcl"] == alone
    assert choose_inks({"dcl, jitter 0.5": "dcl", "a": "a"})["dcl, jitter 0.5"] == alone


def test_no_two_labels_look_alike():
    methods = {f"m{k}": "dcl" if k < 3 else f"m{k}" for k in range(24)}
    assert len(set(choose_inks(methods).values())) == 24


def test_methods_look_alike_on_every_figure_of_a_page():
    crowd = {name: name for name in (*METHODS, "mine", "x")}
    together = choose_inks(crowd)
    for name in crowd:
        assert choose_inks({name: name})[name] == together[name]


def test_all_methods_can_be_told_by_colour_and_dashes():
    inks = choose_inks({name: name for name in METHODS}).values()
    assert len({(ink.color, ink.dashes) for ink in inks}) == len(METHODS)


def test_no_name_in_the_list_of_looks_is_stale():
    assert {*style._METHODS, *style._CODERS} <= METHODS.keys()


def test_labels_of_one_method_share_its_colour_and_differ_in_their_markers():
    inks = choose_inks({f"er, memory {k}": "er" for k in range(8)}).values()
    assert len({(ink.color, ink.dashes) for ink in inks}) == 1
    assert len({ink.marker for ink in inks}) == 8


@pytest.mark.parametrize("size", [12, 14])
def test_words_are_never_wider_than_assumed(size):
    text = pytest.importorskip("matplotlib.textpath").text_to_path
    font = pytest.importorskip("matplotlib.font_manager").FontProperties(family=FONT, size=size)
    for words in (
        *METHODS,
        "dcl-plus, canvas size 64, jitter 0.25",
        "er, memory 20000",
        "é ≥ 95 %",
    ):
        width = text.get_text_width_height_descent(words, font, False)[0]
        assert width <= text_width(words, size) < 1.35 * width + 2


def test_the_order_of_labels_does_not_matter():
    names = ["b", "joint", "a", "c"]
    assert choose_inks({n: n for n in names}) == choose_inks({n: n for n in reversed(names)})


def test_strides_are_round_and_leave_few():
    assert [stride(n, 40) for n in (0, 40, 41, 81, 500)] == [1, 1, 2, 5, 20]


def test_modes_of_one_method_are_told_apart_by_colour():
    for names in ((*style._MODES, "ar1-star"), style._CODERS, style._CONTEXTS):
        inks = choose_inks({name: name for name in names})
        assert len({ink.color for ink in inks.values()}) == len(names)
