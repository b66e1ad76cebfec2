"""Grids: the settings among which each method of the main table is tuned, eight trials a method."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any, NamedTuple

from everlearn.experiments.framework.shared_trials import PRETRAINED
from everlearn.experiments.framework.trial import EMPTY, PAPER, SMALL, Trial, at_scale

TRIALS = 8  # per method, so that none is searched more than another
MAX_SETTINGS = 3  # that a grid may vary
TUNING_SEEDS = (100,)  # of 100 to 104, which no table reports
TASKS = {SMALL: 3, PAPER: 20}

_PLAN = {
    "split": "val",
    "diagonal_images": 150,
    "one_shot": (),
    "open_set": False,
    "final_after": (),
}
_KEPT_OR_RESET = (False, True)
_CLASSIFIER_RATES = (1e-4, 3e-4, 5e-4, 1e-3)
_MAP_RATES = (3e-4, 1e-3, 2e-3, 3e-3)


class Grid(NamedTuple):
    """The trials of one method: fixed settings, and the values of up to three others.

    Attributes:
        choices: values by setting; every combination is one trial.
        fixed: settings of every trial.
        paper: the same at scale `paper`.
        plan: changes to the evaluation plan.
    """

    choices: Mapping[str, tuple[Any, ...]]
    fixed: Mapping[str, Any] = EMPTY
    paper: Mapping[str, Any] = EMPTY
    plan: Mapping[str, Any] = EMPTY


GRIDS: dict[str, Grid] = {
    "joint": Grid(
        {"learning_rate": (1e-4, 2e-4, 3e-4, 5e-4, 1e-3, 2e-3, 3e-3, 5e-3)},
        {"retrain_every": 1000},
        plan={"diagonal_images": 0},  # it is trained after the last task only
    ),
    "dcl-plus": Grid({"learning_rate": _MAP_RATES, "reset_optimizer": _KEPT_OR_RESET}),
    "dcl": Grid({"learning_rate": _MAP_RATES, "reset_optimizer": _KEPT_OR_RESET}),
    "er": Grid({"learning_rate": _CLASSIFIER_RATES, "reset_optimizer": _KEPT_OR_RESET}),
    "der++": Grid(
        {
            "learning_rate": (3e-4, 1e-3),
            "alpha": (0.1, 0.5),
            "store_at_task_end": (False, True),
        }
    ),
    "latent-replay": Grid(
        {
            "later_learning_rate": (5e-5, 5e-4),
            "later_head_learning_rate": (3e-3, 1e-2),
            "replay_fraction": (0.5, None),
        },
        paper=PRETRAINED,
    ),
    "ar1-star": Grid(
        {
            "later_learning_rate": (3e-4, 1e-3),
            "later_head_learning_rate": (3e-4, 3e-3),
            "strength": (8e4, 8e5),
        },
        paper=PRETRAINED,
    ),
    "lwf": Grid(
        {
            "learning_rate": (1e-4, 3e-4),
            "reset_optimizer": _KEPT_OR_RESET,
            "distillation_weight": (1.0, 10.0),
        }
    ),
    "si": Grid(
        {
            "learning_rate": (1e-4, 3e-4),
            "reset_optimizer": _KEPT_OR_RESET,
            "strength": (0.1, 10.0),
        }
    ),
    # Strengths from the paper's code to those of van de Ven et al. for class-incremental learning.
    "online-ewc": Grid({"learning_rate": (1e-4, 3e-4), "strength": (0.3, 1e2, 1e4, 1e6)}),
    "agem": Grid(
        {
            "learning_rate": (1e-4, 3e-4),
            "reset_optimizer": _KEPT_OR_RESET,
            "images_per_task": (10, 100),
        }
    ),
    "fine-tuning": Grid({"learning_rate": _CLASSIFIER_RATES, "reset_optimizer": _KEPT_OR_RESET}),
    # As many epochs as all others have.
    "contrastive": Grid(
        {
            "learning_rate": (3e-4, 1e-3),
            "temperature": (0.1, 0.5),
            "negative_exemplars": (0, 100),
        },
        {"epochs": 5, "patience": 0},
    ),
}


def tuning_trials(method: str, scale: str) -> tuple[Trial, ...]:
    """Return the trials of a method, one for each combination of its grid."""
    grid = find_grid(method)
    tasks = at_scale(TASKS, scale)
    fixed = {**grid.fixed, **(grid.paper if scale == PAPER else EMPTY)}
    plan = {**_PLAN, "every": tasks, **grid.plan}
    return tuple(
        Trial(
            f"{method}-{number}",
            method,
            {**fixed, **dict(zip(grid.choices, values, strict=True))},
            plan=plan,
            max_tasks=tasks,
            seeds=TUNING_SEEDS,
            label=f"{method} {number}",
        )
        for number, values in enumerate(product(*grid.choices.values()), 1)
    )


def find_grid(method: str) -> Grid:
    """Return the grid of a method, or raise an error that lists the methods with one."""
    if method not in GRIDS:
        raise ValueError(f"no grid for method {method!r}; methods with one: {', '.join(GRIDS)}")
    return GRIDS[method]
