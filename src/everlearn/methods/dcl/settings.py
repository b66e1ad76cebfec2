"""Settings of DCL."""

from __future__ import annotations

from dataclasses import dataclass

from everlearn.core.settings import setting
from everlearn.core.validate import check_int, check_number
from everlearn.training.schedule import Schedule

MAX_EXEMPLARS = 64  # per class


@dataclass(frozen=True)
class Settings:
    """Settings of DCL.

    The paper has a constant learning rate, and no weight averaging, instance statistics, fitting, exemplar
    replay, jitter or jitter of edges.
    """

    schedule: Schedule = Schedule(final_learning_rate=1e-5)
    net: str = setting("resnet18", "architecture that regresses the map")
    map_loss_weight: float = setting(1.0, "weight of the squared error of the map")
    image_loss_weight: float = setting(
        0.0, "weight of the squared error between the image in canonical pose and its exemplar"
    )
    masked_entries: int = setting(0, "entries of the map, of six, that each step masks in its loss")
    regress_color: bool = setting(
        False, "also regress the colour of a shape, and compare images in the colour of exemplars"
    )
    exemplars_per_class: int = setting(
        1, "exemplars per class: the canonical image, and training images in canonical pose"
    )
    reset_optimizer: bool = setting(True, "reset the optimizer's state at the start of every task")
    weight_averaging: float = setting(
        0.0,
        "predict with a moving average of the weights after each task, of at most this decay; try 0.8",
    )
    instance_stats: float = setting(
        0.0, "weight of an image's own statistics in normalisation when predicting; try 0.001"
    )
    fit_candidates: int = setting(
        0, "nearest exemplars that are fitted to the image, of which the best wins; try 10"
    )
    crop: float | None = setting(
        None, "compare only a central square of this half-width when searching; try 0.36"
    )
    sigma: float = setting(0.8, "an image is new when d1 > sigma * d2, its two nearest distances")
    exemplar_replay: float = setting(
        0.0, "fraction of each batch that shows stored exemplars in random poses; try 0.5"
    )
    jitter: float = setting(0.0, "fraction of each batch that is moved at random; try 0.5")
    jitter_scale: float = setting(0.25, "jitter scales images by exp(-this) to exp(this)")
    jitter_rotation: float = setting(36.0, "jitter rotates images by up to so many degrees")
    jitter_translation: float = setting(
        0.15, "jitter shifts images by up to this much in x and y; the image is 2 wide"
    )
    edge_jitter: float = setting(
        0.0, "fraction of the training images that get harder or blurred edges; try 0.25"
    )
    hard_edge_jitter: float = setting(
        0.0,
        "for hard edges, replaces edge_jitter: fraction of shapes that shrink by up to a pixel; try 0.25",
    )

    def __post_init__(self) -> None:
        """Check every setting."""
        check_number(self.map_loss_weight, "map_loss_weight", 0, 1e6)
        check_number(self.image_loss_weight, "image_loss_weight", 0, 1e6)
        check_int(self.exemplars_per_class, "exemplars_per_class", 1, MAX_EXEMPLARS)
        check_int(self.masked_entries, "masked_entries", 0, 5)
        check_number(self.weight_averaging, "weight_averaging", 0, 0.9999)
        check_number(self.instance_stats, "instance_stats", 0, 1)
        check_int(self.fit_candidates, "fit_candidates", 0, 1000)
        check_number(self.sigma, "sigma", 0, 1)
        check_number(self.exemplar_replay, "exemplar_replay", 0, 1)
        check_number(self.jitter, "jitter", 0, 1)
        check_number(self.jitter_scale, "jitter_scale", 0, 2)
        check_number(self.jitter_rotation, "jitter_rotation", 0, 180)
        check_number(self.jitter_translation, "jitter_translation", 0, 1)
        check_number(self.edge_jitter, "edge_jitter", 0, 1)
        check_number(self.hard_edge_jitter, "hard_edge_jitter", 0, 1)
        self._check_combinations()

    def _check_combinations(self) -> None:
        """Refuse settings that exclude each other."""
        if self.exemplar_replay + self.jitter > 1:
            raise ValueError(
                "exemplar_replay and jitter are fractions of one batch and must not exceed 1 together, "
                f"found {self.exemplar_replay} and {self.jitter}"
            )
        if self.image_loss_weight and self.exemplar_replay == 1:
            raise ValueError(
                "exemplar_replay=1 leaves no image for image_loss_weight; lower it, or give "
                "image_loss_weight=0"
            )
        if not self.map_loss_weight and not self.image_loss_weight:
            raise ValueError("map_loss_weight and image_loss_weight are both 0; give one of them")
        if self.image_loss_weight and self.regress_color:
            raise ValueError(
                "the image loss compares with exemplars in their own colour; give image_loss_weight=0 or "
                "regress_color=False"
            )
        if self.exemplars_per_class > 1 and self.fit_candidates:
            raise ValueError(
                "fitting uses canonical exemplars only; give exemplars_per_class=1 or fit_candidates=0"
            )
