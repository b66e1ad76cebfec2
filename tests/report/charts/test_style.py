"""Colours: each method has its own, distinct from the background and from the others."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from everlearn.methods import METHODS
from everlearn.report.charts.style import COLORS, FONT, LINE_COLORS, line_styles, stride, text_width

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


@pytest.mark.parametrize("hue", LINE_COLORS)
@pytest.mark.parametrize("side", ["light", "dark"])
def test_line_colours_contrast_with_the_background(hue, side):
    assert _contrast(getattr(COLORS[hue], side), getattr(COLORS["background"], side)) >= 3


@pytest.mark.parametrize("name", ["text", "muted", "blue"])
@pytest.mark.parametrize("side", ["light", "dark"])
def test_text_and_links_are_readable(name, side):
    """WCAG 2.2, level AA, requires a contrast of 4.5."""
    assert _contrast(getattr(COLORS[name], side), getattr(COLORS["background"], side)) >= 4.5


@pytest.mark.parametrize("sight", SIGHTS)
@pytest.mark.parametrize("side", ["light", "dark"])
def test_line_colours_are_distinguishable(sight, side):
    seen = [_lab(np.array(SIGHTS[sight]) @ _linear(getattr(COLORS[h], side))) for h in LINE_COLORS]
    assert min(np.linalg.norm(a - b) for a, b in combinations(seen, 2)) > 12


def test_the_colour_of_a_method_does_not_depend_on_the_others():
    alone = line_styles({"dcl": "dcl"})["dcl"]
    crowd = {name: name for name in ("agem", "dcl", "der", "ewc", "joint", "zz")}
    assert line_styles(crowd)["dcl"] == alone
    assert line_styles({"dcl, jitter 0.5": "dcl", "a": "a"})["dcl, jitter 0.5"] == alone


def test_all_labels_have_different_styles():
    methods = {f"m{k}": "dcl" if k < 3 else f"m{k}" for k in range(24)}
    assert len(set(line_styles(methods).values())) == 24


def test_a_method_has_the_same_style_in_every_figure():
    crowd = {name: name for name in (*METHODS, "mine", "x")}
    together = line_styles(crowd)
    for name in crowd:
        assert line_styles({name: name})[name] == together[name]


def test_methods_differ_in_colour_or_dashes():
    styles = line_styles({name: name for name in METHODS}).values()
    assert len({(style.color, style.dashes) for style in styles}) == len(METHODS)


def test_labels_of_one_method_share_its_colour_and_differ_in_their_markers():
    styles = line_styles({f"er, buffer size {k}": "er" for k in range(8)}).values()
    assert len({(style.color, style.dashes) for style in styles}) == 1
    assert len({style.marker for style in styles}) == 8


@pytest.mark.parametrize("size", [12, 14])
def test_text_is_never_wider_than_estimated(size):
    text = pytest.importorskip("matplotlib.textpath").text_to_path
    font = pytest.importorskip("matplotlib.font_manager").FontProperties(family=FONT, size=size)
    for words in (
        *METHODS,
        "dcl-plus, canvas size 64, jitter 0.25",
        "er, buffer size 20000",
        "é ≥ 95 %",
    ):
        width = text.get_text_width_height_descent(words, font, False)[0]
        assert width <= text_width(words, size) < 1.35 * width + 2


def test_the_order_of_labels_does_not_matter():
    names = ["b", "joint", "a", "c"]
    assert line_styles({n: n for n in names}) == line_styles({n: n for n in reversed(names)})


def test_strides_are_round_numbers():
    assert [stride(n, 40) for n in (0, 40, 41, 81, 500)] == [1, 1, 2, 5, 20]


def test_modes_of_one_method_differ_in_colour():
    modes = [
        f"gnr {mode}" for mode in ("none", "pr-od", "nr-od", "pr-gd", "nr-gd", "pr-rd", "nr-rd")
    ]
    contexts = [f"context {number}" for number in range(5)]
    for names in ([*modes, "ar1-star"], ["vase", "cci-vae", "beta-vae"], contexts):
        styles = line_styles({name: name for name in names})
        assert len({style.color for style in styles.values()}) == len(names)
