"""Trains probes on what a VASE imagines, and tests them on what moves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from everlearn.experiments.lab import Lab
from everlearn.experiments.pictures import picture_row
from everlearn.experiments.trial import Trial
from everlearn.experiments.vase_fig5 import CODES, HERE, MOVING, PAST, STILL
from everlearn.experiments.vase_sheets import draw_sheet
from everlearn.methods.vase import VASE
from everlearn.methods.vase.imagine import explore, imagine, varied
from everlearn.nets.probe import Probes
from everlearn.nets.seeded import chance
from everlearn.philox import Purpose
from everlearn.results import Row
from everlearn.stream import Batch

_SHOWN, _AT_ONCE = 8, 2000
_LANE = 3  # of noise, beside those of learning, of samples and of what latents bear


def probe(
    lab: Lab, trials: Sequence[Trial], pair: Sequence[str], items: int, tests: int
) -> Iterator[Row]:
    """Train a probe on each kind of lesson and test all on items that move, seed by seed.

    Args:
        pair: environments of the same items, still and moving.
        items: to learn from.
        tests: to test on, at most.
    """
    for trial in trials:
        seed = trial.seeds[0]
        learner: VASE = lab.learner(trial, seed)
        still, moving = lab.stream(trial, seed).with_changes(sequence=tuple(pair))
        shown, real = (task.train.batch(slice(0, items), lab.device) for task in (still, moving))
        asked = moving.test.batch(slice(0, tests), lab.device)
        yield from _test(learner, shown, real, asked, seed)
        free = varied(learner, learner.environment(shown.images))
        yield {"kind": "latents", "seed": seed, "latents": free.nonzero().flatten().tolist()}
        if trial is trials[0]:
            yield _picture(learner, shown, real, seed)


def _test(learner: VASE, still: Batch, moving: Batch, asked: Batch, seed: int) -> Iterator[Row]:
    """Right answers of a probe a lesson."""
    rng = chance(seed, Purpose.VASE, 0, learner.device, _LANE)
    lessons = {
        STILL: _encode(learner, still.images, rng),
        **_imagine(learner, still.images, rng),
        MOVING: _encode(learner, moving.images, rng),
    }
    labels = [moving.labels if lesson == MOVING else still.labels for lesson in lessons]
    codes, count = torch.stack([*lessons.values()]), len(asked.labels)
    classes = dict.fromkeys(range(len(lessons)), int(torch.cat(labels).max()) + 1)
    probes = Probes(classes, codes.shape[-1], codes.shape[1], seed, learner.device)
    probes.learn(codes, torch.stack(labels), torch.zeros_like(codes[..., :2]))
    questions = _encode(learner, asked.images, rng)
    for number, lesson in enumerate(lessons):
        right = int((probes.answer(number, questions)[0] == asked.labels).sum())
        yield {"kind": "lesson", "seed": seed, "lesson": lesson, "right": right, "total": count}


def _imagine(learner: VASE, images: Tensor, rng: torch.Generator) -> dict[str, Tensor]:
    """Codes of what is imagined of images, (n, z) each: as they are, and by way of images."""
    found: dict[str, list[Tensor]] = {CODES: [], HERE: [], PAST: []}
    for part in torch.split(images, _AT_ONCE):
        noise = _noise(learner, 2, len(part), rng)
        found[CODES].append(explore(learner, part, noise))
        for lesson, past in ((HERE, False), (PAST, True)):
            found[lesson].append(_encode(learner, imagine(learner, part, noise, past), rng))
    return {lesson: torch.cat(parts) for lesson, parts in found.items()}


@torch.no_grad()
def _encode(learner: VASE, images: Tensor, rng: torch.Generator) -> Tensor:
    """Draw codes of images, (n, z): z ~ q."""
    codes = [learner.codes(part) for part in torch.split(images, _AT_ONCE)]
    mean, deviation = (torch.cat(parts) for parts in zip(*codes, strict=True))
    return mean + deviation * _noise(learner, 1, len(mean), rng)[0]


def _noise(learner: VASE, times: int, count: int, rng: torch.Generator) -> Tensor:
    shape = (times, count, learner.settings.z)
    return torch.randn(shape, generator=rng, device=learner.device)


def _picture(learner: VASE, still: Batch, moving: Batch, seed: int) -> Row:
    """Some items, and what is imagined of them."""
    images, rng = still.images, chance(seed, Purpose.VASE, 1, learner.device, _LANE)
    noise = _noise(learner, 2, len(images), rng)
    rows = {
        STILL: images,
        HERE: imagine(learner, images, noise),
        "drawn as in the past": imagine(learner, images, noise, past=True),
        MOVING: moving.images,
    }
    sheet = draw_sheet({words: part[:_SHOWN].cpu().numpy() for words, part in rows.items()})
    return picture_row("Items, what is imagined of them, and items that move.", sheet)
