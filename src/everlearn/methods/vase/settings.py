"""Settings of VASE, CCI-VAE and beta-VAE; the letters are those of Achille et al. 2018."""

from __future__ import annotations

from dataclasses import dataclass

from everlearn.core.settings import setting
from everlearn.core.validate import check_int, check_number
from everlearn.nets.vae import ARCHITECTURES
from everlearn.training.schedule import Schedule

_SNAPSHOT_STEPS = 500  # without environments, where no switch could trigger a snapshot
ENVIRONMENT_SWITCHES = ("inferred", "given")
ASSIGN_BY = ("classifier", "error")


@dataclass(frozen=True)
class Objective:
    """Reconstruction error + gamma (KL - C)^2 (eq. 2), or + beta KL."""

    beta: float | None = setting(None, "weight of the KL; none: use a growing capacity instead")
    gamma: float = setting(4.0, "weight of the squared gap between the KL and the capacity C")
    force_capacity: bool = setting(False, "penalise a KL below the capacity, too")
    capacity: float = setting(25.0, "final capacity C, in nats")
    capacity_steps: int = setting(3600, "steps in an environment until C reaches its final value")

    def __post_init__(self) -> None:
        """Check every number."""
        if self.beta is not None:
            check_number(self.beta, "beta", 0, 1e6)
        check_number(self.gamma, "gamma", 0, 1e6)
        check_number(self.capacity, "capacity", 0, 1e6)
        check_int(self.capacity_steps, "capacity_steps", 1, 10**9)


@dataclass(frozen=True)
class Inference:
    """How environments are inferred and latents masked (eqs. 4 to 6, Algorithm 1)."""

    environment_switches: str = setting(
        "inferred", "inferred: from the images; given: every task is an environment"
    )
    assign_by: str = setting(
        "error", "assign test images to an environment by reconstruction error or by classifier"
    )
    kappa: float = setting(
        1.5, "open a new environment when the error exceeds kappa x its running mean (eq. 6)"
    )
    excess_error: bool = setting(
        True, "measure the error above the entropy of the images, its lower bound"
    )
    atypicality_threshold: float = setting(
        0.6, "lambda: mask a latent whose atypicality alpha exceeds this (eq. 5)"
    )
    atypicality_rise: float = setting(0.3, "and exceeds its running mean by at least this")
    num_deviations: float = setting(
        5.0, "and by this many mean absolute deviations; the error must do so, too"
    )
    mask_low: float = setting(0.5, "without environments: unmask a latent below this atypicality")
    mask_high: float = setting(0.8, "without environments: mask a latent above this atypicality")
    min_latent_kl: float = setting(0.3, "mean KL in nats above which a latent counts as used")
    max_latent_noise: float = setting(
        0.5, "T: the decoder uses a latent that tolerates less noise than this (appendix A.3)"
    )
    patience: int = setting(3, "surprising batches in a row before other environments are tried")
    min_environment_steps: int | None = setting(
        None, "steps in an environment before another can be inferred; none: 4/3 of capacity_steps"
    )
    running_mean_batches: int = setting(
        200, "batches of the running means; a reference batch is stored four times in as many"
    )

    def __post_init__(self) -> None:
        """Check every setting."""
        for name, known in (
            ("environment_switches", ENVIRONMENT_SWITCHES),
            ("assign_by", ASSIGN_BY),
        ):
            if getattr(self, name) not in known:
                raise ValueError(
                    f"unknown {name} {getattr(self, name)!r}; known: {', '.join(known)}"
                )
        check_number(self.kappa, "kappa", 1, 1e6)
        for name in (
            "atypicality_threshold", "atypicality_rise", "num_deviations", "mask_low", "mask_high",
            "min_latent_kl", "max_latent_noise",
        ):  # fmt: skip
            check_number(getattr(self, name), name, 0, 1e6)
        check_number(self.mask_high, "mask_high", self.mask_low, 1e6)
        check_int(self.patience, "patience", 1, 10**6)
        check_int(self.running_mean_batches, "running_mean_batches", 1, 10**9)
        if self.min_environment_steps is not None:
            check_int(self.min_environment_steps, "min_environment_steps", 0, 10**9)


@dataclass(frozen=True)
class Settings:
    """All settings; S, D and A are the paper's names of its three parts."""

    schedule: Schedule = Schedule(batch_size=64, learning_rate=6e-4)
    net: str = setting("vase", f"one of {', '.join(ARCHITECTURES)}")
    latent_dim: int = setting(24, "size of the latent code")
    max_environments: int = setting(7, "largest number of environments")
    environments: bool = setting(True, "S: infer environments and condition the decoder on them")
    dreams: bool = setting(True, "D: stay close to a snapshot on images that it dreams (eq. 7)")
    masks: bool = setting(True, "A: mask latents that are atypical in an environment (eq. 5)")
    objective: Objective = Objective()
    inference: Inference = Inference()
    snapshot_steps: int | None = setting(
        None, "tau: steps between snapshots; none: one at every switch, or every 500 without S"
    )
    encoder_weight: float = setting(10.0, "weight of the encoder proximity on dreams (eq. 7)")
    decoder_weight: float = setting(
        3.0, "weight of the decoder proximity on dreams (eq. 7); 0: as in SD-[41]"
    )

    def __post_init__(self) -> None:
        """Check every number."""
        check_int(self.latent_dim, "latent_dim", 1, 10**5)
        check_int(self.max_environments, "max_environments", 1, 10**4)
        if self.snapshot_steps is not None:
            check_int(self.snapshot_steps, "snapshot_steps", 1, 10**9)
        check_number(self.encoder_weight, "encoder_weight", 0, 1e6)
        check_number(self.decoder_weight, "decoder_weight", 0, 1e6)

    @property
    def infers(self) -> bool:
        """Whether switches between environments are inferred from the images."""
        return self.environments and self.inference.environment_switches == "inferred"

    @property
    def snapshot_period(self) -> int | None:
        """Steps between snapshots; None: one is taken at every switch."""
        if self.snapshot_steps is None and not self.environments:
            return _SNAPSHOT_STEPS
        return self.snapshot_steps

    @property
    def min_environment_steps(self) -> int:
        """Steps in an environment before another can be inferred."""
        given = self.inference.min_environment_steps
        return 4 * self.objective.capacity_steps // 3 if given is None else given
