"""Disentanglement against closed forms, hand calculations and codes whose numbers are known."""

from __future__ import annotations

import math
import sys

import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingRegressor

from everlearn.factors import Factors, theta
from everlearn.metrics.disentanglement import (
    beta_vae,
    dci,
    explicitness,
    factor_vae,
    information,
    measure,
    mig,
    mig_by_factor,
    modularity,
    mutual_information,
    sap,
    tabulate,
)
from everlearn.metrics.disentanglement.bins import bin_circle, bin_line
from everlearn.metrics.disentanglement.points import split
from everlearn.metrics.disentanglement.trees import concentration

pytestmark = pytest.mark.integration

NAMES = "abcd"
DISCRETE, CONTINUOUS = dict.fromkeys(NAMES, "discrete"), dict.fromkeys(NAMES, "continuous")
KEYS = {
    *("mig", "sap", "modularity", "explicitness", "disentanglement", "completeness"),
    *("informativeness", "factor_vae", "beta_vae"),
}
TREES = {"disentanglement", "completeness", "informativeness"}
TURN = 2 * math.pi


def _columns(table):
    return dict(zip(NAMES, table.T, strict=True))


def _rotation(seed, size=4):
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(size, size)))[0]


# Four independent factors of five values, and four uniform ones; 2,000 points each.
GRID = np.random.default_rng(0).integers(0, 5, (2000, 4))
LINE = np.random.default_rng(1).random((2000, 4))
# A rotation that gives all codes the same share of all factors.
ALIKE = np.array([[1, 1, 1, 1], [1, -1, 1, -1], [1, 1, -1, -1], [1, -1, -1, 1]]) / 2
NOISE = np.random.default_rng(2).normal(size=(2000, 4))


@pytest.fixture(scope="module")
def perfect():
    return measure(GRID, _columns(GRID), DISCRETE)


@pytest.fixture(scope="module")
def rotated():
    return measure(GRID @ _rotation(0), _columns(GRID), DISCRETE)


def test_s9_codes_that_are_the_factors(perfect):
    assert set(perfect) == KEYS
    assert all(perfect[name] > 0.95 for name in ("mig", "disentanglement", "completeness"))
    assert perfect["modularity"] > 0.99
    assert perfect["sap"] > 0.45
    assert sap(tabulate(GRID, _columns(GRID), CONTINUOUS)) > 0.95


def test_sap_sets_a_threshold_on_both_sides_of_a_middle_value():
    ten = (GRID[:, :2] * 2 + (GRID[:, 2:] > 2))[:900]
    points = tabulate(ten, {"a": ten[:, 0], "b": ten[:, 1]}, {"a": "discrete", "b": "discrete"})
    assert sap(points) == pytest.approx(1 - 1 / 10, abs=0.05)


def test_s10_a_rotation_of_the_factors(rotated):
    assert rotated["mig"] < 0.5
    assert rotated["disentanglement"] < 0.6
    assert rotated["informativeness"] > 0.9


def test_s11_factor_vae_and_mig_of_noise(perfect):
    noise = tabulate(NOISE, _columns(GRID), DISCRETE)
    assert perfect["factor_vae"] >= 0.99
    assert factor_vae(noise) == pytest.approx(1 / 4, abs=0.08)
    assert mig(noise) < 0.02


def test_s12_order_and_scale_of_the_codes_change_nothing():
    types = {"a": "discrete", "b": "continuous", "c": "circular", "d": "continuous"}
    factors = _columns(LINE[:600]) | {"a": GRID[:600, 0]}
    codes = np.stack([*factors.values()], axis=1) @ _rotation(0)
    found = measure(codes, factors, types)
    changed = measure(codes[:, [2, 0, 3, 1]] * [0.7, 7.0, 1.1, 123.0], factors, types)
    for name, number in found.items():
        assert changed[name] == pytest.approx(number, abs=0.02 if name in TREES else 1e-6)


def test_continuous_codes_that_are_the_factors():
    found = measure(LINE, _columns(LINE), CONTINUOUS)
    assert all(found[name] > 0.95 for name in ("mig", "disentanglement", "completeness", "sap"))
    assert all(found[name] > 0.99 for name in ("modularity", "informativeness"))
    assert found["explicitness"] > 0.9
    assert found["factor_vae"] == found["beta_vae"] == 1


def test_a_rotation_of_continuous_factors():
    found = measure(LINE @ _rotation(0), _columns(LINE), CONTINUOUS)
    assert found["mig"] < 0.5
    assert found["disentanglement"] < 0.6
    assert found["informativeness"] > 0.9


def test_continuous_factors_without_bins():
    known = tabulate(LINE[:600], _columns(LINE[:600]), CONTINUOUS)
    mixed = tabulate(LINE[:600] @ ALIKE, _columns(LINE[:600]), CONTINUOUS)
    assert mig(known, "neighbours") > 0.9
    assert mig(mixed, "neighbours") < 0.15
    assert modularity(known, "neighbours") > 0.98 > modularity(mixed, "neighbours")


def test_noise_tells_nothing_of_continuous_factors():
    found = measure(NOISE, _columns(LINE), CONTINUOUS)
    assert found["mig"] < 0.02
    assert found["sap"] < 0.02
    assert 0 <= found["informativeness"] < 0.02
    assert found["disentanglement"] < 0.05
    assert found["explicitness"] == pytest.approx(0.5, abs=0.03)
    assert found["factor_vae"] == pytest.approx(1 / 4, abs=0.08)
    assert found["beta_vae"] == pytest.approx(1 / 4, abs=0.08)


def test_mig_and_modularity_of_a_hand_example():
    # The first code is a. The second is "a or b": one point of b = 0 is told from the three others,
    # which leaves 3/4 h(1/3) of one bit, and just as much of a.
    factors = {"a": [0, 0, 1, 1], "b": [0, 1, 0, 1]}
    points = tabulate([[0, 0], [0, 1], [1, 1], [1, 1]], factors, dict.fromkeys("ab", "discrete"))
    known = 1 - 0.75 * (math.log2(3) - 2 / 3)
    assert information(points) / math.log(2) == pytest.approx(np.array([[1, 0], [known, known]]))
    assert mig_by_factor(points) == pytest.approx({"a": 1 - known, "b": known})
    assert mig(points) == pytest.approx(0.5)
    assert modularity(points) == pytest.approx(0.5)


@pytest.mark.parametrize("correlation", [0.0, 0.6, -0.9, 0.99])
def test_information_of_two_gaussian_numbers(correlation):
    a, b = np.random.default_rng(3).normal(size=(2, 2000))
    b = correlation * a + math.sqrt(1 - correlation**2) * b
    expected = -0.5 * math.log(1 - correlation**2)
    assert mutual_information(a, b) == pytest.approx(expected, abs=0.05)


def test_information_in_bins_of_two_gaussian_numbers():
    a, b = np.random.default_rng(4).normal(size=(2, 50_000))
    points = tabulate(
        np.stack([a, b], axis=1),
        {"a": a, "c": 0.6 * a + 0.8 * b},
        dict.fromkeys("ac", "continuous"),
    )
    # Bins can only lose, and so many points add less than 0.004 nats by chance.
    assert -0.5 * math.log(0.64) - 0.03 < information(points)[0, 1] < -0.5 * math.log(0.64) + 0.004


def test_information_of_a_class_and_of_an_angle_is_that_of_their_densities():
    random = np.random.default_rng(5)
    label, angle = random.integers(0, 3, 2000), random.uniform(-TURN, TURN, 2000)
    for factor, kind, means in (
        (label, "discrete", 2.0 * np.arange(3)),
        (angle, "circular", np.cos(np.arange(1000) * TURN / 1000)),
    ):
        centre = 2.0 * label if kind == "discrete" else np.cos(angle)
        code = centre + 0.5 * random.normal(size=2000)
        assert mutual_information(code, factor, kind) == pytest.approx(_told(means), abs=0.06)


def _told(means, deviation=0.5):
    """Entropy of a mixture of Gaussians less that of one: what a number tells of its part, nats."""
    x = np.linspace(means.min() - 4, means.max() + 4, 2001)
    density = np.exp(-(((x[:, None] - means) / deviation) ** 2) / 2).mean(axis=1)
    density /= deviation * math.sqrt(TURN)
    whole = -(density * np.log(density)).sum() * (x[1] - x[0])
    return whole - 0.5 * math.log(TURN * math.e * deviation**2)


def test_information_of_an_angle_does_not_depend_on_where_the_circle_is_cut():
    angle = LINE[:300, 0] * TURN
    code = np.cos(angle) + 0.1 * NOISE[:300, 0]
    expected = mutual_information(code, angle, "circular")
    for changed in (angle + 2.5, angle + TURN * GRID[:300, 0]):
        assert mutual_information(code, changed, "circular") == pytest.approx(expected, abs=1e-6)


def test_the_gap_of_gaussian_numbers_without_bins_is_that_of_squared_correlations():
    a, b = np.random.default_rng(9).normal(size=(2, 1000))
    factors = {"c": 0.28 * a + 0.96 * b, "d": 0.96 * a - 0.28 * b}
    points = tabulate(np.stack([a, b], axis=1), factors, dict.fromkeys("cd", "continuous"))
    assert mig(points, "neighbours") == pytest.approx(0.96**2 - 0.28**2, abs=0.05)


def test_information_without_bins_sees_ranks_alone_and_is_not_misled_by_the_order_of_rows():
    code, factor = LINE[:500, 0], LINE[:500, 0] + 0.2 * NOISE[:500, 0]
    assert mutual_information(np.exp(9 * code), factor) == mutual_information(code, factor)
    assert mutual_information(np.ones(500), np.arange(500)) < 0.1
    assert mutual_information(np.ones(500), np.arange(500) // 100, "discrete") < 0.1
    known = mutual_information(GRID[:500, 0], GRID[:500, 0], "discrete")
    assert known == pytest.approx(math.log(5), abs=0.02)


def test_concentration_of_a_hand_example():
    importance = np.array([[0.75, 0.25], [0.0, 1.0]])
    half = 1 + 0.75 * math.log2(0.75) + 0.25 * math.log2(0.25)
    assert concentration(importance) == pytest.approx((half + 1) / 2)
    fifth = 1 + 0.2 * math.log2(0.2) + 0.8 * math.log2(0.8)
    assert concentration(importance.T) == pytest.approx((0.75 + 1.25 * fifth) / 2)
    assert concentration(np.zeros((2, 3))) == 0


def test_trees_find_what_scikit_learn_finds_by_default():
    points = tabulate(LINE[:900] @ _rotation(0), _columns(LINE[:900]), CONTINUOUS)
    train, test = split(points, 0)
    plain = [GradientBoostingRegressor().fit(train.codes, f.values) for f in train.factors]
    importance = np.stack([model.feature_importances_ for model in plain], axis=1)
    told = [m.score(test.codes, f.values) for m, f in zip(plain, test.factors, strict=True)]
    expected = concentration(importance), concentration(importance.T), np.mean(told)
    assert dci(points) == pytest.approx(expected, abs=0.02)


def _turning(count=900):
    """An angle all around, a number, and a code of three entries that knows both."""
    random = np.random.default_rng(6)
    angle, number = random.uniform(0, TURN, count), random.random(count)
    codes = np.stack([np.cos(angle), np.sin(angle), number], axis=1)
    factors = {"orientation": angle, "x": number}
    return codes, factors, {"orientation": "circular", "x": "continuous"}


def test_an_angle_is_known_from_cosine_and_sine():
    found = measure(*_turning())
    assert found["informativeness"] > 0.98
    assert found["disentanglement"] > 0.95
    assert found["completeness"] < 0.8  # two entries share the angle
    assert found["explicitness"] > 0.9
    assert found["beta_vae"] > 0.99


def test_whole_turns_change_nothing():
    codes, factors, types = _turning(300)
    turns = np.random.default_rng(7).integers(-3, 4, 300) * TURN
    turned = factors | {"orientation": factors["orientation"] + turns}
    expected = measure(codes, factors, types)
    assert measure(codes, turned, types) == pytest.approx(expected, abs=1e-6)


def test_sap_of_an_angle_that_is_cut_open():
    # Its squared correlation with its own sine is 6 / pi^2, and none with its cosine.
    angle, x = np.arange(1000) * TURN / 1000, LINE[:1000, 0]
    points = _of_angle(angle, x, np.stack([angle, x], axis=1))
    other = np.corrcoef(angle, x)[0, 1] ** 2
    assert sap(points) == pytest.approx((6 / math.pi**2 + 1) / 2 - other, abs=0.003)


@pytest.mark.parametrize("origin", [0, 1, 2])
def test_sap_of_an_angle_is_the_same_from_any_origin(origin):
    angle, x = LINE[:1000, 1] ** 2 * TURN, LINE[:1000, 0]
    points = _of_angle(angle, x, np.stack([np.cos(angle - origin), 0 * x], axis=1))
    other = np.corrcoef(np.cos(angle - origin), x)[0, 1] ** 2
    assert sap(points) == pytest.approx((1 + other) / 2, abs=1e-9)


def test_two_opposite_angles_are_told_by_a_line():
    # Their sine is 0 but for rounding, which grows with the turns and must not be followed.
    side, x = GRID[:600, 0] > 2, LINE[:600, 0]
    points = _of_angle(side * math.pi + np.floor(4 * x) * TURN, x, np.stack([side, x], axis=1))
    assert sap(points) == pytest.approx(1 - np.corrcoef(side, x)[0, 1] ** 2, abs=1e-6)
    assert dci(points).disentanglement > 0.99


def test_cosine_counts_little_for_an_angle_that_turns_little():
    # Its sine has the sign of one code, its cosine hangs on the other alone and hardly varies.
    sign, size, x = np.sign(GRID[:600, 0] - 1.5), 0.09 + 0.01 * (GRID[:600, 1] > 2), LINE[:600, 0]
    points = _of_angle(sign * size, x, np.stack([sign, size, x], axis=1))
    assert dci(points).completeness > 0.95


def _of_angle(angle, x, codes):
    return tabulate(codes, {"angle": angle, "x": x}, {"angle": "circular", "x": "continuous"})


def test_bins_of_a_line_and_of_a_circle():
    assert bin_line(np.array([0.0, 0.24, 0.25, 0.99, 1.0]), 4).tolist() == [0, 0, 1, 3, 3]
    quarters = np.array([0.0, 0.1, 0.25, 0.5, 0.75, 0.99, 1.0, -0.25, 2.25]) * TURN
    assert bin_circle(quarters, 4).tolist() == [0, 0, 1, 2, 3, 3, 0, 3, 1]
    rounded = np.concatenate([[-1e-12], np.arange(8) * TURN / 8])
    assert bin_circle(rounded, 4).tolist() == [0, 0, 0, 1, 1, 2, 2, 3, 3]


def test_bins_of_an_arc_divide_the_arc_across_zero():
    angles = np.linspace(-0.2, 0.2, 41)
    labels = bin_circle(angles, 8)
    assert labels.min() == 0
    assert labels.max() == 7
    assert (np.diff(labels) >= 0).all()
    assert (np.diff(bin_circle(angles + 5 * TURN + 1, 8)) >= 0).all()


def test_a_grid_keeps_its_values_apart_whatever_the_units():
    values = np.arange(21) * 0.1  # 3 * 0.1 is a little over 0.3
    for scale in (1.0, 0.7, 1e-9, 1e9):
        assert bin_line(values * scale, 20).tolist() == [*range(20), 19]


@pytest.mark.parametrize("values", [2, 5, 20, 40])
@pytest.mark.parametrize("start", [0.0, 0.3, 6.0])
def test_an_angle_of_a_grid_is_in_one_bin_after_any_turn(values, start):
    grid = start + np.arange(values) * TURN / values
    labels = bin_circle(np.add.outer(np.arange(-2, 3) * TURN, grid).ravel(), 20).reshape(5, values)
    assert (labels == labels[0]).all()
    assert len(set(labels[0].tolist())) == min(values, 20)


def test_a_perfect_map_tells_positions_alone_and_shares_scale_and_orientation():
    random = np.random.default_rng(8)
    scale, x, y = random.uniform(0.5, 1.5, 2000), *random.random((2, 2000))
    factors = Factors(np.zeros(2000, int), scale, random.uniform(0, TURN, 2000), x, y)
    types = dict.fromkeys(("scale", "x", "y"), "continuous") | {"orientation": "circular"}
    known = {name: getattr(factors, name) for name in types}
    gaps = mig_by_factor(tabulate(theta(factors).reshape(-1, 6), known, types))
    assert gaps["x"] > 0.95
    assert gaps["y"] > 0.95
    assert gaps["scale"] == pytest.approx(0, abs=0.01)
    assert gaps["orientation"] == pytest.approx(0, abs=0.01)


def test_codes_that_never_vary_say_nothing():
    types = CONTINUOUS | {"a": "discrete", "b": "circular"}
    factors = _columns(LINE[:300]) | {"a": GRID[:300, 0]}
    found = measure(np.full((300, 3), 0.1), factors, types)
    assert all(found[name] == 0 for name in ("mig", "sap", "modularity", "disentanglement"))
    assert found["completeness"] == 0
    assert found["explicitness"] == 0.5
    for name in ("factor_vae", "beta_vae"):
        assert found[name] == pytest.approx(1 / 4, abs=0.08)


def test_dead_codes_beside_live_ones_lower_modularity_alone():
    codes, factors, types = LINE[:600] @ _rotation(0), _columns(LINE[:600]), CONTINUOUS
    alone, found = (measure(c, factors, types) for c in (codes, np.pad(codes, ((0, 0), (2, 2)))))
    assert found.pop("modularity") == pytest.approx(alone["modularity"] / 2)
    # Completeness is in units of the largest entropy, which more codes raise from log 4 to log 8.
    assert 1 - found.pop("completeness") == pytest.approx(
        (1 - alone["completeness"]) * 2 / 3, abs=0.02
    )
    for name, number in found.items():
        assert number == pytest.approx(alone[name], abs=0.02 if name in TREES else 1e-6)


def test_factor_vae_leaves_out_codes_that_hardly_vary():
    points = tabulate(GRID * 0.01, _columns(GRID), DISCRETE)
    assert factor_vae(points) == pytest.approx(1 / 4, abs=0.08)
    assert factor_vae(points, min_deviation=0.0) == 1


def test_votes_are_scored_on_points_that_taught_none():
    # Scored on the points they were learned from, 40 codes of noise seem to know half of it.
    noise = np.random.default_rng(10).normal(size=(300, 40))
    points = tabulate(noise, _columns(LINE[:300]), CONTINUOUS)
    assert factor_vae(points) < 0.4
    assert beta_vae(points) < 0.4


def test_votes_need_no_large_groups():
    # 20 bins of 40 test points: pairs and batches come from two or three points.
    points = tabulate(LINE[:120], _columns(LINE[:120]), CONTINUOUS)
    assert factor_vae(points) > 0.8
    assert beta_vae(points) > 0.9


def test_explicitness_counts_pairs_in_order():
    line = np.tile(np.arange(3), 200)
    factors, types = {"one": line, "two": line}, {"one": "discrete", "two": "discrete"}
    straight = tabulate(np.stack([line, 0 * line], axis=1), factors, types)
    folded = tabulate(np.stack([(line - 1) ** 2, 0 * line], axis=1), factors, types)
    assert explicitness(straight) == 1
    # Folded in the middle, the code tells the middle from the ends, and one end ties with the other.
    left, middle, right = np.bincount(split(folded, 0)[1].factors[0].labels)
    first = (middle + right / 2) / (middle + right)
    last = (middle + left / 2) / (middle + left)
    assert explicitness(folded) == pytest.approx((first + 1 + last) / 3)


def test_numbers_follow_from_the_seed():
    factors, types = _columns(LINE[:150]) | {"a": GRID[:150, 0]}, CONTINUOUS | {"a": "discrete"}
    points = tabulate(LINE[:150] @ ALIKE, factors, types)
    assert factor_vae(points, 1) == factor_vae(points, 1) != factor_vae(points, 2)
    assert beta_vae(points, 1) == beta_vae(points, 1) != beta_vae(points, 2)
    assert explicitness(points, 1) == explicitness(points, 1) != explicitness(points, 2)
    assert sap(points, 1) == sap(points, 1)
    assert dci(points, 1) == dci(points, 1) != dci(points, 2)
    assert factor_vae(points, 2**64 - 1) > 0


def test_two_thirds_are_for_learning_and_no_point_is_in_both_parts():
    count = np.arange(300)
    points = tabulate(
        LINE[:300], {"row": count, "a": count % 2}, {"row": "continuous", "a": "discrete"}
    )
    train, test = (part.factors[0].values.astype(int).tolist() for part in split(points, 5))
    assert len(train) == 200
    assert sorted(train + test) == count.tolist()
    assert train != sorted(train)


FEW, TYPES = {"a": [0, 1, 0, 1], "b": [0, 0, 1, 1]}, {"a": "discrete", "b": "continuous"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"codes": np.zeros(4)}, "codes must be .points, two codes or more.*shape .4,"),
        ({"codes": np.zeros((4, 1))}, "two codes or more"),
        ({"codes": np.full((4, 2), np.nan)}, "codes must be finite, found 8"),
        ({"codes": np.zeros((5, 2))}, "factor 'a' must have shape .5,., found .4,"),
        ({"factors": {"a": [0, 1, 0, 1]}}, "two factors or more.*type for each"),
        ({"types": {"a": "discrete"}}, "two factors or more.*type for each"),
        ({"types": TYPES | {"a": "round"}}, "unknown type 'round' of factor 'a'; known: discrete"),
        ({"factors": FEW | {"b": [2, 2, 2, 2]}}, "factor 'b' never varies"),
        ({"factors": FEW | {"b": [0, 1, 2, math.inf]}}, "factor 'b' must be finite numbers"),
        ({"factors": FEW | {"b": list("abcd")}}, "factor 'b' must be finite numbers"),
        (
            {"types": TYPES | {"b": "circular"}, "factors": FEW | {"b": [0, TURN, 0, -TURN]}},
            "never varies",
        ),
        (
            {"types": TYPES | {"b": "discrete"}, "factors": FEW | {"b": [0, 1, 2, 3]}},
            "no value twice",
        ),
        ({"bins": 1}, "bins must lie in 2"),
        ({"estimator": "guess"}, "unknown estimator 'guess'; known: bins, neighbours"),
        ({"seed": -1}, "seed must lie in"),
        (
            {"factors": FEW | {"a": [0, 0, 0, 1]}},
            "4 points are too few: .* share 1 values of factor 'a'",
        ),
    ],
)
def test_tables_that_do_not_fit_are_refused(changes, message):
    table = {"codes": np.eye(4), "factors": FEW, "types": TYPES} | changes
    with pytest.raises(ValueError, match=message):
        measure(**table)


def test_votes_without_two_points_of_a_value_are_refused():
    # Every value of a stands twice, and with this seed once in each part, or not in the other.
    factors = {"a": np.arange(6) // 2, "b": np.arange(6) % 2}
    points = tabulate(LINE[:6], factors, {"a": "discrete", "b": "discrete"})
    for score in (factor_vae, beta_vae):
        with pytest.raises(ValueError, match="no two of 2 points share a value of factor 'a'"):
            score(points, 1)


def test_numbers_that_are_not_as_many_are_refused():
    with pytest.raises(ValueError, match="as many"):
        mutual_information([1.0, 2.0, 3.0], [1.0, 2.0])
    with pytest.raises(ValueError, match=r"neighbours must lie in 1 \.\. 2"):
        mutual_information([1.0, 2.0, 3.0], [1.0, 2.0, 4.0])


def test_the_extra_is_named_where_scikit_learn_is_missing(monkeypatch):
    points = tabulate(GRID, _columns(GRID), DISCRETE)
    for module in ("ensemble", "linear_model", "multiclass", "svm"):
        monkeypatch.setitem(sys.modules, f"sklearn.{module}", None)
    for number in (sap, explicitness, dci, beta_vae):
        with pytest.raises(ImportError, match=r"pip install 'everlearn\[disentanglement\]'"):
            number(points)
    assert mig(points) > 0.9
    assert factor_vae(points) == 1
