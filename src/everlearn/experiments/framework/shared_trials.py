"""Trials that several experiments share."""

from __future__ import annotations

from everlearn.experiments.framework.trial import EXTRACTOR, PAPER, SMALL, Trial

# No setting was chosen on these; settings are chosen on seeds from 100 on (framework/grids.py).
SEEDS = (10, 11, 12)
FIRST_REPORTED_SEED = SEEDS[0]  # smaller ones were looked at during development
# Of methods whose settings were chosen again after runs of SEEDS had been seen (decision 18).
NEW_SEEDS = (13, 14, 15)
TABLE_TASKS = 200  # that every method of the main table learns with every seed


def _long(name: str, method: str, label: str = "", seeds: tuple[int, ...] = SEEDS) -> Trial:
    """Return a trial that learns all tasks with its first seed, and TABLE_TASKS with the others."""
    limits = dict.fromkeys(seeds[1:], TABLE_TASKS)
    return Trial(name, method, seeds=seeds, label=label, tasks_by_seed=limits)


def _short(name: str, method: str, label: str = "", seeds: tuple[int, ...] = SEEDS) -> Trial:
    """Return a trial that learns TABLE_TASKS tasks."""
    return Trial(name, method, seeds=seeds, label=label, max_tasks=TABLE_TASKS)


def once(trial: Trial) -> Trial:
    """Return a trial that is no row of the main table: its first seed, TABLE_TASKS tasks at most."""
    tasks = min(trial.max_tasks or TABLE_TASKS, TABLE_TASKS)
    return trial._replace(seeds=SEEDS[:1], max_tasks=tasks, tasks_by_seed={})


DCL = _long("dcl", "dcl", "DCL")
DCL_PLUS = _long("dcl-plus", "dcl-plus", "DCL+")
# Its net is measured after training; a second seed learns TABLE_TASKS, which is enough.
MEASURED = {SMALL: DCL_PLUS, PAPER: DCL_PLUS._replace(seeds=SEEDS[1:2])}
FINE_TUNING = _long("fine-tuning", "fine-tuning", seeds=NEW_SEEDS)
LWF = _long("lwf", "lwf", "LwF")
SI = _short("si", "si", "SI")
EWC = _short("online-ewc", "online-ewc", "EWC, online")
AGEM = _short("agem", "agem", "A-GEM", NEW_SEEDS)
# Joint training happens once, at the end, so it is tested once.
JOINT = {
    SMALL: Trial("joint", "joint", {"retrain_every": 5}, plan={"every": 5}, seeds=SEEDS),
    PAPER: _short("joint", "joint")._replace(
        settings={"retrain_every": 500}, plan={"every": 500, "diagonal_images": 0}
    ),
}
# Of all tasks of the stream; tested at the end alone, it has no accuracy after TABLE_TASKS.
JOINT_LONG = JOINT[PAPER]._replace(
    name="joint-500", label="joint, all tasks", seeds=SEEDS[:1], max_tasks=None
)
L2P = Trial("l2p-lite", "l2p-lite", max_tasks=100, label="L2P-lite")
CONTRASTIVE = _short("contrastive", "contrastive")
BUFFERS = {SMALL: (50, 200, 500), PAPER: (1000, 2000, 5000, 10_000, 20_000)}
TABLE_BUFFERS = {SMALL: BUFFERS[SMALL], PAPER: (5000, 20_000)}
# AR1* and latent replay start from an extractor that was pre-trained on other shapes.
PRETRAINED = {"net": "resnet18-slim", "weights": EXTRACTOR}
AR1_STAR = _short("ar1-star", "ar1-star", "AR1*")._replace(settings=PRETRAINED)
LATENT_REPLAY = _long("latent-replay-5k", "latent-replay", "latent replay, 5,000")._replace(
    settings=PRETRAINED
)


def replay(size: int, method: str = "er") -> Trial:
    """Return a trial of a replay method with a buffer of so many images, such as er-5k."""
    short_size = f"{size // 1000}k" if size >= 1000 else str(size)
    label = f"{method.upper()}, {size:,}"
    return _long(f"{method}-{short_size}", method, label)._replace(settings={"buffer_size": size})


ER = {scale: tuple(replay(size) for size in sizes) for scale, sizes in TABLE_BUFFERS.items()}
MIDDLE_BUFFER = {SMALL: BUFFERS[SMALL][1], PAPER: BUFFERS[PAPER][2]}
