"""Evaluation of codes: what small probe nets read from the learner's codes, environment by environment."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from everlearn.core.random import Purpose
from everlearn.evaluation.disentanglement import measure_disentanglement
from everlearn.evaluation.environments import Environment, Environments, encode
from everlearn.evaluation.latents import describe_latents
from everlearn.evaluation.plan import Plan
from everlearn.learner import Encodes, Learner, Reconstructs
from everlearn.nets.seeded import seeded_generator
from everlearn.rows import CodesRow, DisentanglementRow, LatentsRow, Row
from everlearn.stream import TaskStream
from everlearn.training.probes import Probes

# Substreams of the noise that codes are drawn with, beside those of the probes' initial weights.
_TRAIN_SUBSTREAM = 2
_TEST_SUBSTREAM = 3


class ProbeShape(NamedTuple):
    """What probes are made for: the number of classes of each task, and the size of the codes."""

    classes: dict[int, int]
    inputs: int


class CodeEvaluator:
    """Evaluates the codes of one learner; images, noise and initial weights are the same each time."""

    def __init__(self, stream: TaskStream, learner: Learner, plan: Plan, tasks: int | None) -> None:
        """Draw nothing yet.

        Args:
            learner: one that encodes, if the plan evaluates codes.
            tasks: the number of tasks in the run; None if it is endless.
        """
        self.learner = learner
        self.plan = plan
        self.tasks = tasks
        self._environments = Environments(
            stream, plan.code_train_images, plan.code_test_images, learner.device, plan.split
        )
        self._probes: tuple[ProbeShape, Probes] | None = None

    def probe(self, step: int, learned: int) -> Iterator[CodesRow]:
        """Train probes on the codes as they are while task `learned` is learned, and test them."""
        tasks = self.plan.tasks_to_encode(learned, self.tasks)
        environments = self._environments.of_tasks(tasks)
        if not environments:
            return
        batches = zip(*(self._training_set(each) for each in environments), strict=True)
        codes, labels, positions = (torch.stack(column) for column in batches)
        probes = self._get_probes(environments, codes.shape[-1])
        probes.learn(codes, labels, positions)
        results = [self._test(probes, number, each) for number, each in enumerate(environments)]
        for environment, result in zip(environments, torch.stack(results).tolist(), strict=True):
            yield self._row(step, learned, environment, result)

    def after(self, step: int, learned: int) -> Iterator[Row]:
        """Run the evaluations of codes that are due after a task."""
        if self.plan.code_probe_every:
            yield from self.probe(step, learned)
        if not (self.plan.describe_latents or self.plan.disentanglement):
            return
        environments = self._environments.of_tasks(self.plan.tasks_to_encode(learned, None))
        if self.plan.describe_latents:
            yield from self._describe_latents(environments, step, learned)
        if self.plan.disentanglement:
            yield from self._measure_disentanglement(environments, step, learned)

    def _describe_latents(
        self, environments: list[Environment], step: int, learned: int
    ) -> Iterator[LatentsRow]:
        for environment in environments:
            yield describe_latents(self._encoder, environment, step, learned)

    def _measure_disentanglement(
        self, environments: list[Environment], step: int, learned: int
    ) -> Iterator[DisentanglementRow]:
        for environment in environments:
            row = measure_disentanglement(self._encoder, environment, step, learned)
            if row is not None:
                yield row

    @property
    def _encoder(self) -> Encodes:
        assert isinstance(self.learner, Encodes)  # check_codes has made sure
        return self.learner

    def _training_set(self, environment: Environment) -> tuple[Tensor, Tensor, Tensor]:
        """Return codes, labels and positions; if there are too few images, they are repeated."""
        means, deviations = encode(self._encoder, environment.train)
        rows = torch.arange(self.plan.code_train_images, device=means.device) % len(means)
        codes = self._sample(means[rows], deviations[rows], environment, _TRAIN_SUBSTREAM)
        labels = environment.labels(environment.train)[rows]
        return codes, labels, environment.positions(environment.train)[rows]

    def _sample(
        self, means: Tensor, deviations: Tensor, environment: Environment, substream: int
    ) -> Tensor:
        """Draw z ~ N(mean, deviation^2)."""
        task = environment.task
        device = self.learner.device
        rng = seeded_generator(task.seed, Purpose.PROBES, task.index, device, substream)
        return means + deviations * torch.randn(means.shape, generator=rng, device=device)

    def _get_probes(self, environments: list[Environment], inputs: int) -> Probes:
        """Return probes for some environments, made anew only if these have changed."""
        classes = {each.task.index: len(each.classes) for each in environments}
        shape = ProbeShape(classes, inputs)
        if self._probes is None or self._probes[0] != shape:
            images = self.plan.code_train_images
            seed = environments[0].task.seed
            self._probes = shape, Probes(classes, inputs, images, seed, self.learner.device)
        return self._probes[1]

    def _test(self, probes: Probes, number: int, environment: Environment) -> Tensor:
        """Return correct answers, squared errors of x and y, and reconstruction error: (4,)."""
        means, deviations = encode(self._encoder, environment.test)
        codes = self._sample(means, deviations, environment, _TEST_SUBSTREAM)
        labels, positions = probes.predict(number, codes)
        correct = (labels == environment.labels(environment.test)).sum().double()
        errors = (positions - environment.positions(environment.test)).double().square().sum(0)
        return torch.stack([correct, *errors, self._reconstruction_error(environment)])

    def _reconstruction_error(self, environment: Environment) -> Tensor:
        """Sum the errors of all test images; 0 for a learner that does not reconstruct."""
        total = torch.zeros((), dtype=torch.float64, device=self.learner.device)
        if isinstance(self.learner, Reconstructs):
            with torch.no_grad():
                for images in environment.test.batches():
                    total = total + self.learner.reconstruction_errors(images).double().sum()
        return total

    def _row(
        self, step: int, learned: int, environment: Environment, result: list[float]
    ) -> CodesRow:
        correct, x, y, error = result
        placed = environment.has_positions and math.isfinite(x + y)
        reconstructs = isinstance(self.learner, Reconstructs) and math.isfinite(error)
        return {
            "kind": "codes",
            "step": step,
            "learned": learned,
            "tested": environment.task.index,
            "correct": int(correct),
            "total": len(environment.test.rows),
            "squared_errors": [x, y] if placed else None,
            "reconstruction_error": error if reconstructs else None,
        }


def check_codes(learner: Learner, plan: Plan) -> None:
    """Raise where a plan evaluates the codes of a learner that has none."""
    names = ("code_probe_every", "describe_latents", "disentanglement")
    requested = [name for name in names if getattr(plan, name)]
    if requested and not isinstance(learner, Encodes):
        raise ValueError(
            f"{', '.join(requested)} need codes, and {type(learner).__name__} makes none; leave them out, "
            "or give the learner a method codes(images), as dcl and vase have"
        )
