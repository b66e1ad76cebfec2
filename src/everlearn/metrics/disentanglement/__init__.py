"""Disentanglement: how far each code of a learner represents one factor of its images.

Locatello et al. 2019 compare these metrics; here they also take continuous and circular factors, and
work from a finite table of points, without a generative model. Each lies in 0 .. 1.
"""

from __future__ import annotations

from collections.abc import Mapping

from numpy.typing import ArrayLike

from everlearn.metrics.disentanglement.information import (
    ESTIMATORS,
    information,
    mig,
    mig_by_factor,
    modularity,
)
from everlearn.metrics.disentanglement.linear import explicitness, sap
from everlearn.metrics.disentanglement.neighbours import mutual_information
from everlearn.metrics.disentanglement.points import TYPES, Factor, Points, tabulate
from everlearn.metrics.disentanglement.trees import Dci, dci
from everlearn.metrics.disentanglement.votes import beta_vae, factor_vae

__all__ = [
    "ESTIMATORS",
    "TYPES",
    "Dci",
    "Factor",
    "Points",
    "beta_vae",
    "dci",
    "explicitness",
    "factor_vae",
    "information",
    "measure",
    "mig",
    "mig_by_factor",
    "modularity",
    "mutual_information",
    "sap",
    "tabulate",
]


def measure(
    codes: ArrayLike,
    factors: Mapping[str, ArrayLike],
    types: Mapping[str, str],
    seed: int = 0,
    *,
    bins: int = 20,
    estimator: str = "bins",
) -> dict[str, float]:
    """Compute all metrics of codes (P, L), by name.

    Args:
        factors: name to values (P,); two factors or more, each of which varies.
        types: name to "discrete", "continuous" or "circular" (radians).
        seed: of the split, two thirds for training and one for testing, and of all draws.
        bins: number of bins of equal width, of every code and of every factor that is not discrete.
        estimator: of mutual information, in mig and modularity: "bins" or "neighbours".
    """
    points = tabulate(codes, factors, types, bins)
    return {
        "mig": mig(points, estimator, seed),
        "sap": sap(points, seed),
        "modularity": modularity(points, estimator, seed),
        "explicitness": explicitness(points, seed),
        **dci(points, seed)._asdict(),
        "factor_vae": factor_vae(points, seed),
        "beta_vae": beta_vae(points, seed),
    }
