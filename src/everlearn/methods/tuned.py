"""TUNED: settings of preset `paper` that were chosen by trials; `everlearn tune` repeats them.

Each method had eight trials on the validation images of 20 tasks, with seed 100. Their rows are in
results/tuning, and a test compares these settings with what the rows choose.
"""

from __future__ import annotations

TUNED: dict[str, dict[str, object]] = {
    "joint": {"learning_rate": 5e-3},
    "dcl": {"learning_rate": 3e-4, "reset_optimizer": True},
    "dcl-plus": {"learning_rate": 3e-4, "reset_optimizer": True},
    "er": {"learning_rate": 1e-3, "reset_optimizer": False},
    "der++": {"learning_rate": 3e-4, "alpha": 0.1, "store_at_task_end": False},
    "latent-replay": {
        "later_learning_rate": 5e-4,
        "later_head_learning_rate": 1e-2,
        "replay_fraction": 0.5,
    },
    "ar1-star": {
        "later_learning_rate": 1e-3,
        "later_head_learning_rate": 3e-4,
        "strength": 8e4,
    },
    "lwf": {"learning_rate": 1e-4, "reset_optimizer": True, "distillation_weight": 1.0},
    "si": {"learning_rate": 1e-4, "reset_optimizer": True, "strength": 10.0},
    "online-ewc": {"learning_rate": 1e-4, "strength": 0.3},
    "agem": {"learning_rate": 3e-4, "reset_optimizer": True, "images_per_task": 100},
    "fine-tuning": {"learning_rate": 3e-4, "reset_optimizer": True},
    "contrastive": {
        "learning_rate": 3e-4,
        "temperature": 0.1,
        "negative_exemplars": 100,
        "epochs": 5,
        "patience": 0,
    },
}

# What the same trials choose among those that keep the optimizer's state, where it differs.
TUNED_KEPT: dict[str, dict[str, object]] = {
    "dcl": {"learning_rate": 2e-3},
    "dcl-plus": {"learning_rate": 1e-3},
    "lwf": {"learning_rate": 1e-4, "distillation_weight": 1.0},
    "si": {"learning_rate": 1e-4, "strength": 0.1},
    "agem": {"learning_rate": 1e-4, "images_per_task": 100},
    "fine-tuning": {"learning_rate": 1e-4},
}
