"""Trials of generative negative replay and of AR1, which several experiments share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from everlearn.experiments.learners import SEEDS
from everlearn.experiments.trial import EXTRACTOR, IDSPRITES, LATENTS, PAPER, SMALL, Trial

# Positive or negative replay of original, generated or random data.
MODES = ("none", "pr-od", "nr-od", "pr-gd", "nr-gd", "pr-rd", "nr-rd")
NO_REPLAY, AR1 = "no replay", "AR1*"
LABELS = {mode: NO_REPLAY if mode == "none" else mode.upper() for mode in MODES}
SHARES = {SMALL: (0.1, 0.5), PAPER: (0.1, 0.3, 0.5)}
SHARED = {SMALL: ("nr-rd",), PAPER: ("pr-od", "nr-gd", "nr-rd", "pr-rd")}
RATES = {SMALL: ("2e-2",), PAPER: ("1e-3", "1e-2")}
RATED = {SMALL: ("none", "pr-od"), PAPER: ("none", "pr-od", "pr-gd", "nr-gd")}
BETAS = {SMALL: ("10",), PAPER: ("1", "10", "100")}

_EXAMS: Mapping[str, Any] = {"one_shot": (), "open_set": False, "finals": ()}
_NET: Mapping[str, Any] = {"net": "resnet18-slim", "weights": EXTRACTOR}
_TOY: Mapping[str, Any] = {"net": "mlp-wide", "batch_size": 128}


class _Protocol(NamedTuple):
    """A stream, and how methods learn it.

    Attributes:
        settings: of all modes of generative negative replay.
        held: of AR1*, which replays nothing and has rates of its own.
        modes: what is replayed.
        random: the share of random patterns in a batch, where it is another.
    """

    name: str
    base: str
    stream: Mapping[str, Any]
    plan: Mapping[str, Any]
    settings: Mapping[str, Any]
    held: Mapping[str, Any]
    seeds: tuple[int, ...] = (0,)
    most: int | None = None
    random: float | None = None
    modes: tuple[str, ...] = MODES

    def trial(self, mode: str) -> Trial:
        """Generative negative replay, or a variant of it."""
        share = {"share": self.random} if self.random and mode.endswith("rd") else {}
        return self._trial(mode, "gnr", {**self.settings, "mode": mode, **share}, LABELS[mode])

    def trials(self) -> tuple[Trial, ...]:
        """All modes, and AR1*."""
        held = self._trial("ar1", "ar1-star", self.held, AR1)
        return (*(self.trial(mode) for mode in self.modes), held)

    def _trial(self, name: str, method: str, settings: Mapping[str, Any], label: str) -> Trial:
        return Trial(
            f"gnr-{self.name}-{name}", method, settings, self.stream, self.plan, self.most, self.seeds,
            label, self.base,
        )  # fmt: skip


def _rates(first: float, later: float, head: float, later_head: float) -> dict[str, float]:
    """Learning rates of the net and of the head, in the first experience and later."""
    return {
        "rate": first,
        "later_rate": later,
        "head_rate": head,
        "later_head_rate": later_head,
    }


def _tests(every: int, whole: int) -> dict[str, Any]:
    """Test on all classes of the stream after so many tasks; other tests are for its end."""
    return {"every": every, "test_tasks": 1, "whole": whole, **_EXAMS}


_TOY_NC = {**_TOY, **_rates(3e-2, 1e-3, 3e-2, 5e-2), "epochs": 8}
_TOY_NIC = {**_TOY, **_rates(1e-2, 1e-3, 1e-2, 1e-2), "epochs": 4}
_FEW = {"memory": 300, "share": 0.5, "generator_share": 0.5}
LONG_RATES = _rates(3e-2, 5e-5, 3e-2, 3e-3)

NC = {
    SMALL: _Protocol(
        "nc", LATENTS, {}, _tests(9, 1), {**_TOY_NC, "memory": 1500, "share": 0.11}, _TOY_NC,
    ),
    PAPER: _Protocol(
        "nc", IDSPRITES, {"scenario": "class", "first_classes": 10, "classes_per_task": 5}, _tests(9, 1),
        {**_NET, **LONG_RATES, "epochs": 4, "memory": 1500, "share": 0.11}, _NET, SEEDS,
    ),
}  # fmt: skip
NIC = {
    SMALL: _Protocol(
        "nic", LATENTS, {"scenario": "nic"}, _tests(60, 10), {**_TOY_NIC, **_FEW}, _TOY_NIC, most=60,
        modes=("none", "pr-od", "pr-gd", "nr-gd"),
    ),
    PAPER: _Protocol(
        "nic", IDSPRITES, {"scenario": "nic"}, _tests(391, 10),
        {**_NET, **_rates(1e-3, 1e-4, 1e-3, 5e-4), **_FEW},
        {**_NET, **_rates(1e-3, 1e-4, 1e-3, 1e-3), "strength": 2.3e6, "multiplier": 2e-5}, SEEDS,
        random=0.16,
    ),
}  # fmt: skip


def once(trial: Trial) -> Trial:
    """The first seed only."""
    return trial._replace(seeds=(0,))


def with_share(scale: str, mode: str, share: float) -> Trial:
    """A variant with another share of replayed patterns in a batch, on NC."""
    percent = round(100 * share)
    return _varied(scale, mode, f"share-{mode}-{percent}", f"{percent} %", {"share": share})


def with_rate(scale: str, mode: str, rate: str) -> Trial:
    """A variant with another rate of the head from the second experience on, on NC."""
    return _varied(scale, mode, f"rate-{mode}-{rate}", rate, {"later_head_rate": float(rate)})


def with_beta(scale: str, mode: str, beta: str) -> Trial:
    """A variant whose generator keeps nearer to its prior, on NC."""
    return _varied(scale, mode, f"beta-{mode}-{beta}", beta, {"beta": float(beta)})


def _varied(scale: str, mode: str, name: str, words: str, settings: Mapping[str, Any]) -> Trial:
    """A variant of one seed with other settings, on NC."""
    trial = once(NC[scale].trial(mode))
    own = {**trial.settings, **settings}
    return trial._replace(name=f"gnr-{name}", settings=own, label=f"{trial.label}, {words}")


_TESTS = {"every": 10, **_EXAMS}


def _long(name: str, method: str, label: str, **settings: Any) -> Trial:
    """A method on the scale's own stream, with the extractor."""
    return Trial(name, method, {**_NET, **settings}, plan=_TESTS, label=label)


_MADE = {"memory": 5000, "generator_epochs": 2}
GNR = {
    SMALL: Trial("gnr-long", "gnr", {"generator_epochs": 1}, plan=_EXAMS, label="GNR"),
    PAPER: _long("gnr-long", "gnr", "GNR", **LONG_RATES, **_MADE),
}
AR1_FREE = {
    SMALL: Trial("ar1-free-long", "ar1-free", plan=_EXAMS, label="AR1*free"),
    PAPER: _long("ar1-free-long", "ar1-free", "AR1*free, 5,000", **LONG_RATES, memory=5000),
}
GNR_POSITIVE = _long(
    "gnr-pr-long", "gnr", "GNR, positive", **LONG_RATES, **_MADE, mode="pr-gd"
)._replace(most=200)
GNR_NONE = _long("gnr-none-long", "gnr", "GNR, no replay", **LONG_RATES, mode="none")
AR1_STAR = _long("ar1-star-long", "ar1-star", AR1)
LATENT_REPLAY = _long(
    "latent-replay-long", "latent-replay", "latent replay, 5,000", **LONG_RATES, memory=5000
)
BIR = Trial("bir-long", "bir", {"batch_size": 256, "epochs": 5}, plan=_TESTS, most=100, label="BIR")
NEGATIVE = Trial(
    "negative-replay-5k", "negative-replay", {"memory": 5000, "rate": 1e-4}, plan=_TESTS, most=100,
    label="negative replay, 5,000",
)  # fmt: skip
