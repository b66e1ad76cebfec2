"""Settings of AR1 and generative negative replay."""

from __future__ import annotations

import math
from dataclasses import dataclass

from everlearn.core.settings import setting
from everlearn.core.validate import check_int, check_number
from everlearn.nets.cwr_head import RULES, SHIFTS
from everlearn.nets.split_net import SPLIT_NETS
from everlearn.stream import TaskStream

# Positive (pr) or negative (nr) replay of original (od), generated (gd) or random (rd) data.
REPLAY_MODES = ("none", "pr-od", "nr-od", "pr-gd", "nr-gd", "pr-rd", "nr-rd")


@dataclass(frozen=True)
class LearningRates:
    """SGD in the first experience and in later ones."""

    learning_rate: float = setting(
        3e-2, "learning rate of the net in the first experience (CORe50 NC)"
    )
    later_learning_rate: float = setting(
        5e-5, "learning rate of the net in later experiences; 0: freeze it"
    )
    head_learning_rate: float = setting(3e-2, "learning rate of the head in the first experience")
    later_head_learning_rate: float = setting(
        5e-4, "learning rate of the head in later experiences"
    )
    momentum: float = setting(0.9, "momentum of SGD")
    weight_decay: float = setting(1e-4, "weight decay of SGD")
    decay_later_learning_rates: bool = setting(
        False, "lower the later learning rates from experience to experience (eq. 16, our reading)"
    )

    def __post_init__(self) -> None:
        """Check every number."""
        for name in (
            "learning_rate",
            "later_learning_rate",
            "head_learning_rate",
            "later_head_learning_rate",
        ):
            check_number(getattr(self, name), name, 0, 1e3)
        check_number(self.momentum, "momentum", 0, 1)
        check_number(self.weight_decay, "weight_decay", 0, 1)

    def at(self, experience: int) -> tuple[float, float]:
        """Return the learning rates of the net and of the head in an experience, the first being 0."""
        if experience == 0:
            return self.learning_rate, self.head_learning_rate
        factor = 1.0
        if self.decay_later_learning_rates:
            factor = 1.1 - 1 / (1 + math.exp(8 - 1.5 * min(experience, 100)))
        return factor * self.later_learning_rate, factor * self.later_head_learning_rate


@dataclass(frozen=True)
class GeneratorSettings:
    """The conditional VAE."""

    latent_dim: int = setting(100, "size of the VAE's code")
    beta: float = setting(0.1, "weight of the KL to the prior")
    eta: float = setting(0.01, "weight of the frozen classifier's cross-entropy on reconstructions")
    generator_learning_rate: float = setting(2e-3, "learning rate of Adam")
    generator_epochs: int = setting(4, "epochs over the latents of an experience")
    generator_replay_fraction: float = setting(
        0.21, "fraction of a batch of the generator that is replayed (27 of 128)"
    )
    straight_through: bool = setting(
        True, "pass gradients through the final ReLU where it is 0, so that no unit dies"
    )

    def __post_init__(self) -> None:
        """Check every number."""
        check_int(self.latent_dim, "latent_dim", 1, 10**5)
        check_number(self.beta, "beta", 0, 1e6)
        check_number(self.eta, "eta", 0, 1e6)
        check_number(self.generator_learning_rate, "generator_learning_rate", 0, 10)
        check_int(self.generator_epochs, "generator_epochs", 0, 10**6)
        check_number(self.generator_replay_fraction, "generator_replay_fraction", 0, 0.99)


@dataclass(frozen=True)
class Settings:
    """A split net, a head, and replay of the latents between the halves.

    The defaults are those of generative negative replay on CORe50 NC.
    """

    learning_rates: LearningRates = LearningRates()
    generator: GeneratorSettings = GeneratorSettings()
    net: str = setting("resnet18", "which net, in two halves: " + ", ".join(SPLIT_NETS))
    weights: str = setting("", "file of a pre-trained net; its lower half is frozen from the start")
    batch_size: int = setting(128, "patterns per step, new and replayed")
    epochs: int = setting(4, "epochs over an experience")
    first_epochs: int | None = setting(None, "epochs over the first experience; none: as `epochs`")
    replay_mode: str = setting("nr-gd", "what is replayed: " + ", ".join(REPLAY_MODES))
    replay_fraction: float | None = setting(
        0.11,
        "fraction of a batch that is replayed (14 of 128); none: new and old patterns once per epoch",
    )
    buffer_size: int = setting(1500, "patterns stored, or generated for an experience")
    head: str = setting("cwr*", "cwr, cwr+, cwr* or plain")
    mean_shift: str = setting(
        "per_class", "mean subtracted from the head's rows: of each (per_class) or of all (global)"
    )
    include_unseen: bool = setting(
        False, "keep all classes of the stream in the softmax, also those that are not seen yet"
    )
    reset_optimizer: bool = setting(
        True, "reset the state of all optimizers at every experience, as the head starts anew"
    )
    strength: float = setting(0.0, "lambda of synaptic intelligence on the net; 0: none")
    max_importance: float = setting(1e-3, "upper bound of an importance")
    importance_scale: float = setting(1e-6, "factor of an experience's importances")

    def __post_init__(self) -> None:
        """Check every setting."""
        check_int(self.batch_size, "batch_size", 2, 10**6)
        check_int(self.epochs, "epochs", 1, 10**6)
        if self.first_epochs is not None:
            check_int(self.first_epochs, "first_epochs", 1, 10**6)
        check_int(self.buffer_size, "buffer_size", 1, 10**9)
        if self.replay_fraction is not None:
            check_number(self.replay_fraction, "replay_fraction", 0, 0.99)
        for name, known in (("replay_mode", REPLAY_MODES), ("head", RULES), ("mean_shift", SHIFTS)):
            if getattr(self, name) not in known:
                raise ValueError(
                    f"unknown {name} {getattr(self, name)!r}; known: {', '.join(known)}"
                )
        for name in ("strength", "max_importance", "importance_scale"):
            check_number(getattr(self, name), name, 0, 1e12)

    @property
    def is_negative(self) -> bool:
        """Whether replayed patterns leave the rows of their own classes alone."""
        return self.replay_mode.startswith("nr")

    @property
    def replay_data(self) -> str:
        """What is replayed: "od" (original), "gd" (generated), "rd" (random) or "" (nothing).

        A fraction that rounds to no pattern of a batch is nothing.
        """
        fraction = 1.0 if self.replay_fraction is None else self.replay_fraction
        if self.replay_mode == "none" or not replayed_patterns(self.batch_size, fraction):
            return ""
        return self.replay_mode[3:]

    def epochs_of(self, experience: int) -> int:
        """Return the epochs over an experience, the first being 0."""
        return self.epochs if experience or self.first_epochs is None else self.first_epochs

    def split_batch(self, new: int, old: int) -> tuple[int, int]:
        """Return how many new and replayed patterns make a batch.

        Args:
            new: patterns of the experience.
            old: patterns to replay.
        """
        size = self.batch_size
        if not old:
            return min(size, new), 0
        if self.replay_fraction is not None:
            replayed = replayed_patterns(size, self.replay_fraction)
        else:  # as many steps as show every new and old pattern once
            steps = max(1, (new + old) // size)
            replayed = size - min(size - 1, max(1, new // steps))
        return min(size - replayed, new), replayed

    def check_epochs(self, stream: TaskStream) -> None:
        """Refuse more than one pass over an online stream."""
        passes = {"epochs": max(self.epochs, self.epochs_of(0))}
        if self.replay_data == "gd":
            passes["generator_epochs"] = self.generator.generator_epochs
        for name, found in passes.items():
            if stream.online and found > 1:
                raise ValueError(
                    f"this stream is online: one pass is allowed, found {name}={found}; give {name}=1"
                )


def replayed_patterns(size: int, fraction: float) -> int:
    """Return how many patterns of a batch are replayed; at least one is new."""
    return min(size - 1, round(fraction * size))
