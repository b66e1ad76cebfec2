"""The models of scikit-learn, imported when they are fitted."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from everlearn.metrics.measured import Floats, Ints


def scikit_learn(module: str) -> Any:
    """Import a module of scikit-learn, or raise with how to install it."""
    try:
        return import_module(f"sklearn.{module}")
    except ImportError:
        raise ImportError(
            "the trees and classifiers that measure disentanglement need scikit-learn, which is "
            "missing; run: pip install 'everlearn[disentanglement]'"
        ) from None


def fit_logistic(codes: Floats, labels: Ints) -> Any:
    """Fit one logistic regression over all labels, with an L2 penalty (C = 1).

    By Newton's method: the order of the codes, which changes last bits, changes no step of it.
    """
    models = scikit_learn("linear_model")
    model = models.LogisticRegression(solver="newton-cholesky")
    return model.fit(codes, labels)
