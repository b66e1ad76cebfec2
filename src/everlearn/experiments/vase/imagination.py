"""Measurements of figure 5: train probes on images that a VASE imagines, test them on moving items."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from everlearn.core.random import Purpose
from everlearn.experiments.framework.pictures import picture_row
from everlearn.experiments.framework.runner import Runner
from everlearn.experiments.framework.trial import Trial
from everlearn.experiments.vase.fig5 import CODES, MOVING, PAST, PRESENT, STILL
from everlearn.experiments.vase.image_grid import draw_image_grid
from everlearn.experiments.vase.transfer import load_vase
from everlearn.methods.vase import VASE
from everlearn.methods.vase.imagine import explore, free_latents, imagine
from everlearn.nets.seeded import seeded_generator
from everlearn.rows import MeasurementRow, PictureRow, TrainingSetRow
from everlearn.stream import Batch
from everlearn.training.probes import Probes

_SHOWN = 8  # images in a picture
_CHUNK = 2000  # images encoded at a time
_SUBSTREAM = 3  # of random draws; VASE uses 0 to 2


def probe(
    runner: Runner, trials: Sequence[Trial], pair: Sequence[str], items: int, tests: int
) -> Iterator[MeasurementRow]:
    """Train a probe on each training set and test it on moving items, for every seed.

    Args:
        pair: environments with the same items, still and moving.
        items: number of training images.
        tests: largest number of test images.
    """
    for trial in trials:
        seed = trial.seeds[0]
        learner = load_vase(runner, trial)
        still_task, moving_task = runner.stream(trial, seed).with_changes(sequence=tuple(pair))
        still = still_task.train.batch(slice(0, items), runner.device)
        moving = moving_task.train.batch(slice(0, items), runner.device)
        test = moving_task.test.batch(slice(0, tests), runner.device)
        yield from _test_probes(learner, still, moving, test, seed)
        free = free_latents(learner, learner.environment(still.images))
        yield {"kind": "varied_latents", "seed": seed, "latents": free.nonzero().flatten().tolist()}
        if trial is trials[0]:
            yield _picture(learner, still, moving, seed)


def _test_probes(
    learner: VASE, still: Batch, moving: Batch, test: Batch, seed: int
) -> Iterator[TrainingSetRow]:
    """Train one probe per training set, and count its correct answers."""
    generator = seeded_generator(seed, Purpose.VASE, 0, learner.device, _SUBSTREAM)
    training_sets = {
        STILL: _encode(learner, still.images, generator),
        **_imagine(learner, still.images, generator),
        MOVING: _encode(learner, moving.images, generator),
    }
    labels = [moving.labels if name == MOVING else still.labels for name in training_sets]
    codes = torch.stack([*training_sets.values()])
    classes = dict.fromkeys(range(len(training_sets)), int(torch.cat(labels).max()) + 1)
    probes = Probes(classes, codes.shape[-1], codes.shape[1], seed, learner.device)
    probes.learn(codes, torch.stack(labels), torch.zeros_like(codes[..., :2]))
    test_codes = _encode(learner, test.images, generator)
    for index, name in enumerate(training_sets):
        correct = probes.predict(index, test_codes)[0] == test.labels
        yield {
            "kind": "training_set",
            "seed": seed,
            "training_set": name,
            "correct": int(correct.sum()),
            "total": len(test.labels),
        }


def _imagine(learner: VASE, images: Tensor, generator: torch.Generator) -> dict[str, Tensor]:
    """Return imagined codes (n, z), directly and by encoding imagined images."""
    codes: dict[str, list[Tensor]] = {CODES: [], PRESENT: [], PAST: []}
    for chunk in torch.split(images, _CHUNK):
        noise = _noise(learner, 2, len(chunk), generator)
        codes[CODES].append(explore(learner, chunk, noise))
        for name, past in ((PRESENT, False), (PAST, True)):
            imagined = imagine(learner, chunk, noise, past)
            codes[name].append(_encode(learner, imagined, generator))
    return {name: torch.cat(chunks) for name, chunks in codes.items()}


@torch.no_grad()
def _encode(learner: VASE, images: Tensor, generator: torch.Generator) -> Tensor:
    """Sample codes z ~ q(z | image), (n, z)."""
    codes = [learner.codes(chunk) for chunk in torch.split(images, _CHUNK)]
    mean, deviation = (torch.cat(chunks) for chunks in zip(*codes, strict=True))
    return mean + deviation * _noise(learner, 1, len(mean), generator)[0]


def _noise(learner: VASE, draws: int, count: int, generator: torch.Generator) -> Tensor:
    shape = (draws, count, learner.settings.latent_dim)
    return torch.randn(shape, generator=generator, device=learner.device)


def _picture(learner: VASE, still: Batch, moving: Batch, seed: int) -> PictureRow:
    """Draw some items, and what VASE imagines of them."""
    images = still.images
    generator = seeded_generator(seed, Purpose.VASE, 1, learner.device, _SUBSTREAM)
    noise = _noise(learner, 2, len(images), generator)
    rows = {
        STILL: images,
        PRESENT: imagine(learner, images, noise),
        "decoded as in the past": imagine(learner, images, noise, past=True),
        MOVING: moving.images,
    }
    grid = draw_image_grid({label: part[:_SHOWN].cpu().numpy() for label, part in rows.items()})
    return picture_row("Items, what VASE imagines of them, and items that move.", grid)
