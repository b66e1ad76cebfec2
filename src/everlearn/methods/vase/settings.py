"""What VASE can be told."""

from __future__ import annotations

from dataclasses import dataclass

from everlearn.border import check_number, check_whole
from everlearn.learner import Pace
from everlearn.nets.coder import NETS
from everlearn.settings import setting

_PERIOD = 500
SWITCHES, GUESSES = ("inferred", "told"), ("classifier", "error")


@dataclass(frozen=True)
class Objective:
    """What a code may say."""

    beta: float | None = setting(None, "weight of the KL; none: a capacity that grows, instead")
    gamma: float = setting(4.0, "weight of the squared gap between KL and capacity")
    reach: bool = setting(False, "codes that say less than they may are held to it, too")
    capacity: float = setting(25.0, "nats that a code may say in the end")
    capacity_steps: int = setting(3600, "steps in an environment until it may")

    def __post_init__(self) -> None:
        """Check every number."""
        if self.beta is not None:
            check_number(self.beta, "beta", 0, 1e6)
        check_number(self.gamma, "gamma", 0, 1e6)
        check_number(self.capacity, "capacity", 0, 1e6)
        check_whole(self.capacity_steps, "capacity_steps", 1, 10**9)


@dataclass(frozen=True)
class Inference:
    """When an environment is taken for another one."""

    switches: str = setting(
        "inferred", "inferred from images, or told: every task is an environment"
    )
    guess: str = setting("error", "how images given alone are placed: by error, or by classifier")
    kappa: float = setting(1.5, "an error so many times the usual one is of a new environment")
    excess: bool = setting(True, "count the error over the least possible one; else all of it")
    limit: float = setting(0.6, "atypicality of a latent that does not apply")
    rise: float = setting(0.3, "which must also be so much over its usual one")
    spreads: float = setting(
        5.0, "and so many times as far from it as batches usually are; likewise the error"
    )
    low: float = setting(0.5, "without environments: a latent applies again below this")
    high: float = setting(0.8, "and no longer over this")
    least: float = setting(0.3, "nats that a latent says, on average, if it is used")
    tolerance: float = setting(0.5, "noise that a latent bears, at most, if the decoder uses it")
    patience: int = setting(3, "batches in a row that must speak for a change")
    quiet: int | None = setting(
        None, "steps in an environment before another is looked for; none: 4/3 of capacity_steps"
    )
    slow: int = setting(
        200,
        "batches of the means of errors and atypicality; after a quarter another is kept to look back on",
    )

    def __post_init__(self) -> None:
        """Check every setting."""
        for name, known in (("switches", SWITCHES), ("guess", GUESSES)):
            if getattr(self, name) not in known:
                raise ValueError(
                    f"unknown {name} {getattr(self, name)!r}; known: {', '.join(known)}"
                )
        check_number(self.kappa, "kappa", 1, 1e6)
        for name in ("limit", "rise", "spreads", "low", "high", "least", "tolerance"):
            check_number(getattr(self, name), name, 0, 1e6)
        check_number(self.high, "high", self.low, 1e6)
        check_whole(self.patience, "patience", 1, 10**6)
        check_whole(self.slow, "slow", 1, 10**9)
        if self.quiet is not None:
            check_whole(self.quiet, "quiet", 0, 10**9)


@dataclass(frozen=True)
class Settings:
    """All of it; S, D and A are the paper's names of its three parts."""

    pace: Pace = Pace(batch_size=64, rate=6e-4)
    net: str = setting("vase", f"one of {', '.join(NETS)}")
    z: int = setting(24, "numbers of a code")
    most: int = setting(7, "environments at most")
    environments: bool = setting(True, "S: infer environments and tell the decoder")
    dreams: bool = setting(True, "D: stay close to a snapshot on what it dreams")
    masks: bool = setting(True, "A: mask latents that are unusual in an environment")
    objective: Objective = Objective()
    inference: Inference = Inference()
    tau: int | None = setting(
        None, "steps between snapshots; none: one where an environment begins, without these 500"
    )
    encoder_weight: float = setting(10.0, "of the distance of codes of dreams")
    decoder_weight: float = setting(3.0, "of the KL of dreams drawn; 0: as in SD-[41]")

    def __post_init__(self) -> None:
        """Check every number."""
        check_whole(self.z, "z", 1, 10**5)
        check_whole(self.most, "most", 1, 10**4)
        if self.tau is not None:
            check_whole(self.tau, "tau", 1, 10**9)
        check_number(self.encoder_weight, "encoder_weight", 0, 1e6)
        check_number(self.decoder_weight, "decoder_weight", 0, 1e6)

    @property
    def period(self) -> int | None:
        """Steps between snapshots; None: one is taken where an environment begins."""
        return _PERIOD if self.tau is None and not self.environments else self.tau

    @property
    def quiet(self) -> int:
        """Steps in an environment before another is looked for."""
        own = self.inference.quiet
        return 4 * self.objective.capacity_steps // 3 if own is None else own
