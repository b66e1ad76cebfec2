"""What AR1 and generative negative replay can be told."""

from __future__ import annotations

import math
from dataclasses import dataclass

from everlearn.border import check_number, check_whole
from everlearn.nets.cwr import RULES, SHIFTS
from everlearn.nets.halves import HALVES
from everlearn.settings import setting

# Positive or negative replay of original, generated or random data.
MODES = ("none", "pr-od", "nr-od", "pr-gd", "nr-gd", "pr-rd", "nr-rd")


@dataclass(frozen=True)
class Rates:
    """Learning rates of gradient descent, in the first experience and later."""

    rate: float = setting(3e-2, "learning rate of the net in the first experience (CORe50 NC)")
    later_rate: float = setting(5e-5, "and later; 0: the net stays as it is")
    head_rate: float = setting(3e-2, "learning rate of the head in the first experience")
    later_head_rate: float = setting(5e-4, "and later")
    momentum: float = setting(0.9, "of gradient descent")
    decay: float = setting(1e-4, "weight decay")
    fade: bool = setting(False, "lower the later rates with experiences (eq. 16, our reading)")

    def __post_init__(self) -> None:
        """Check every number."""
        for name in ("rate", "later_rate", "head_rate", "later_head_rate"):
            check_number(getattr(self, name), name, 0, 1e3)
        check_number(self.momentum, "momentum", 0, 1)
        check_number(self.decay, "decay", 0, 1)

    def at(self, experience: int) -> tuple[float, float]:
        """The rates of the net and of the head in an experience, the first being 0."""
        if experience == 0:
            return self.rate, self.head_rate
        factor = 1.1 - 1 / (1 + math.exp(8 - 1.5 * min(experience, 100))) if self.fade else 1.0
        return factor * self.later_rate, factor * self.later_head_rate


FROZEN = Rates(later_rate=0.0)
HELD = Rates(3e-4, 3e-4, 3e-4, 3e-4)


@dataclass(frozen=True)
class Generation:
    """The conditional VAE."""

    z: int = setting(100, "size of its code")
    beta: float = setting(0.1, "weight of the divergence from the prior")
    eta: float = setting(0.01, "weight of what the frozen classifier says of its output")
    generator_rate: float = setting(2e-3, "learning rate of Adam")
    generator_epochs: int = setting(4, "passes over the latents of an experience")
    generator_share: float = setting(0.21, "of a batch that is replayed (27 of 128)")
    through: bool = setting(
        True, "let slopes pass where its output is cut at 0, so that none is dead"
    )

    def __post_init__(self) -> None:
        """Check every number."""
        check_whole(self.z, "z", 1, 10**5)
        check_number(self.beta, "beta", 0, 1e6)
        check_number(self.eta, "eta", 0, 1e6)
        check_number(self.generator_rate, "generator_rate", 0, 10)
        check_whole(self.generator_epochs, "generator_epochs", 0, 10**6)
        check_number(self.generator_share, "generator_share", 0, 0.99)


def replayed_of(size: int, share: float) -> int:
    """How many patterns of a batch a share is; one at least is new."""
    return min(size - 1, round(share * size))


@dataclass(frozen=True)
class Settings:
    """A net in two halves, a head, and what is replayed between the halves.

    The defaults are those of generative negative replay on CORe50 NC.
    """

    rates: Rates = Rates()
    generation: Generation = Generation()
    net: str = setting("resnet18", "which net, in two halves: " + ", ".join(HALVES))
    weights: str = setting(
        "", "file of a pre-trained net, whose lower half is frozen from the start"
    )
    batch_size: int = setting(128, "patterns a step, new and replayed")
    epochs: int = setting(4, "passes over an experience")
    first_epochs: int | None = setting(None, "passes over the first one; none: as many")
    mode: str = setting("nr-gd", "what is replayed: " + ", ".join(MODES))
    share: float | None = setting(
        0.11, "of a batch that is replayed (14 of 128); none: all of new and old once an epoch"
    )
    memory: int = setting(1500, "patterns kept, or made for an experience")
    head: str = setting("cwr*", "cwr, cwr+, cwr* or plain")
    mean_shift: str = setting("global", "mean taken off the rows: of all (global) or per_class")
    unmet: bool = setting(True, "keep classes that are not in the experience in the softmax")
    strength: float = setting(0.0, "of synaptic intelligence on the net, lambda; 0: none")
    clip: float = setting(1e-3, "the largest importance")
    multiplier: float = setting(1e-6, "of the importance of an experience")

    def __post_init__(self) -> None:
        """Check every setting."""
        check_whole(self.batch_size, "batch_size", 2, 10**6)
        check_whole(self.epochs, "epochs", 1, 10**6)
        if self.first_epochs is not None:
            check_whole(self.first_epochs, "first_epochs", 1, 10**6)
        check_whole(self.memory, "memory", 1, 10**9)
        if self.share is not None:
            check_number(self.share, "share", 0, 0.99)
        for name, known in (("mode", MODES), ("head", RULES), ("mean_shift", SHIFTS)):
            if getattr(self, name) not in known:
                raise ValueError(
                    f"unknown {name} {getattr(self, name)!r}; known: {', '.join(known)}"
                )
        for name in ("strength", "clip", "multiplier"):
            check_number(getattr(self, name), name, 0, 1e12)

    @property
    def is_negative(self) -> bool:
        """Whether replayed patterns leave the rows of their own classes alone."""
        return self.mode.startswith("nr")

    @property
    def data(self) -> str:
        """What is replayed: od (original), gd (generated) or rd (random); empty for nothing.

        A share of no pattern of a batch is nothing.
        """
        share = 1.0 if self.share is None else self.share
        is_some = self.mode != "none" and replayed_of(self.batch_size, share) > 0
        return self.mode[3:] if is_some else ""

    def epochs_of(self, experience: int) -> int:
        """Passes over an experience, the first being 0."""
        return self.epochs if experience or self.first_epochs is None else self.first_epochs

    def parts(self, new: int, old: int) -> tuple[int, int]:
        """How many new and replayed patterns make a batch, where there are so many of each."""
        size = self.batch_size
        if not old:
            return min(size, new), 0
        if self.share is not None:
            replayed = replayed_of(size, self.share)
        else:  # as many steps as take both once
            fresh = new // max(1, (new + old) // size)
            replayed = size - min(size - 1, max(1, fresh))
        return min(size - replayed, new), replayed
