"""What DCL can be told."""

from __future__ import annotations

from dataclasses import dataclass

from everlearn.border import check_number, check_whole
from everlearn.learner import Pace
from everlearn.settings import setting


@dataclass(frozen=True)
class Settings:
    """What DCL can be told.

    The paper's: a constant rate, no averaging, own moments, fitting, rehearsal or jitter.
    """

    pace: Pace = Pace(final_rate=1e-5)
    net: str = setting("resnet18", "which net tells the map")
    image_loss: float = setting(0.0, "weight of the loss between normalised image and exemplar")
    masked: int = setting(0, "entries of the map, of six, that a step leaves out of its loss")
    fresh: bool = setting(True, "start the optimiser afresh with every task")
    average: float = setting(
        0.0, "answer with a mean of the nets after past tasks, this slow at most; 0.8 say"
    )
    own: float = setting(
        0.0, "what an image's own moments count in normalisation when answering; 0.001 say"
    )
    fit: int = setting(0, "nearest exemplars that are fitted to the image, the best wins; 10 say")
    crop: float | None = setting(
        None, "search by a central part only, of this half-width; 0.36 say"
    )
    sigma: float = setting(0.8, "an image is new when d1 > sigma * d2, its two nearest distances")
    rehearse: float = setting(0.0, "part of each batch made of exemplars, moved anywhere; 0.5 say")
    jitter: float = setting(0.0, "part of each batch that is moved at random; 0.5 say")
    jitter_scale: float = setting(0.25, "its scale goes from exp(-this) to exp(this)")
    jitter_turn: float = setting(36.0, "its rotation, degrees either way")
    jitter_shift: float = setting(0.15, "its shift either way; the image is 2 wide")

    def __post_init__(self) -> None:
        """Check every setting."""
        check_number(self.image_loss, "image_loss", 0, 1e6)
        check_whole(self.masked, "masked", 0, 5)
        check_number(self.average, "average", 0, 0.9999)
        check_number(self.own, "own", 0, 1)
        check_whole(self.fit, "fit", 0, 1000)
        check_number(self.sigma, "sigma", 0, 1)
        check_number(self.rehearse, "rehearse", 0, 1)
        check_number(self.jitter, "jitter", 0, 1)
        if self.rehearse + self.jitter > 1:
            raise ValueError(
                f"rehearse and jitter are parts of one batch, found {self.rehearse} and {self.jitter}"
            )
        if self.image_loss and self.rehearse == 1:
            raise ValueError("rehearse=1 leaves no image for image_loss; lower it, or image_loss=0")
        check_number(self.jitter_scale, "jitter_scale", 0, 2)
        check_number(self.jitter_turn, "jitter_turn", 0, 180)
        check_number(self.jitter_shift, "jitter_shift", 0, 1)
