"""Exams of codes: probes on codes that are given, latents, factors; the learner stays as it was."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from everlearn import Canvas, Gaussians, Plan, Stream, build, runs
from everlearn.evaluate import run
from everlearn.exam import Exam, check_exams
from everlearn.exam.disentangled import kind_of, varying_factors
from everlearn.exam.environments import Environment, Environments, encode
from everlearn.exam.latents import describe_latents
from everlearn.factors import Interval, Product, Values, continuous_space
from everlearn.learner import Encodes, Masks, Reconstructs
from everlearn.metrics import summarise

pytestmark = pytest.mark.slow

POINTS = Gaussians(tasks=3, classes_per_task=3, dimensions=4, train=20, val=0, test=10)
SHAPES = Stream(
    tasks=2, classes_per_task=3, canvas=Canvas(8), split=(60, 0, 30), factors=continuous_space()
)
FEW: dict[str, Any] = {"code_images": 60, "code_tests": 20}


class Flat:
    """Takes the numbers of an image, at most five, for its code; two steps a task change nothing."""

    device, batch_size = "cpu", 1

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
    """Knows every image of a stream, and makes its class and its place the code."""

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
    """Rebuilds, and tells environments: that of an image is the class of most, by threes."""

    asked: list[int]

    def errors(self, images: Tensor) -> Tensor:
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
    [one] = Environments(stream, images, tests, "cpu").some([index])
    return one


def test_who_can_what_is_seen_by_the_verbs() -> None:
    assert isinstance(Full(), Encodes)
    assert isinstance(Full(), Reconstructs)
    assert isinstance(Full(), Masks)
    assert isinstance(Flat(), Encodes)
    assert not isinstance(Flat(), Reconstructs)
    assert not isinstance(Flat(), Masks)


def test_codes_are_probed_before_learning_at_steps_and_after_every_task() -> None:
    rows = rows_of("codes", POINTS, Flat(), codes=3)
    moments = [(row["step"], row["learned"], row["tested"]) for row in rows]
    # Two steps a task: the third and the sixth are the first of task 1 and the last of task 2.
    assert moments == [
        (0, -1, 0),
        (2, 0, 0),
        *((3, 1, tested) for tested in (0, 1)),
        *((4, 1, tested) for tested in (0, 1)),
        *((6, 2, tested) for tested in (0, 1, 2)),
        *((6, 2, tested) for tested in (0, 1, 2)),
    ]
    assert rows_of("codes", POINTS, Flat()) == []


def test_all_tasks_are_probed_from_the_start_where_asked() -> None:
    rows = rows_of("codes", POINTS, Flat(), codes=100, code_ahead=True)
    assert [row["tested"] for row in rows] == [0, 1, 2] * 4
    few = rows_of("codes", POINTS, Flat(), codes=100, code_ahead=True, test_tasks=2)
    assert [row["tested"] for row in few] == [0, 2] * 4


def test_a_row_holds_counts_and_what_was_not_asked_is_none() -> None:
    row = rows_of("codes", POINTS, Flat(), codes=100)[0]
    assert row == {
        **{"kind": "codes", "step": 0, "learned": -1, "tested": 0, "right": row["right"]},
        **{"total": 20, "squares": None, "nats": None},
    }
    assert 0 <= row["right"] <= 20


def test_codes_that_say_class_and_place_are_read_right() -> None:
    """Fails where codes, labels and places of images are not in one order."""
    rows = rows_of("codes", SHAPES, Knowing(SHAPES), codes=100, code_images=1500)
    assert [row["tested"] for row in rows] == [0, 0, 0, 1]
    for row in rows:
        assert row["right"] >= 18
        # 20 places on [0, 1], whose variance is 1 / 12: far below the 1.7 of a guess.
        assert all(0 < square < 0.2 for square in row["squares"])


def test_places_go_from_0_to_1_and_are_left_out_where_they_do_not_vary() -> None:
    one = environment(SHAPES)
    factors = SHAPES[0].train.factors
    assert one.is_placed
    places = one.places(one.train)
    order = one.train.rows.numpy()
    for column, found in zip((factors.x, factors.y), places.T, strict=True):
        expected = (column - column.min()) / (column.max() - column.min())
        np.testing.assert_allclose(found.numpy(), expected[order], rtol=1e-5, atol=1e-6)
    still = SHAPES.with_changes(factors=Product(x=Values((0.5,)), y=Interval(0.0, 1.0)))
    stays = environment(still)
    assert not stays.is_placed
    assert not stays.places(stays.test).any()
    assert rows_of("codes", still, Flat(), codes=100)[0]["squares"] is None


def test_images_are_the_same_each_time_and_parts_of_them_are_of_all_classes() -> None:
    one, two = environment(POINTS, 1), environment(POINTS, 1)
    assert torch.equal(one.test.rows, two.test.rows)
    assert len(one.test.rows.unique()) == 20
    assert one.classes.tolist() == [3, 4, 5]
    assert sorted(one.labels(one.train).bincount().tolist()) == [20, 20, 20]
    assert set(one.train.labels[:20].tolist()) == {3, 4, 5}
    batch = POINTS[1].train.batch(one.train.rows.numpy())
    assert torch.equal(torch.cat([*one.train.parts()]), batch.images)
    assert batch.labels.tolist() == one.train.labels.tolist()


def test_images_that_are_few_come_again_with_other_noise() -> None:
    sure = rows_of("codes", POINTS, Flat(), codes=100, code_images=600)
    assert len(sure) == len(rows_of("codes", POINTS, Flat(1.0), codes=100, code_images=600))
    exam = Exam(POINTS, Flat(1.0), Plan(codes=1, code_images=130), 3)._codes
    [one] = exam._environments.some([0])
    codes, labels, _ = exam._lesson(one)
    assert torch.equal(labels[:60], labels[60:120])
    assert not torch.equal(codes[:60], codes[60:120])
    noise = codes - encode(exam.learner, one.train)[0][torch.arange(130) % 60]
    assert noise.std() == pytest.approx(1, abs=0.1)


def test_exams_of_one_learner_agree_to_the_bit_and_leave_it_as_it_was() -> None:
    learner = build("dcl", SHAPES, "cpu", net="convnet", batch_size=16, epochs=1)
    next(iter(learner.learn(SHAPES[0])))
    exam = Exam(SHAPES, learner, Plan(codes=1, latents=True, code_ahead=True, **FEW), 2)

    def everything() -> list[Tensor]:
        kept = (*learner.net.state_dict().values(), torch.random.get_rng_state())
        return [tensor.clone() for tensor in kept]

    before = everything()
    first = list(exam._codes.after(1, 0))
    assert list(exam._codes.after(1, 0)) == first
    again = Exam(SHAPES, learner, Plan(codes=1, latents=True, code_ahead=True, **FEW), 2)
    assert list(again._codes.after(1, 0)) == first
    assert all(map(torch.equal, before, everything()))
    assert learner.net.training


def test_the_codes_of_dcl_are_its_maps() -> None:
    learner = build("dcl", SHAPES, "cpu", net="convnet", batch_size=16)
    images = SHAPES[0].test.batch(slice(0, 4)).images
    means, deviations = learner.codes(images)
    assert torch.equal(means.reshape(4, 2, 3), learner.theta(images))
    assert deviations.shape == (4, 6)
    assert not deviations.any()


def test_nats_are_added_up_over_all_test_images(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = rows_of("codes", POINTS, Full(), codes=100)
    monkeypatch.setattr("everlearn.exam.environments._AT_ONCE", 7)
    parts = rows_of("codes", POINTS, Full(), codes=100)
    images = torch.cat([*environment(POINTS).test.parts()])
    expected = float(images.double().square().sum())
    assert whole[0]["nats"] == pytest.approx(expected, rel=1e-6)
    assert parts[0]["nats"] == pytest.approx(expected, rel=1e-6)
    assert [row["right"] for row in parts] == [row["right"] for row in whole]


def test_latents_are_described_in_every_environment_met() -> None:
    rows = rows_of("latents", POINTS, Full(0.5), latents=True)
    assert [(row["learned"], row["tested"]) for row in rows] == [
        (0, 0), (1, 0), (1, 1), (2, 0), (2, 1), (2, 2),
    ]  # fmt: skip
    means = torch.cat([*environment(POINTS).test.parts()]).flatten(1).double()
    kl = 0.5 * (means.square().mean(0) + 0.25 - 1 - np.log(0.25))
    assert rows[0] == {
        **{"kind": "latents", "step": 2, "learned": 0, "tested": 0, "environment": 20},
        **{"kl": pytest.approx(kl.tolist()), "used": [1, 1, 0, 1], "mask": [1, 0, 1, 1]},
        **{"x": None, "y": None},
    }


def test_latents_are_correlated_with_places_that_vary() -> None:
    one = environment(SHAPES)
    row = describe_latents(Flat(1.0), one)
    means = torch.cat([*one.test.parts()]).flatten(1)[:, :5].double().numpy()
    for name, column in (("x", one.test.factors.x), ("y", one.test.factors.y)):
        varying = [place for place in range(5) if np.ptp(means[:, place])]
        assert varying
        expected = [np.corrcoef(means[:, place], column)[0, 1] for place in varying]
        assert [row[name][place] for place in varying] == pytest.approx(expected)
        assert all(row[name][place] is None for place in range(5) if place not in varying)
    assert (row["environment"], row["used"], row["mask"]) == (None, None, None)
    assert all(number is None for number in describe_latents(Flat(0.0), one)["kl"])


def test_factors_that_vary_are_measured_with_their_kinds() -> None:
    varying = varying_factors(environment(SHAPES).look)
    assert [*varying] == ["scale", "orientation", "x", "y", "shape"]
    kinds = {name: kind_of(name, column) for name, column in varying.items()}
    assert kinds == {
        **{"scale": "continuous", "orientation": "circular", "x": "continuous"},
        **{"y": "continuous", "shape": "discrete"},
    }
    assert kind_of("x", np.arange(20.0)) == kind_of("orientation", np.arange(20.0)) == "discrete"
    assert kind_of("x", np.arange(21.0)) == "continuous"
    assert [*varying_factors(environment(POINTS).look)] == ["shape"]


def test_factors_are_measured_in_every_environment_that_has_some() -> None:
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


@pytest.mark.parametrize("exam", ["codes", "latents", "disentanglement"])
def test_learners_without_codes_are_refused(exam: str) -> None:
    learner = build("fine-tuning", POINTS, "cpu")
    with pytest.raises(ValueError, match=rf"exams \({exam}\) are of codes, and .* makes none"):
        next(run(POINTS, learner, Plan(**{exam: 1})))


def test_what_cannot_be_asked_is_refused() -> None:
    with pytest.raises(ValueError, match="code_ahead probes the codes of all tasks"):
        check_exams(Stream(tasks=None), Plan(codes=1, code_ahead=True))
    for name in ("codes", "code_images", "code_tests"):
        with pytest.raises(ValueError, match=f"{name} must lie in"):
            Plan(**{name: -1})


def test_a_run_that_was_stopped_goes_on_to_the_same_rows(tmp_path: Path) -> None:
    plan = Plan(codes=2, latents=True, theta=False, **FEW)
    small: dict[str, Any] = {"net": "convnet", "batch_size": 16, "epochs": 1}

    def start(name: str) -> Iterator[Any]:
        return runs.start(tmp_path / name, "dcl", SHAPES, plan, "cpu", 0.0, **small)

    list(start("whole"))
    going = start("stopped")
    next(row for row in going if row["kind"] == "task")
    next(row for row in going if row["kind"] == "codes")
    going.close()
    list(runs.resume(tmp_path / "stopped"))
    whole, stopped = (
        (tmp_path / name / "rows.jsonl").read_bytes() for name in ("whole", "stopped")
    )
    assert stopped == whole
    assert b'"kind": "codes"' in whole


def test_a_summary_goes_past_rows_of_codes() -> None:
    plan = Plan(codes=1, latents=True, **FEW)
    rows = list(run(POINTS, Full(), plan))
    without = [row for row in rows if row["kind"] not in ("codes", "latents")]
    assert summarise(rows) == summarise(without)
