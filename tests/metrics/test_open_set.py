"""Open-set scores against pair counting and threshold by threshold."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import mannwhitneyu

from everlearn.metrics import auroc, average_precision, fpr_at_tpr, oscr, paper_area, paper_curve

# Few distinct values, so that ties are common.
SCORES = st.lists(st.integers(0, 8).map(lambda eighth: eighth / 8), min_size=1, max_size=15)
SCORED = st.lists(st.tuples(st.integers(0, 8).map(lambda n: n / 8), st.booleans()), min_size=1)


def _cuts(*scores):
    return sorted({score for row in scores for score in row}, reverse=True)


def test_separable_scores_are_separated():
    known, unknown = [0.1, 0.2, 0.3], [0.4, 0.5]
    assert auroc(known, unknown) == average_precision(known, unknown) == 1
    assert fpr_at_tpr(known, unknown) == 0
    assert oscr(known, unknown, [1, 1, 1]) == 1


def test_identical_scores_are_not_separated():
    draws = np.random.default_rng(0).random((2, 4000))
    assert auroc(*draws) == pytest.approx(0.5, abs=0.03)
    assert auroc(draws[0], draws[0]) == 0.5
    assert auroc([0.5] * 3, [0.5] * 7) == 0.5
    assert average_precision([0.5] * 3, [0.5] * 7) == pytest.approx(0.7)


@given(SCORES, SCORES)
def test_auroc_counts_pairs_with_half_for_ties(known, unknown):
    won = sum((u > k) + (u == k) / 2 for u in unknown for k in known)
    assert auroc(known, unknown) == pytest.approx(won / (len(known) * len(unknown)))


@given(SCORES, SCORES)
def test_auroc_is_the_u_statistic_of_scipy(known, unknown):
    expected = mannwhitneyu(unknown, known).statistic / (len(known) * len(unknown))
    assert auroc(known, unknown) == pytest.approx(expected, abs=1e-12)


@given(SCORES, SCORES)
def test_auroc_changes_sides_with_the_sets_and_ignores_the_scale(known, unknown):
    assert auroc(unknown, known) == pytest.approx(1 - auroc(known, unknown))
    cubes = [np.power(np.array(s) + 1, 3) for s in (known, unknown)]
    assert auroc(*cubes) == auroc(known, unknown)


@given(SCORES, SCORES)
def test_average_precision_agrees_threshold_by_threshold(known, unknown):
    area, found = 0.0, 0
    for cut in _cuts(known, unknown):
        hits = sum(score >= cut for score in unknown)
        called = hits + sum(score >= cut for score in known)
        area += (hits - found) / len(unknown) * hits / called
        found = hits
    assert average_precision(known, unknown) == pytest.approx(area)


@given(SCORES, SCORES, st.sampled_from([0.0, 0.5, 0.55, 0.95, 1.0]))
def test_false_alarms_agree_threshold_by_threshold(known, unknown, tpr):
    enough = [
        cut
        for cut in _cuts(unknown)
        if sum(score >= cut for score in unknown) / len(unknown) >= tpr
    ]
    expected = sum(score >= max(enough) for score in known) / len(known)
    assert fpr_at_tpr(known, unknown, tpr) == pytest.approx(expected)


def test_false_alarms_do_not_ask_for_one_image_too_many():
    unknown = [1.0] * 55 + [0.0] * 45
    assert fpr_at_tpr([0.5], unknown, 0.55) == 0


@given(SCORED, SCORES)
def test_oscr_agrees_threshold_by_threshold(scored, unknown):
    known, correct = zip(*scored, strict=True)
    corner, area = (0.0, 0.0), 0.0
    for cut in reversed(_cuts(known, unknown)):
        far = sum(score <= cut for score in unknown) / len(unknown)
        ccr = sum(ok and score <= cut for score, ok in scored) / len(known)
        area += (far - corner[0]) * (ccr + corner[1]) / 2
        corner = (far, ccr)
    assert oscr(known, unknown, correct) == pytest.approx(area)


@given(SCORES, SCORES)
def test_oscr_is_auroc_when_all_are_correct_and_zero_when_none_is(known, unknown):
    assert oscr(known, unknown, [1] * len(known)) == pytest.approx(auroc(known, unknown))
    assert oscr(known, unknown, [0] * len(known)) == 0


@given(SCORES, SCORES)
def test_the_paper_curve_agrees_threshold_by_threshold(known, unknown):
    found = paper_curve(known, unknown)
    ratios = [[1 / r if r else math.inf for r in side] for side in (known, unknown)]
    for n, threshold in enumerate(np.arange(501) / 100):
        assert found.threshold[n] == threshold
        assert found.seen[n] == sum(ratio > threshold for ratio in ratios[0])
        assert found.unseen[n] == sum(ratio <= threshold for ratio in ratios[1])
    assert (found.known, found.unknown) == (len(known), len(unknown))


@given(SCORES, SCORES)
def test_the_paper_rates_trade_off(known, unknown):
    found = paper_curve(known, unknown)
    assert (np.diff(found.seen_rate) <= 0).all()
    assert (np.diff(found.unseen_rate) >= 0).all()
    assert 0 <= paper_area(found) <= 1


def test_the_paper_area_of_a_hand_example():
    # Ratios: known 4 and over 5, unknown 2 and 1.25. Both unknown are unseen before a known is.
    assert paper_area(paper_curve([0.25, 0.1], [0.5, 0.8])) == pytest.approx(1)
    # The unknown of ratio 4 turns unseen after the known of ratio 2: half of all known by then.
    assert paper_area(paper_curve([0.5, 0.1], [0.25, 0.8])) == pytest.approx(0.75)
    # An unknown image of ratio 10 is never called unseen, so the curve ends half way.
    assert paper_area(paper_curve([0.05], [0.1, 0.8])) == pytest.approx(0.5)


@pytest.mark.parametrize("scores", [[], [0.1, math.nan], [[0.1]], [math.inf]])
def test_scores_that_are_not_finite_are_refused(scores):
    for number in (auroc, average_precision, fpr_at_tpr, paper_curve):
        with pytest.raises(ValueError, match="known must be a row of finite scores"):
            number(scores, [0.5])


def test_answers_and_ratios_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="one entry for each known image, 2"):
        oscr([0.1, 0.2], [0.3], [1])
    with pytest.raises(ValueError, match="ratios"):
        paper_curve([-0.1], [0.3])
