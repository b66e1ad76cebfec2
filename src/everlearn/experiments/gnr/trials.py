"""Trials of generative negative replay and of AR1, which several experiments share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from everlearn.experiments.framework.trial import (
    EXTRACTOR,
    IDSPRITES,
    LATENTS,
    ONE_SEED,
    PAPER,
    SMALL,
    Trial,
)

SEEDS = (0, 1, 2)
# Positive (pr) or negative replay (nr) of original (od), generated (gd) or random data (rd).
MODES = ("none", "pr-od", "nr-od", "pr-gd", "nr-gd", "pr-rd", "nr-rd")
NO_REPLAY = "no replay"
AR1 = "AR1*"
LABELS = {mode: NO_REPLAY if mode == "none" else mode.upper() for mode in MODES}
FRACTIONS = {SMALL: (0.1, 0.5), PAPER: (0.1, 0.3, 0.5)}
FRACTION_MODES = {SMALL: ("nr-rd",), PAPER: ("pr-od", "nr-gd", "nr-rd", "pr-rd")}
RATES = {SMALL: ("2e-2",), PAPER: ("1e-3", "1e-2")}
RATE_MODES = {SMALL: ("none", "pr-od"), PAPER: ("none", "pr-od", "pr-gd", "nr-gd")}
BETAS = {SMALL: ("10",), PAPER: ("1", "10", "100")}

_NO_OTHER_TESTS: Mapping[str, Any] = {"one_shot": (), "open_set": False, "final_after": ()}
_NET: Mapping[str, Any] = {"net": "resnet18-slim", "weights": EXTRACTOR}
_TOY: Mapping[str, Any] = {"net": "mlp-wide", "batch_size": 128}


class _Protocol(NamedTuple):
    """A stream, and the settings of the methods that learn it.

    Attributes:
        settings: settings of generative negative replay, for all modes.
        ar1_settings: settings of AR1*, which replays nothing.
        modes: replay modes.
        random_fraction: fraction of random patterns in a batch, where it differs.
    """

    name: str
    base: str
    stream: Mapping[str, Any]
    plan: Mapping[str, Any]
    settings: Mapping[str, Any]
    ar1_settings: Mapping[str, Any]
    seeds: tuple[int, ...] = ONE_SEED
    max_tasks: int | None = None
    random_fraction: float | None = None
    modes: tuple[str, ...] = MODES

    def trial(self, mode: str) -> Trial:
        """Return the trial of one replay mode."""
        settings = {**self.settings, "replay_mode": mode}
        if self.random_fraction and mode.endswith("rd"):
            settings["replay_fraction"] = self.random_fraction
        return self._trial(mode, "gnr", settings, LABELS[mode])

    def trials(self) -> tuple[Trial, ...]:
        """Return the trials of all modes and of AR1*."""
        ar1 = self._trial("ar1", "ar1-star", self.ar1_settings, AR1)
        return (*(self.trial(mode) for mode in self.modes), ar1)

    def _trial(self, name: str, method: str, settings: Mapping[str, Any], label: str) -> Trial:
        return Trial(
            f"gnr-{self.name}-{name}",
            method,
            settings,
            self.stream,
            self.plan,
            self.max_tasks,
            self.seeds,
            label,
            self.base,
        )


def _rates(first: float, later: float, head: float, later_head: float) -> dict[str, float]:
    """Return learning rates of the net and of the head, for the first and for later experiences."""
    return {
        "learning_rate": first,
        "later_learning_rate": later,
        "head_learning_rate": head,
        "later_head_learning_rate": later_head,
    }


def _tests(every: int, all_classes_every: int) -> dict[str, Any]:
    """Return a plan that tests all classes after every so many tasks, and all else at the end."""
    return {
        "every": every,
        "max_test_tasks": 1,
        "all_classes_every": all_classes_every,
        **_NO_OTHER_TESTS,
    }


_TOY_NC = {**_TOY, **_rates(3e-2, 1e-3, 3e-2, 5e-2), "epochs": 8}
_TOY_NIC = {**_TOY, **_rates(1e-2, 1e-3, 1e-2, 1e-2), "epochs": 4}
_FEW = {"buffer_size": 300, "replay_fraction": 0.5, "generator_replay_fraction": 0.5}
LONG_RATES = _rates(3e-2, 5e-5, 3e-2, 3e-3)
# AR1* with its own defaults, whatever is chosen for the main table.
_AR1: Mapping[str, Any] = {**_NET, **_rates(3e-4, 3e-4, 3e-4, 3e-4), "strength": 8e5}

NC = {
    SMALL: _Protocol(
        "nc", LATENTS, {}, _tests(9, 1), {**_TOY_NC, "buffer_size": 1500, "replay_fraction": 0.11}, _TOY_NC,
    ),
    PAPER: _Protocol(
        "nc", IDSPRITES, {"scenario": "class", "first_classes": 10, "classes_per_task": 5}, _tests(9, 1),
        {**_NET, **LONG_RATES, "epochs": 4, "buffer_size": 1500, "replay_fraction": 0.11}, _AR1, SEEDS,
    ),
}  # fmt: skip
NIC = {
    SMALL: _Protocol(
        "nic", LATENTS, {"scenario": "nic"}, _tests(60, 10), {**_TOY_NIC, **_FEW}, _TOY_NIC, max_tasks=60,
        modes=("none", "pr-od", "pr-gd", "nr-gd"),
    ),
    PAPER: _Protocol(
        "nic", IDSPRITES, {"scenario": "nic"}, _tests(391, 10),
        {**_NET, **_rates(1e-3, 1e-4, 1e-3, 5e-4), **_FEW},
        {**_NET, **_rates(1e-3, 1e-4, 1e-3, 1e-3), "strength": 2.3e6, "importance_scale": 2e-5}, SEEDS,
        random_fraction=0.16,
    ),
}  # fmt: skip


def with_one_seed(trial: Trial) -> Trial:
    """Return the trial with its first seed only."""
    return trial._replace(seeds=ONE_SEED)


def with_fraction(scale: str, mode: str, share: float) -> Trial:
    """Return a variant with another fraction of replayed patterns in a batch, on NC."""
    percent = round(100 * share)
    return _variant(
        scale, mode, f"share-{mode}-{percent}", f"{percent} %", {"replay_fraction": share}
    )


def with_rate(scale: str, mode: str, learning_rate: str) -> Trial:
    """Return a variant with another learning rate of the head after the first experience, on NC."""
    return _variant(
        scale,
        mode,
        f"rate-{mode}-{learning_rate}",
        learning_rate,
        {"later_head_learning_rate": float(learning_rate)},
    )


def with_beta(scale: str, mode: str, beta: str) -> Trial:
    """Return a variant with another weight of the generator's divergence from its prior, on NC."""
    return _variant(scale, mode, f"beta-{mode}-{beta}", beta, {"beta": float(beta)})


def _variant(scale: str, mode: str, name: str, label: str, changes: Mapping[str, Any]) -> Trial:
    """Return a variant with one seed and other settings, on NC."""
    trial = with_one_seed(NC[scale].trial(mode))
    settings = {**trial.settings, **changes}
    return trial._replace(name=f"gnr-{name}", settings=settings, label=f"{trial.label}, {label}")


_TESTS = {"every": 10, **_NO_OTHER_TESTS}


def _long(name: str, method: str, label: str, **settings: Any) -> Trial:
    """Return the trial of a method on the stream of its scale, with the pre-trained extractor."""
    return Trial(name, method, {**_NET, **settings}, plan=_TESTS, label=label)


_GENERATOR = {"buffer_size": 5000, "generator_epochs": 2}
GNR = {
    SMALL: Trial("gnr-long", "gnr", {"generator_epochs": 1}, plan=_NO_OTHER_TESTS, label="GNR"),
    PAPER: _long("gnr-long", "gnr", "GNR", **LONG_RATES, **_GENERATOR, replay_mode="nr-gd"),
}
AR1_FREE = {
    SMALL: Trial("ar1-free-long", "ar1-free", plan=_NO_OTHER_TESTS, label="AR1*free"),
    PAPER: _long("ar1-free-long", "ar1-free", "AR1*free, 5,000", **LONG_RATES, buffer_size=5000),
}
GNR_POSITIVE = _long(
    "gnr-pr-long", "gnr", "GNR, positive", **LONG_RATES, **_GENERATOR, replay_mode="pr-gd"
)._replace(max_tasks=200)
# All that replay, for pairs that differ only in how.
GNR_BY_MODE: Mapping[str, tuple[Trial, ...]] = {SMALL: (), PAPER: (GNR[PAPER], GNR_POSITIVE)}
GNR_NONE = _long("gnr-none-long", "gnr", "GNR, no replay", **LONG_RATES, replay_mode="none")
AR1_STAR_FORMER = _long("ar1-star-long", "ar1-star", "AR1*, former settings", **_AR1)
BIR = Trial(
    "bir-long", "bir", {"batch_size": 256, "epochs": 5}, plan=_TESTS, max_tasks=100, label="BIR"
)
NEGATIVE = Trial(
    "negative-replay-5k",
    "negative-replay",
    {"buffer_size": 5000, "learning_rate": 1e-4},
    plan=_TESTS,
    max_tasks=100,
    label="negative replay, 5,000",
)
