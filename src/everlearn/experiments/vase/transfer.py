"""Measurements of figure 4 with a trained VASE: decode codes in another environment, classify mixtures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import softmax

from everlearn.experiments.framework.pictures import picture_row
from everlearn.experiments.framework.runner import Runner
from everlearn.experiments.framework.trial import Trial
from everlearn.experiments.vase.image_grid import draw_image_grid
from everlearn.methods.vase import VASE
from everlearn.rows import CrossingRow, MeasurementRow, PictureRow

_SHOWN = 8  # images in a picture
_CHUNK = 1024  # images encoded at a time
_BATCH = 64  # images of which the environment is inferred together


class Scene(NamedTuple):
    """Images of an environment (n, 1, H, W), and the index () that the learner assigns to it."""

    name: str
    images: Tensor
    environment: Tensor

    @property
    def is_inverse(self) -> bool:
        """Whether items are dark on a bright background."""
        return "inverse" in self.name


def load_vase(runner: Runner, trial: Trial) -> VASE:
    """Return the trained VASE of a trial's first seed."""
    learner = runner.learner(trial)
    assert isinstance(learner, VASE)
    return learner


def _scenes(
    runner: Runner, learner: VASE, trial: Trial, names: Sequence[str], images: int
) -> list[Scene]:
    """Return test images of environments, whether or not the trial has learned them."""
    stream = runner.stream(trial, trial.seeds[0]).with_changes(sequence=tuple(names))
    batches = [task.test.batch(slice(0, images), runner.device).images for task in stream]
    return [
        Scene(name, batch, learner.environment(batch))
        for name, batch in zip(names, batches, strict=False)
    ]


def centres(images: Tensor, inverse: bool = False) -> Tensor:
    """Return the centres of mass of all pixels above half of the maximum, as fractions (n, 2) in x and y.

    Args:
        inverse: whether items are dark.
    """
    mass = (1 - images if inverse else images)[:, 0]
    mass = mass * (mass > 0.5 * mass.amax((1, 2), keepdim=True))
    positions = (torch.arange(mass.shape[-1], device=mass.device) + 0.5) / mass.shape[-1]
    x = (mass.sum(1) * positions).sum(1)
    y = (mass.sum(2) * positions).sum(1)
    return torch.stack([x, y], 1) / mass.sum((1, 2)).clamp(min=1e-6)[:, None]


def cross(
    runner: Runner, trials: Sequence[Trial], pairs: Sequence[Sequence[str]], images: int
) -> Iterator[MeasurementRow]:
    """Decode images of each of two environments in the other, for one pair per trial."""
    for trial, pair in zip(trials, pairs, strict=True):
        learner = load_vase(runner, trial)
        first, second = _scenes(runner, learner, trial, pair, images)
        for source, target in ((first, second), (second, first)):
            yield _crossing_row(learner, source, target, trial.seeds[0])
            yield _crossing_picture(learner, source, target)


def _crossing_row(learner: VASE, source: Scene, target: Scene, seed: int) -> CrossingRow:
    """Measure how far items move when decoded in their own environment and in the other."""
    true = centres(source.images, source.is_inverse)
    within = centres(_decode_in(learner, source, source), source.is_inverse)
    across = centres(_decode_in(learner, source, target), target.is_inverse)
    return {
        "kind": "crossing",
        "source": source.name,
        "target": target.name,
        "within": _squared_distance(within, true),
        "across": _squared_distance(across, true),
        "any": _squared_distance(true.roll(1, 0), true),  # the position of another image instead
        "total": len(true),
        "seed": seed,
    }


def _squared_distance(found: Tensor, true: Tensor) -> float:
    return float((found - true).double().square().sum())


@torch.no_grad()
def _decode_in(learner: VASE, source: Scene, target: Scene) -> Tensor:
    """Encode images of one environment and decode them in another."""
    environment = target.environment
    decoded = [
        learner.decode(learner.sample(*learner.codes(chunk), environment), environment)
        for chunk in torch.split(source.images, _CHUNK)
    ]
    return torch.cat(decoded).sigmoid()


def _crossing_picture(learner: VASE, source: Scene, target: Scene) -> PictureRow:
    shown = source._replace(images=source.images[:_SHOWN])
    rows = {
        source.name: shown.images,
        "reconstructed": _decode_in(learner, shown, shown),
        f"as {target.name}": _decode_in(learner, shown, target),
    }
    grid = draw_image_grid({label: images.cpu().numpy() for label, images in rows.items()})
    return picture_row(f"Codes of {source.name}, decoded there and as {target.name}.", grid)


def mix(
    runner: Runner,
    trial: Trial,
    mixed: Sequence[str],
    images: int,
    weights: int,
    contexts: Sequence[float],
) -> Iterator[MeasurementRow]:
    """Infer the environment of mixtures of two environments' images, in batches with images of one."""
    learner = load_vase(runner, trial)
    first, second = _scenes(runner, learner, trial, mixed, images)
    steps = torch.linspace(0, 1, weights).tolist()
    pair = torch.stack([first.environment, second.environment])
    evidence = [
        _evidence(learner, torch.lerp(second.images, first.images, step), pair) for step in steps
    ]
    for by in ("errors", "classifier"):
        for context in contexts:
            unmixed = evidence[0 if context < 0 else -1][by]
            found = [probabilities(by, step[by], unmixed, abs(context)) for step in evidence]
            yield {
                "kind": "mixture",
                "seed": trial.seeds[0],
                "by": by,
                "context": context,
                "weights": steps,
                "first": [float(pair_probabilities[0]) for pair_probabilities in found],
                "second": [float(pair_probabilities[1]) for pair_probabilities in found],
            }
    yield _mixture_picture(first, second)


def _evidence(learner: VASE, images: Tensor, environments: Tensor) -> dict[str, Tensor]:
    """Return the error and the classifier's probability of each image in each environment, (E, n)."""
    chunks = torch.split(images, _CHUNK)
    errors = torch.cat([learner.errors_everywhere(chunk) for chunk in chunks], 1)
    probability = torch.cat([_classify(learner, chunk) for chunk in chunks], 1)
    return {"errors": errors[environments], "classifier": probability[environments]}


@torch.no_grad()
def _classify(learner: VASE, images: Tensor) -> Tensor:
    logits = learner.net.environment_logits(learner.net.encode(images).features)
    return softmax(logits.masked_fill(~learner.environments.known, -torch.inf), 1).T


def probabilities(by: str, mixed: Tensor, unmixed: Tensor, fraction: float) -> Tensor:
    """Return the probability (E,) of each environment for batches that contain some unmixed images.

    A batch is judged by its mean.

    Args:
        mixed: evidence of the mixtures, (E, n).
        unmixed: evidence of images of one environment, (E, n).
        fraction: fraction of a batch that is unmixed.
    """
    size = min(_BATCH, mixed.shape[1])
    complete = mixed.shape[1] - mixed.shape[1] % size
    count = round(fraction * size)
    unmixed_batches, mixed_batches = (
        evidence[:, :complete].reshape(len(evidence), -1, size) for evidence in (unmixed, mixed)
    )
    batches = torch.cat([unmixed_batches[..., :count], mixed_batches[..., count:]], 2)
    mean = batches.mean(2)  # (E, batches)
    return (softmax(-mean, 0) if by == "errors" else mean).mean(1)


def _mixture_picture(first: Scene, second: Scene) -> PictureRow:
    steps = torch.linspace(0, 1, _SHOWN, device=first.images.device)[:, None, None, None]
    mixtures = torch.lerp(second.images[:1], first.images[:1], steps).cpu().numpy()
    grid = draw_image_grid({"mixtures": mixtures})
    return picture_row(f"From {second.name} to {first.name}.", grid)
