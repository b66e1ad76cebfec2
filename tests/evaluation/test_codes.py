"""Evaluation of codes: probes on known codes, latents, factors; the learner is not changed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from everlearn import Canvas, Gaussians, Plan, Stream, build
from everlearn.evaluate import run
from everlearn.evaluation import Evaluator, check_plan
from everlearn.evaluation.disentanglement import type_of, varying_factors
from everlearn.evaluation.environments import Environment, Environments, encode
from everlearn.evaluation.latents import describe_latents
from everlearn.factors import Interval, Product, Values, continuous_space
from everlearn.learner import Encodes, InfersEnvironments, Reconstructs
from everlearn.metrics import summarise
from everlearn.runs import launch as runs

pytestmark = pytest.mark.integration

POINTS = Gaussians(tasks=3, classes_per_task=3, dimensions=4, train=20, val=0, test=10)
SHAPES = Stream(
    tasks=2, classes_per_task=3, canvas=Canvas(8), split=(60, 0, 30), factors=continuous_space()
)
FEW: dict[str, Any] = {"code_train_images": 60, "code_test_images": 20}


class Flat:
    """Takes the first five values of an image for its code; two steps per task change nothing."""

    device = "cpu"
    batch_size = 1

    def __init__(self, deviation: float = 0.0) -> None:
        self.deviation = deviation

    def learn(self, task: Any) -> Iterator[float]:
        yield from (0.0, 0.0)

    def predict(self, images: Tensor, among: Sequence[int] | None = None) -> Tensor:
        return torch.zeros(len(images), dtype=torch.int64)

    def codes(self, images: Tensor) -> tuple[Tensor, Tensor]:
        codes = images.flatten(1)[:, :5]
        return codes, torch.full_like(codes, self.deviation)

    def state(self) -> dict[str, Any]:
        return {}

    def load_state(self, state: dict[str, Any]) -> None:
        pass


class Knowing(Flat):
    """Knows every image of a stream, and encodes its class and position."""

    def __init__(self, stream: Any) -> None:
        super().__init__()
        self.known: dict[bytes, list[float]] = {}
        for task in stream:
            for split in (task.train, task.test):
                batch = split.batch(slice(None))
                codes = [batch.labels % 3, batch.factors.x, batch.factors.y]
                for image, code in zip(batch.images, torch.stack(codes, 1), strict=True):
                    self.known[image.numpy().tobytes()] = code.tolist()

    def codes(self, images: Tensor) -> tuple[Tensor, Tensor]:
        codes = 3 * torch.tensor([self.known[image.numpy().tobytes()] for image in images])
        return codes, torch.zeros_like(codes)


class Full(Flat):
    """Reconstructs, and infers environments."""

    def reconstruction_errors(self, images: Tensor) -> Tensor:
        return images.flatten(1).square().sum(1)

    def environment(self, images: Tensor) -> Tensor:
        return torch.tensor(len(images))

    def mask(self, images: Tensor) -> Tensor:
        return torch.tensor([True, False, True, True])

    def used(self, images: Tensor) -> Tensor:
        return torch.tensor([True, True, False, True])


def rows_of(kind: str, stream: Any, learner: Any, **plan: Any) -> list[dict[str, Any]]:
    rows = run(stream, learner, Plan(**{**FEW, **plan}))
    return [row for row in rows if row["kind"] == kind]


def environment(stream: Any, index: int = 0, images: int = 60, tests: int = 20) -> Environment:
    [found] = Environments(stream, images, tests, "cpu").of_tasks([index])
    return found


def test_protocols_are_recognised_by_their_methods() -> None:
    assert isinstance(Full(), Encodes)
    assert isinstance(Full(), Reconstructs)
    assert isinstance(Full(), InfersEnvironments)
    assert isinstance(Flat(), Encodes)
    assert not isinstance(Flat(), Reconstructs)
    assert not isinstance(Flat(), InfersEnvironments)


def test_codes_are_probed_before_learning_at_steps_and_after_every_task() -> None:
    rows = rows_of("codes", POINTS, Flat(), code_probe_every=3)
    moments = [(row["step"], row["learned"], row["tested"]) for row in rows]
    # Two steps per task: the third and the sixth are the first of task 1 and the last of task 2.
    assert moments == [
        (0, -1, 0),
        (2, 0, 0),
        *((3, 1, tested) for tested in (0, 1)),
        *((4, 1, tested) for tested in (0, 1)),
        *((6, 2, tested) for tested in (0, 1, 2)),
        *((6, 2, tested) for tested in (0, 1, 2)),
    ]
    assert rows_of("codes", POINTS, Flat()) == []


def test_all_tasks_are_probed_from_the_start_with_code_all_tasks() -> None:
    rows = rows_of("codes", POINTS, Flat(), code_probe_every=100, code_all_tasks=True)
    assert [row["tested"] for row in rows] == [0, 1, 2] * 4
    limited = {"code_all_tasks": True, "max_test_tasks": 2}
    few = rows_of("codes", POINTS, Flat(), code_probe_every=100, **limited)
    assert [row["tested"] for row in few] == [0, 2] * 4


def test_a_row_holds_counts_and_none_for_what_was_not_measured() -> None:
    row = rows_of("codes", POINTS, Flat(), code_probe_every=100)[0]
    assert row == {
        **{"kind": "codes", "step": 0, "learned": -1, "tested": 0, "correct": row["correct"]},
        **{"total": 20, "squared_errors": None, "reconstruction_error": None},
    }
    assert 0 <= row["correct"] <= 20


def test_probes_read_codes_of_class_and_position() -> None:
    """Fails if codes, labels and positions are not in one order."""
    rows = rows_of("codes", SHAPES, Knowing(SHAPES), code_probe_every=100, code_train_images=1500)
    assert [row["tested"] for row in rows] == [0, 0, 0, 1]
    for row in rows:
        assert row["correct"] >= 18
        # 20 positions on [0, 1] with variance 1 / 12: far below the 1.7 of a constant guess.
        assert all(0 < square < 0.2 for square in row["squared_errors"])


def test_positions_go_from_0_to_1_and_are_left_out_if_they_do_not_vary() -> None:
    moving = environment(SHAPES)
    factors = SHAPES[0].train.factors
    assert moving.has_positions
    positions = moving.positions(moving.train)
    order = moving.train.rows.numpy()
    for column, found in zip((factors.x, factors.y), positions.T, strict=True):
        expected = (column - column.min()) / (column.max() - column.min())
        np.testing.assert_allclose(found.numpy(), expected[order], rtol=1e-5, atol=1e-6)
    fixed_x = SHAPES.with_changes(factors=Product(x=Values((0.5,)), y=Interval(0.0, 1.0)))
    still = environment(fixed_x)
    assert not still.has_positions
    assert not still.positions(still.test).any()
    assert rows_of("codes", fixed_x, Flat(), code_probe_every=100)[0]["squared_errors"] is None


def test_images_are_the_same_each_time_and_shuffled() -> None:
    first = environment(POINTS, 1)
    second = environment(POINTS, 1)
    assert torch.equal(first.test.rows, second.test.rows)
    assert len(first.test.rows.unique()) == 20
    assert first.classes.tolist() == [3, 4, 5]
    assert sorted(first.labels(first.train).bincount().tolist()) == [20, 20, 20]
    assert set(first.train.labels[:20].tolist()) == {3, 4, 5}
    batch = POINTS[1].train.batch(first.train.rows.numpy())
    assert torch.equal(torch.cat([*first.train.batches()]), batch.images)
    assert batch.labels.tolist() == first.train.labels.tolist()


def test_too_few_images_are_repeated_with_other_noise() -> None:
    exact = rows_of("codes", POINTS, Flat(), code_probe_every=100, code_train_images=600)
    noisy = rows_of("codes", POINTS, Flat(1.0), code_probe_every=100, code_train_images=600)
    assert len(exact) == len(noisy)
    plan = Plan(code_probe_every=1, code_train_images=130)
    evaluator = Evaluator(POINTS, Flat(1.0), plan, 3)._codes
    [first] = evaluator._environments.of_tasks([0])
    codes, labels, _ = evaluator._training_set(first)
    assert torch.equal(labels[:60], labels[60:120])
    assert not torch.equal(codes[:60], codes[60:120])
    noise = codes - encode(evaluator.learner, first.train)[0][torch.arange(130) % 60]
    assert noise.std() == pytest.approx(1, abs=0.1)


def test_evaluations_agree_bit_for_bit_and_leave_the_learner_unchanged() -> None:
    learner = build("dcl", SHAPES, "cpu", net="convnet", batch_size=16, epochs=1)
    next(iter(learner.learn(SHAPES[0])))
    plan = Plan(code_probe_every=1, describe_latents=True, code_all_tasks=True, **FEW)
    evaluator = Evaluator(SHAPES, learner, plan, 2)

    def everything() -> list[Tensor]:
        kept = (*learner.net.state_dict().values(), torch.random.get_rng_state())
        return [tensor.clone() for tensor in kept]

    before = everything()
    first = list(evaluator._codes.after(1, 0))
    assert list(evaluator._codes.after(1, 0)) == first
    assert list(Evaluator(SHAPES, learner, plan, 2)._codes.after(1, 0)) == first
    assert all(map(torch.equal, before, everything()))
    assert learner.net.training


def test_the_codes_of_dcl_are_its_affine_maps() -> None:
    learner = build("dcl", SHAPES, "cpu", net="convnet", batch_size=16)
    images = SHAPES[0].test.batch(slice(0, 4)).images
    means, deviations = learner.codes(images)
    assert torch.equal(means.reshape(4, 2, 3), learner.theta(images))
    assert deviations.shape == (4, 6)
    assert not deviations.any()


def test_reconstruction_errors_are_summed_over_all_test_images(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    at_once = rows_of("codes", POINTS, Full(), code_probe_every=100)
    monkeypatch.setattr("everlearn.evaluation.environments._BATCH", 7)
    batched = rows_of("codes", POINTS, Full(), code_probe_every=100)
    images = torch.cat([*environment(POINTS).test.batches()])
    expected = float(images.double().square().sum())
    assert at_once[0]["reconstruction_error"] == pytest.approx(expected, rel=1e-6)
    assert batched[0]["reconstruction_error"] == pytest.approx(expected, rel=1e-6)
    assert [row["correct"] for row in batched] == [row["correct"] for row in at_once]


def test_latents_are_described_in_every_environment_seen() -> None:
    rows = rows_of("latents", POINTS, Full(0.5), describe_latents=True)
    assert [(row["learned"], row["tested"]) for row in rows] == [
        (0, 0), (1, 0), (1, 1), (2, 0), (2, 1), (2, 2),
    ]  # fmt: skip
    means = torch.cat([*environment(POINTS).test.batches()]).flatten(1).double()
    kl = 0.5 * (means.square().mean(0) + 0.25 - 1 - np.log(0.25))
    assert rows[0] == {
        **{"kind": "latents", "step": 2, "learned": 0, "tested": 0, "environment": 20},
        **{"kl": pytest.approx(kl.tolist()), "used": [1, 1, 0, 1], "mask": [1, 0, 1, 1]},
        **{"x": None, "y": None},
    }


def test_latents_are_correlated_with_positions_that_vary() -> None:
    shapes = environment(SHAPES)
    row = describe_latents(Flat(1.0), shapes)
    means = torch.cat([*shapes.test.batches()]).flatten(1)[:, :5].double().numpy()
    for name, column in (("x", shapes.test.factors.x), ("y", shapes.test.factors.y)):
        varying = [place for place in range(5) if np.ptp(means[:, place])]
        assert varying
        expected = [np.corrcoef(means[:, place], column)[0, 1] for place in varying]
        assert [row[name][place] for place in varying] == pytest.approx(expected)
        assert all(row[name][place] is None for place in range(5) if place not in varying)
    assert (row["environment"], row["used"], row["mask"]) == (None, None, None)
    assert all(number is None for number in describe_latents(Flat(0.0), shapes)["kl"])


def test_varying_factors_have_their_types() -> None:
    varying = varying_factors(environment(SHAPES).described)
    assert [*varying] == ["scale", "orientation", "x", "y", "shape"]
    types = {name: type_of(name, column) for name, column in varying.items()}
    assert types == {
        **{"scale": "continuous", "orientation": "circular", "x": "continuous"},
        **{"y": "continuous", "shape": "discrete"},
    }
    assert type_of("x", np.arange(20.0)) == type_of("orientation", np.arange(20.0)) == "discrete"
    assert type_of("x", np.arange(21.0)) == "continuous"
    assert [*varying_factors(environment(POINTS).described)] == ["shape"]


def test_disentanglement_is_measured_in_every_environment_with_factors() -> None:
    assert rows_of("disentanglement", POINTS, Flat(), disentanglement=True) == []
    stream = SHAPES.with_changes(tasks=1)
    [row] = rows_of("disentanglement", stream, Knowing(stream), disentanglement=True)
    assert (row["step"], row["learned"], row["tested"]) == (2, 0, 0)
    assert row["factors"] == ["scale", "orientation", "x", "y", "shape"]
    names = ["mig", "sap", "modularity", "explicitness", "factor_vae", "beta_vae"]
    names += ["disentanglement", "completeness", "informativeness"]
    assert all(0 <= row[name] <= 1 for name in names)
    assert len(row) == 5 + len(names)
    json.dumps(row, allow_nan=False)


@pytest.mark.parametrize("name", ["code_probe_every", "describe_latents", "disentanglement"])
def test_learners_without_codes_are_refused(name: str) -> None:
    learner = build("fine-tuning", POINTS, "cpu")
    with pytest.raises(ValueError, match=f"{name} need codes, and .* makes none"):
        next(run(POINTS, learner, Plan(**{name: 1})))


def test_impossible_plans_are_refused() -> None:
    with pytest.raises(ValueError, match="code_all_tasks probes the codes of all tasks"):
        check_plan(Stream(tasks=None), Plan(code_probe_every=1, code_all_tasks=True))
    for name in ("code_probe_every", "code_train_images", "code_test_images"):
        with pytest.raises(ValueError, match=f"{name} must lie in"):
            Plan(**{name: -1})


def test_a_stopped_run_resumes_to_the_same_rows(tmp_path: Path) -> None:
    plan = Plan(code_probe_every=2, describe_latents=True, theta=False, **FEW)
    small: dict[str, Any] = {"net": "convnet", "batch_size": 16, "epochs": 1}

    def start(name: str) -> Iterator[Any]:
        return runs.start(tmp_path / name, "dcl", SHAPES, plan, "cpu", 0.0, **small)

    list(start("complete"))
    rows = start("stopped")
    next(row for row in rows if row["kind"] == "task")
    next(row for row in rows if row["kind"] == "codes")
    rows.close()
    list(runs.resume(tmp_path / "stopped"))
    complete, stopped = (
        (tmp_path / name / "rows.jsonl").read_bytes() for name in ("complete", "stopped")
    )
    assert stopped == complete
    assert b'"kind": "codes"' in complete


def test_a_summary_ignores_rows_of_codes() -> None:
    plan = Plan(code_probe_every=1, describe_latents=True, **FEW)
    rows = list(run(POINTS, Full(), plan))
    without = [row for row in rows if row["kind"] not in ("codes", "latents")]
    assert summarise(rows) == summarise(without)
