"""Trials that several experiments share."""

from __future__ import annotations

from everlearn.experiments.trial import PAPER, SMALL, Trial

SEEDS = (0, 1, 2)
DCL = Trial("dcl", "dcl", label="DCL")
DCL_PLUS = Trial("dcl-plus", "dcl-plus", label="DCL+")
FINE_TUNING = Trial("fine-tuning", "fine-tuning", most=200)
LWF = Trial("lwf", "lwf", label="LwF")
SI = Trial("si", "si", label="SI")
EWC = Trial("ewc", "ewc", label="EWC")
AGEM = Trial("agem", "agem", most=200, label="A-GEM")
# Joint training is done once, so it is tested once.
JOINT = {
    SMALL: Trial("joint", "joint", {"every": 5}, plan={"every": 5}),
    PAPER: Trial("joint", "joint", {"every": 500}, plan={"every": 500}),
}
L2P = Trial("l2p-lite", "l2p-lite", most=100, label="L2P-lite")
CONTRASTIVE = Trial("contrastive", "contrastive", most=200)
BUFFERS = {SMALL: (50, 200, 500), PAPER: (1000, 2000, 5000, 10_000, 20_000)}


def replay(size: int, method: str = "er", **changes: object) -> Trial:
    """A method that keeps so many images, such as er-5k."""
    short = f"{size // 1000}k" if size >= 1000 else str(size)
    words = "-".join([method, short, *(name for name, value in changes.items() if value is True)])
    return Trial(words, method, {"memory": size, **changes}, label=f"{method.upper()}, {size:,}")


ER = {scale: tuple(replay(size) for size in sizes) for scale, sizes in BUFFERS.items()}
MIDDLE = {SMALL: BUFFERS[SMALL][1], PAPER: BUFFERS[PAPER][2]}
