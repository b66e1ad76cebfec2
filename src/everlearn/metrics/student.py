"""Student's t distribution through the incomplete beta function."""

from __future__ import annotations

import math
from typing import Any


def two_sided(t: float, freedom: int) -> float:
    """Probability that |T| is |t| or more, for so many degrees of freedom."""
    whole = freedom + t * t
    return _incomplete_beta(freedom / whole, t * t / whole, freedom / 2, 0.5)


def quantile(confidence: float, freedom: int) -> float:
    """The t that |T| stays below with this probability, by bisection."""
    low, high = 0.0, 1.0
    while two_sided(high, freedom) > 1 - confidence:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        if two_sided(middle, freedom) > 1 - confidence:
            low = middle
        else:
            high = middle
    return high


def margin(sd: Any, count: int, confidence: float = 0.95) -> Any:
    """Half an interval for the mean of `count` values of deviation sd (n - 1), a number or an array."""
    return quantile(confidence, count - 1) * sd / count**0.5


def _incomplete_beta(x: float, y: float, a: float, b: float) -> float:
    """I_x(a, b) with y = 1 - x, from the side where the fraction converges fast."""
    if x > (a + 1) / (a + b + 2):
        return 1 - _incomplete_beta(y, x, b, a)
    if x == 0:
        return 0.0
    log_beta = math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
    return math.exp(a * math.log(x) + b * math.log(y) - log_beta) / a * _fraction(x, a, b)


def _fraction(x: float, a: float, b: float) -> float:
    """The continued fraction 26.5.8 of Abramowitz and Stegun, from its far end."""
    value = 1.0
    pairs = 50 + 2 * math.isqrt(int(max(a, b)))  # it converges within about sqrt(max(a, b))
    for m in range(pairs, 0, -1):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m - 1) * (a + b + m - 1) * x / ((a + 2 * m - 2) * (a + 2 * m - 1))
        value = 1 + odd / (1 + even / value)
    return 1 / value
