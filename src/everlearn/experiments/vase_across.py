"""Asks a VASE that has learned: what its codes are in another environment, and where mixtures belong."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import softmax

from everlearn.experiments.lab import Lab
from everlearn.experiments.pictures import picture_row
from everlearn.experiments.trial import Trial
from everlearn.experiments.vase_sheets import draw_sheet
from everlearn.methods.vase import VASE
from everlearn.results import Row

_SHOWN = 8
_AT_ONCE = 1024
_BATCH = 64


class Scene(NamedTuple):
    """Images of an environment (n, 1, H, W), and the number under which a learner knows it, ()."""

    name: str
    images: Tensor
    place: Tensor

    @property
    def centres(self) -> Tensor:
        """Where items are, (n, 2)."""
        return centres(self.images, "inverse" in self.name)


def scenes(lab: Lab, learner: Any, trial: Trial, names: Sequence[str], images: int) -> list[Scene]:
    """Test images of some environments, whether or not the trial has met them."""
    stream = lab.stream(trial, trial.seeds[0]).with_changes(sequence=tuple(names))
    every = [task.test.batch(slice(0, images), lab.device).images for task in stream]
    return [
        Scene(name, shown, learner.environment(shown))
        for name, shown in zip(names, every, strict=False)
    ]


def centres(images: Tensor, inverse: bool = False) -> Tensor:
    """Centres of mass of what is brighter than half of the brightest, x and y as shares of a side, (n, 2).

    Args:
        inverse: whether items are dark.
    """
    ink = (1 - images if inverse else images)[:, 0]
    ink = ink * (ink > 0.5 * ink.amax((1, 2), keepdim=True))
    along = (torch.arange(ink.shape[-1], device=ink.device) + 0.5) / ink.shape[-1]
    mass = ink.sum((1, 2)).clamp(min=1e-6)
    return (
        torch.stack([(ink.sum(1) * along).sum(1), (ink.sum(2) * along).sum(1)], 1) / mass[:, None]
    )


def cross(
    lab: Lab, trials: Sequence[Trial], pairs: Sequence[Sequence[str]], images: int
) -> Iterator[Row]:
    """Draw images of each of two environments in the other, a pair of them for each trial."""
    for trial, pair in zip(trials, pairs, strict=True):
        learner: VASE = lab.learner(trial, trial.seeds[0])
        first, second = scenes(lab, learner, trial, pair, images)
        for source, target in ((first, second), (second, first)):
            yield _distances(learner, source, target) | {"seed": trial.seeds[0]}
            yield _crossing(learner, source, target)


def _distances(learner: VASE, source: Scene, target: Scene) -> Row:
    """How far items are from where they were, drawn in their own environment and in the other."""
    there = source.centres
    within = centres(_drawn(learner, source, source), "inverse" in source.name)
    across = centres(_drawn(learner, source, target), "inverse" in target.name)
    return {
        "kind": "crossing",
        "source": source.name,
        "target": target.name,
        "within": _squares(within, there),
        "across": _squares(across, there),
        "any": _squares(there.roll(1, 0), there),  # as if the place of another image were kept
        "total": len(there),
    }


def _squares(found: Tensor, true: Tensor) -> float:
    return float((found - true).double().square().sum())


@torch.no_grad()
def _drawn(learner: VASE, source: Scene, target: Scene) -> Tensor:
    """Images of one environment, as they are drawn in another."""
    parts = torch.split(source.images, _AT_ONCE)
    drawn = [learner.draw(learner.sample(part, target.place), target.place) for part in parts]
    return torch.cat(drawn).sigmoid()


def _crossing(learner: VASE, source: Scene, target: Scene) -> Row:
    some = source._replace(images=source.images[:_SHOWN])
    rows = {
        source.name: some.images,
        "drawn again": _drawn(learner, some, some),
        f"as {target.name}": _drawn(learner, some, target),
    }
    sheet = draw_sheet({words: part.cpu().numpy() for words, part in rows.items()})
    return picture_row(f"Codes of {source.name}, drawn there and as {target.name}.", sheet)


def mix(
    lab: Lab,
    trial: Trial,
    mixed: Sequence[str],
    images: int,
    weights: int,
    contexts: Sequence[float],
) -> Iterator[Row]:
    """Ask which of two environments mixtures of their images are of, in batches with images of one."""
    learner: VASE = lab.learner(trial, trial.seeds[0])
    first, second = scenes(lab, learner, trial, mixed, images)
    steps = torch.linspace(0, 1, weights).tolist()
    both = torch.stack([first.place, second.place])
    told = [_tell(learner, torch.lerp(second.images, first.images, step), both) for step in steps]
    real = {1.0: told[-1], -1.0: told[0]}
    for by in ("errors", "classifier"):
        for context in contexts:
            around = real[-1.0 if context < 0 else 1.0][by]
            found = [likely(by, one[by], around, abs(context)) for one in told]
            yield {
                "kind": "mixture", "seed": trial.seeds[0], "by": by, "context": context,
                "weights": steps,
                "first": [float(chances[0]) for chances in found],
                "second": [float(chances[1]) for chances in found],
            }  # fmt: skip
    yield _mixtures(first, second)


def _tell(learner: VASE, images: Tensor, places: Tensor) -> dict[str, Tensor]:
    """What speaks for some environments, image by image, (places, n): errors there, and chances."""
    parts = torch.split(images, _AT_ONCE)
    return {
        "errors": torch.cat([learner.errors_everywhere(part) for part in parts], 1)[places],
        "classifier": torch.cat([_chances(learner, part) for part in parts], 1)[places],
    }


@torch.no_grad()
def _chances(learner: VASE, images: Tensor) -> Tensor:
    told = learner.net.guess(learner.net.encode(images).seen)
    return softmax(told.masked_fill(~learner.world.known, -torch.inf), 1).T


def likely(by: str, asked: Tensor, around: Tensor, part: float) -> Tensor:
    """How likely each of some environments is for batches, a part of which is of what is around, (places,).

    A batch is judged by its mean; what is asked and what is around are (places, n) each.
    """
    size = min(_BATCH, asked.shape[1])
    whole = asked.shape[1] - asked.shape[1] % size
    few = round(part * size)
    cut = [side[:, :whole].reshape(len(side), -1, size) for side in (around, asked)]
    mean = torch.cat([cut[0][..., :few], cut[1][..., few:]], 2).mean(2)  # (places, batches)
    return (softmax(-mean, 0) if by == "errors" else mean).mean(1)


def _mixtures(first: Scene, second: Scene) -> Row:
    steps = torch.linspace(0, 1, _SHOWN, device=first.images.device)[:, None, None, None]
    sheet = torch.lerp(second.images[:1], first.images[:1], steps).cpu().numpy()
    return picture_row(f"From {second.name} to {first.name}.", draw_sheet({"mixtures": sheet}))
