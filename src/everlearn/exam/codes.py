"""Exams of codes: what small nets read out of the codes of images, environment by environment."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from everlearn.exam.disentangled import measure_factors
from everlearn.exam.environments import Environment, Environments, encode
from everlearn.exam.latents import describe_latents
from everlearn.exam.one_shot import Row
from everlearn.exam.plan import Plan
from everlearn.learner import Encodes, Reconstructs
from everlearn.nets.probe import Probes
from everlearn.nets.seeded import chance
from everlearn.philox import Purpose

_TRAIN, _TEST = 2, 3  # lanes of noise, beside those of first weights
_AFTER = {"latents": describe_latents, "disentanglement": measure_factors}


class Codes:
    """Examines the codes of one learner; images, noise and first weights are the same each time."""

    def __init__(self, stream: Any, learner: Any, plan: Plan, tasks: int | None) -> None:
        """Fix what is asked.

        Args:
            learner: one that encodes, where the plan asks for codes.
            tasks: how many tasks the run has; None for no end.
        """
        self.learner, self.plan, self.tasks = learner, plan, tasks
        self._environments = Environments(stream, plan.code_images, plan.code_tests, learner.device)
        self._probes: tuple[Any, Probes] | None = None

    def probe(self, step: int, learned: int) -> Iterator[Row]:
        """Train probes on codes as they are while task `learned` is learned, and test them."""
        several = self._environments.some(self.plan.coded(learned, self.tasks))
        if not several:
            return
        lessons = zip(*(self._lesson(one) for one in several), strict=True)
        codes, labels, places = (torch.stack(column) for column in lessons)
        probes = self._ready(several, codes.shape[-1])
        probes.learn(codes, labels, places)
        counts = [self._test(probes, number, one) for number, one in enumerate(several)]
        for one, found in zip(several, torch.stack(counts).tolist(), strict=True):
            yield _row(step, learned, one, found, isinstance(self.learner, Reconstructs))

    def after(self, step: int, learned: int) -> Iterator[Row]:
        """What the plan asks for after a task."""
        if self.plan.codes:
            yield from self.probe(step, learned)
        asked = {kind: exam for kind, exam in _AFTER.items() if getattr(self.plan, kind)}
        met = self._environments.some(self.plan.coded(learned, None)) if asked else []
        for kind, exam in asked.items():
            for row in filter(None, (exam(self.learner, one) for one in met)):
                yield {"kind": kind, "step": step, "learned": learned, **row}

    def _lesson(self, one: Environment) -> tuple[Tensor, Tensor, Tensor]:
        """Codes, labels and places of an environment; where images are few, all come again and again."""
        means, deviations = encode(self.learner, one.train)
        again = torch.arange(self.plan.code_images, device=means.device) % len(means)
        codes = self._draw(means[again], deviations[again], one, _TRAIN)
        return codes, one.labels(one.train)[again], one.places(one.train)[again]

    def _draw(self, means: Tensor, deviations: Tensor, one: Environment, lane: int) -> Tensor:
        """Draw codes from what is known of them: z ~ q."""
        task, device = one.task, self.learner.device
        rng = chance(task.seed, Purpose.PROBES, task.index, device, lane)
        return means + deviations * torch.randn(means.shape, generator=rng, device=device)

    def _ready(self, several: list[Environment], inputs: int) -> Probes:
        """Probes of some environments, made anew only where these are others than before."""
        classes = {one.task.index: len(one.classes) for one in several}
        if self._probes is None or self._probes[0] != (classes, inputs):
            items, seed = self.plan.code_images, several[0].task.seed
            probes = Probes(classes, inputs, items, seed, self.learner.device)
            self._probes = (classes, inputs), probes
        return self._probes[1]

    def _test(self, probes: Probes, number: int, one: Environment) -> Tensor:
        """Right answers, squared errors of x and y, and nats lost, (4,) on the device."""
        codes = self._draw(*encode(self.learner, one.test), one, _TEST)
        labels, places = probes.answer(number, codes)
        right = (labels == one.labels(one.test)).sum().double()
        squares = (places - one.places(one.test)).double().square().sum(0)
        return torch.stack([right, *squares, self._errors(one)])

    def _errors(self, one: Environment) -> Tensor:
        """Nats lost of all test images; 0 where a learner cannot tell."""
        lost = torch.zeros((), dtype=torch.float64, device=self.learner.device)
        if isinstance(self.learner, Reconstructs):
            with torch.no_grad():
                for images in one.test.parts():
                    lost = lost + self.learner.errors(images).double().sum()
        return lost


def _row(step: int, learned: int, one: Environment, found: list[float], rebuilds: bool) -> Row:
    right, x, y, nats = found
    return {
        "kind": "codes",
        "step": step,
        "learned": learned,
        "tested": one.task.index,
        "right": int(right),
        "total": len(one.test.rows),
        "squares": [x, y] if one.is_placed and math.isfinite(x + y) else None,
        "nats": nats if rebuilds and math.isfinite(nats) else None,
    }


def check_codes(learner: Any, plan: Plan) -> None:
    """Raise where a plan asks for codes of a learner that has none."""
    asked = [name for name in ("codes", "latents", "disentanglement") if getattr(plan, name)]
    if asked and not isinstance(learner, Encodes):
        raise ValueError(
            f"exams ({', '.join(asked)}) are of codes, and {type(learner).__name__} makes none; leave "
            "them out, or give the learner a verb codes(images), as dcl and vase have"
        )
