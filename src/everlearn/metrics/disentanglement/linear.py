"""Linear predictability of the factors: SAP from one code at a time, explicitness from all."""

from __future__ import annotations

import numpy as np

from everlearn.metrics.disentanglement.package import fit_logistic, scikit_learn
from everlearn.metrics.disentanglement.points import Factor, Points, split, top_gap
from everlearn.metrics.measured import Floats
from everlearn.metrics.open_set import auroc


def sap(points: Points, seed: int = 0) -> float:
    """Score the best code less the second best, averaged over factors: SAP (Kumar et al. 2018).

    The score of a code for a discrete factor is the test accuracy of linear SVCs (C = 0.01, classes
    of equal weight), one for each two values, whose threshold is hardly penalised. One for each value
    against the rest, as often used, sets no thresholds on both sides of a middle value: for a perfect
    code of five values it is correct for about half.
    For a continuous factor the score is the squared correlation, for an angle the squared multiple
    correlation of the code with its cosine and sine, both over all points.
    """
    train, test = split(points, seed)
    columns = [
        _accuracies(train, test, k) if factor.type == "discrete" else _correlations(points, factor)
        for k, factor in enumerate(points.factors)
    ]
    return float(top_gap(np.stack(columns, axis=1)).mean())


def explicitness(points: Points, seed: int = 0) -> float:
    """Average over factors and labels the ROC area of a label against the rest; 0.5 is chance level.

    Of Ridgeway and Mozer 2018, with one logistic regression a factor over all its labels, bins where
    it is not discrete: unlike one regression per label it separates a middle value from both sides.
    Labels missing from the training or test part are left out.
    """
    train, test = split(points, seed)
    return float(np.mean([_area(train, test, k) for k in range(len(points.factors))]))


def _accuracies(train: Points, test: Points, k: int) -> Floats:
    """Return the test accuracies (L,) of the discrete factor k predicted from one code each."""
    svc = scikit_learn("svm").LinearSVC(
        C=0.01, class_weight="balanced", dual=False, intercept_scaling=10
    )
    model = scikit_learn("multiclass").OneVsOneClassifier(svc)
    labels = train.factors[k].labels
    held = test.factors[k].labels
    found = np.empty(train.codes.shape[1])
    for l in range(len(found)):
        model.fit(train.codes[:, [l]], labels)
        found[l] = np.mean(model.predict(test.codes[:, [l]]) == held)
    return found


def _correlations(points: Points, factor: Factor) -> Floats:
    """Return the squared multiple correlation (L,) of each code with the columns of a factor's targets."""
    centred = factor.targets - factor.targets.mean(axis=0)
    basis, sizes, _ = np.linalg.svd(centred, full_matrices=False)
    # Cosine and sine of two opposite angles are one line, the other is rounding.
    lines = basis[:, sizes > 1e-9 * sizes.max()]
    found: Floats = ((lines.T @ points.codes) ** 2).sum(axis=0) / len(points.codes)
    return found


def _area(train: Points, test: Points, k: int) -> float:
    """Return the mean ROC area of the labels of factor k."""
    model = fit_logistic(train.codes, train.factors[k].labels)
    # Equal codes must have equal probabilities, whatever their last bits are.
    probabilities = np.round(model.predict_proba(test.codes), 9)
    held = test.factors[k].labels
    columns = [
        (label, column)
        for label, column in zip(model.classes_, probabilities.T, strict=True)
        if 0 < np.sum(held == label) < len(held)
    ]
    return float(np.mean([auroc(c[held != label], c[held == label]) for label, c in columns]))
