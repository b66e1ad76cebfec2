"""How far an accuracy of a repeated run may lie from recorded ones by chance.

The noise is that of the test images and, where three seeds or more are recorded, that of training, which
their spread shows.
"""

from __future__ import annotations

from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from everlearn.metrics import MIN_SEEDS, Interval

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
ALPHA = 0.05  # the probability that an honest repeat is said to differ


class _Spread(NamedTuple):
    """How runs that differ in the seed alone vary.

    Attributes:
        variance: of each evaluation, (K,).
        dispersion: variance of all evaluations in units of that of their images; 1 or more.
        degrees: of freedom of the dispersion.
    """

    variance: Floats
    dispersion: float
    degrees: float


def prediction_interval(
    repeated: Floats, recorded: Floats, images: Ints, alpha: float = ALPHA
) -> Interval:
    """Return the intervals that hold each accuracy of an honest repeat, but for a probability `alpha`.

    With fewer than three runs this is the comparison of two proportions; with more, Student's prediction
    interval for one new run, with the variance of the images or of the runs, whichever is larger.

    Args:
        repeated: accuracies of K evaluations of the new run, (K,).
        recorded: those of n runs, (n, K).
        images: tested in each evaluation, (K,).
        alpha: of one evaluation; divide it by their number (Bonferroni).
    """
    runs = len(recorded)
    mean = recorded.mean(axis=0)
    pooled = (repeated + runs * mean) / (runs + 1)
    variance = pooled * (1 - pooled) / images
    critical = NormalDist().inv_cdf(1 - alpha / 2)
    if runs >= MIN_SEEDS:
        spread = _measure_spread(recorded, images)
        variance = np.maximum(spread.dispersion * variance, spread.variance)
        critical = _critical_value(spread.degrees, runs, alpha)
    scale = 1 + 1 / runs  # noise of the new run and of the mean
    half = critical * np.sqrt(variance * scale) + scale / (2 * images)  # Yates's correction
    return Interval(mean - half, mean + half)


def _measure_spread(recorded: Floats, images: Ints) -> _Spread:
    mean = recorded.mean(axis=0)
    variance = recorded.var(axis=0, ddof=1)
    image_variance = mean * (1 - mean) / images
    each = len(recorded) - 1
    if not variance.any():
        return _Spread(variance, 1.0, each * len(images))
    dispersion = max(1.0, float(variance.sum() / image_variance.sum()))
    varying = image_variance > 0
    unequal = _degrees_of_unequal(variance[varying] / image_variance[varying], each)
    return _Spread(variance, dispersion, min(unequal, each * len(images)))


def _degrees_of_unequal(ratios: Floats, each: int) -> float:
    """Return the degrees of freedom to which unequal variances reduce Student's t; infinite if equal.

    Normal deviates with variances that differ between evaluations by a squared coefficient of variation c
    have the moments of Student's t with 4 + 2 / c degrees of freedom.

    Args:
        ratios: estimated variances in units of those of the images, (K,).
        each: degrees of freedom of one estimate.
    """
    # Estimates vary even where the variances are equal, by 2 / each.
    variation = float((ratios**2).mean() / ratios.mean() ** 2) * each / (each + 2) - 1
    return 4 + 2 / variation if variation > 0 else np.inf


def _critical_value(degrees: float, runs: int, alpha: float) -> float:
    """Return Student's quantile for evaluations that move alone or all together, whichever is larger."""
    alone = float(special.stdtrit(degrees, 1 - alpha / 2))
    together = float(special.stdtrit(runs - 1, 1 - ALPHA / 2))  # one comparison, in effect
    return max(alone, together)
