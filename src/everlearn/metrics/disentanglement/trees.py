"""DCI: what boosted trees need of each code to tell each factor (Eastwood and Williams 2018).

Trees tell the class of a discrete factor, the value of a continuous one, and cosine and sine of an
angle, two models whose importances are averaged by the variance of what they tell. Importance is how
much the splits on a code lower the error on the training part. What is told of the test part is the
accuracy for a discrete factor, else R^2, 0 where it is below, of both coordinates of an angle
together. For speed, trees see each code in 64 steps of as many points, and 50 of depth 3 are boosted
at rate 0.2: the importances differ by a hundredth or two from those of scikit-learn's own setting,
100 trees at rate 0.1 and no steps.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from everlearn.metrics.disentanglement.package import scikit_learn
from everlearn.metrics.disentanglement.points import Points, Purpose, generator, split
from everlearn.metrics.rows import Floats

_STEPS = 64


class Dci(NamedTuple):
    """The three numbers.

    Attributes:
        disentanglement: each code serves one factor.
        completeness: each factor is served by one code.
        informativeness: all codes together tell the factors.
    """

    disentanglement: float
    completeness: float
    informativeness: float


def dci(points: Points, seed: int = 0, trees: int = 50, rate: float = 0.2) -> Dci:
    """Learn every factor with boosted trees; see who was needed, and test.

    Args:
        trees: boosted one after another, for each class of a discrete factor.
        rate: of what a tree finds, how much is believed.
    """
    train, test = split(points._replace(codes=_steps(points.codes)), seed)
    told = [_tell(train, test, k, seed, trees, rate) for k in range(len(points.factors))]
    importance = np.stack([found for found, _ in told], axis=1)
    return Dci(
        concentration(importance),
        concentration(importance.T),
        float(np.mean([right for _, right in told])),
    )


def concentration(importance: Floats) -> float:
    """1 less the entropy of each row, in units of the largest, averaged by the rows' sums; 0 if none."""
    sums = importance.sum(axis=1)
    if sums.sum() == 0:
        return 0.0
    shares = importance[sums > 0] / sums[sums > 0, None]
    logs = np.log(np.where(shares > 0, shares, 1.0)) / np.log(importance.shape[1])
    return float(np.average(1 + (shares * logs).sum(axis=1), weights=sums[sums > 0]))


def _steps(codes: Floats) -> Floats:
    """Number steps of as many points along each code; a step that few values fill stays empty."""
    edges = np.quantile(codes, np.arange(1, _STEPS) / _STEPS, axis=0)
    found = [np.searchsorted(edge, code) for edge, code in zip(edges.T, codes.T, strict=True)]
    return np.stack(found, axis=1).astype(np.float64)


def _tell(
    train: Points, test: Points, k: int, seed: int, trees: int, rate: float
) -> tuple[Floats, float]:
    """Importances (L,) for one factor, and how much of it is told on the test part."""
    random = int(generator(seed, Purpose.TREES).integers(2**31))
    settings = {"n_estimators": trees, "learning_rate": rate, "random_state": random}
    known, held = train.factors[k], test.factors[k]
    if known.kind == "discrete":
        model = scikit_learn("ensemble").GradientBoostingClassifier(**settings)
        model.fit(train.codes, known.labels)
        return model.feature_importances_, float(np.mean(model.predict(test.codes) == held.labels))
    model = scikit_learn("ensemble").GradientBoostingRegressor
    models = [model(**settings).fit(train.codes, column) for column in known.targets.T]
    importances = [fitted.feature_importances_ for fitted in models]
    importance = np.average(importances, axis=0, weights=known.targets.var(axis=0))
    return importance, _share_told(models, test.codes, held.targets)


def _share_told(models: list[Any], codes: Floats, targets: Floats) -> float:
    """R^2 of all columns of targets (P, D) together, at least 0."""
    told = np.stack([model.predict(codes) for model in models], axis=1)
    missed = ((told - targets) ** 2).sum() / ((targets - targets.mean(axis=0)) ** 2).sum()
    return max(0.0, float(1 - missed))
