"""Trials that several experiments share."""

from __future__ import annotations

from everlearn.experiments.framework.trial import PAPER, SMALL, Trial

SEEDS = (0, 1, 2)
DCL = Trial("dcl", "dcl", label="DCL")
DCL_PLUS = Trial("dcl-plus", "dcl-plus", label="DCL+")
FINE_TUNING = Trial("fine-tuning", "fine-tuning", max_tasks=200)
LWF = Trial("lwf", "lwf", label="LwF")
SI = Trial("si", "si", label="SI")
EWC = Trial("ewc", "ewc", label="EWC")
AGEM = Trial("agem", "agem", max_tasks=200, label="A-GEM")
# Joint training happens once, at the end, so it is tested once.
JOINT = {
    SMALL: Trial("joint", "joint", {"retrain_every": 5}, plan={"every": 5}),
    PAPER: Trial("joint", "joint", {"retrain_every": 500}, plan={"every": 500}),
}
L2P = Trial("l2p-lite", "l2p-lite", max_tasks=100, label="L2P-lite")
CONTRASTIVE = Trial("contrastive", "contrastive", max_tasks=200)
BUFFERS = {SMALL: (50, 200, 500), PAPER: (1000, 2000, 5000, 10_000, 20_000)}


def replay(size: int, method: str = "er") -> Trial:
    """Return a trial of a replay method with a buffer of so many images, such as er-5k."""
    short_size = f"{size // 1000}k" if size >= 1000 else str(size)
    label = f"{method.upper()}, {size:,}"
    return Trial(f"{method}-{short_size}", method, {"buffer_size": size}, label=label)


ER = {scale: tuple(replay(size) for size in sizes) for scale, sizes in BUFFERS.items()}
MIDDLE_BUFFER = {SMALL: BUFFERS[SMALL][1], PAPER: BUFFERS[PAPER][2]}
