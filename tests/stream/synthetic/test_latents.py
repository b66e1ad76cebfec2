"""Synthetic latents are what they are said to be; scenarios keep their definitions (N12)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from everlearn import ArrayStream, Canvas, Latents, Stream
from everlearn.stream import Split, read_stream
from everlearn.stream.named import STREAMS
from everlearn.stream.scenarios.incremental import DomainIncremental, NewInstancesAndClasses

from ..conftest import class_sets, is_nc, is_ni, is_nic

pytestmark = pytest.mark.integration

TINY: dict[str, Any] = {
    "classes": 6,
    "first": 2,
    "classes_per_task": 2,
    "sessions": 4,
    "test_sessions": (1,),
    "dimensions": 16,
    "train": 3,
    "test": 2,
}
NC, NIC = Latents(**TINY), Latents(scenario="nic", **TINY)
PICTURES: dict[str, Any] = {"values_per_factor": 2, "canvas": Canvas(size=8)}


def latents(split: Split) -> torch.Tensor:
    return split.batch(slice(None)).images.flatten(1)


def keys(split: Split) -> list[bytes]:
    return [row.numpy().tobytes() for row in latents(split)]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of 50 classes in sessions 0 to 10; a latent is (class, session, row of both)."""
    table = np.stack(np.meshgrid(np.arange(50), np.arange(11), np.arange(2), indexing="ij"), -1)
    table = np.random.default_rng(0).permutation(table.reshape(-1, 3))
    folder = tmp_path_factory.mktemp("data")
    (folder / "latents").mkdir()
    np.savez(
        folder / "latents" / "toy.npz",
        latents=table[:, :, None, None].astype(np.float16),
        labels=table[:, 0],
        sessions=table[:, 1],
        test=np.isin(table[:, 1], (2, 6, 9)),
        about=np.array("{}"),
    )
    return folder


def from_file(data: Path, **settings: Any) -> ArrayStream:
    return ArrayStream("latents/toy", data, val_share=0, **settings)


def nc_file(data: Path) -> ArrayStream:
    return from_file(data, first_classes=10, classes_per_task=5)


def test_domain_streams_are_ni() -> None:
    for seed in range(3):
        scenario = DomainIncremental(bands=4)
        stream = Stream(seed, tasks=4, classes_per_task=3, scenario=scenario, **PICTURES)
        assert is_ni(class_sets(stream))
        assert not is_nic(class_sets(stream))


@pytest.mark.parametrize("seed", range(3))
def test_class_incremental_streams_are_nc(seed: int, data: Path) -> None:
    sprites = Stream(seed, tasks=4, classes_per_task=3, **PICTURES)
    file = nc_file(data).with_changes(seed=seed)
    for stream in (sprites, NC.with_changes(seed=seed), file):
        assert is_nc(class_sets(stream))
        assert not is_ni(class_sets(stream))


@pytest.mark.parametrize("seed", range(3))
def test_nic_streams_repeat_classes_and_bring_new_ones(seed: int, data: Path) -> None:
    scenario = NewInstancesAndClasses(6, 3, 2)
    sprites = Stream(seed, tasks=17, classes_per_task=2, scenario=scenario, **PICTURES)
    file = from_file(data, seed=seed, scenario="nic", tasks=40)
    for stream in (sprites, NIC.with_changes(seed=seed), file):
        sets = class_sets(stream)
        assert is_nic(sets)
        assert not is_nc(sets)
        assert {len(labels) for labels in sets[1:]} == {1}


def test_the_default_streams_have_9_and_391_tasks(data: Path) -> None:
    small = {"dimensions": 2, "train": 1, "test": 1}
    for stream in (STREAMS["latents-nc"].with_changes(**small), nc_file(data)):
        assert [len(labels) for labels in class_sets(stream)] == [10] + [5] * 8
    stream = STREAMS["latents-nic"].with_changes(**small)
    assert [len(labels) for labels in class_sets(stream)] == [10] + [1] * 390


@pytest.mark.parametrize("scenario", ["class", "nic"])
def test_a_file_of_latents_shows_every_class_and_train_session_once(
    data: Path, scenario: str
) -> None:
    stream = from_file(data, scenario=scenario)
    shown = np.concatenate([latents(task.train).numpy() for task in stream])
    train = [k for k in range(11) if k not in (2, 6, 9)]
    expected = [(c, k, row) for c in range(50) for k in train for row in range(2)]
    assert sorted(map(tuple, shown.tolist())) == expected
    if scenario == "nic":
        pairs = [{tuple(row[:2]) for row in latents(task.train).tolist()} for task in stream]
        assert [len(found) for found in pairs] == [10] + [1] * 390


def test_latents_show_every_class_and_train_session_once() -> None:
    everything = [key for task in NC for key in keys(task.train)]
    assert len(set(everything)) == len(everything) == 6 * 3 * 3
    assert sorted(key for task in NIC for key in keys(task.train)) == sorted(everything)
    assert [len(task.train) for task in NIC] == [2 * 3] + [3] * 16


def test_classes_are_tested_on_test_sessions_in_every_task(data: Path) -> None:
    for task in from_file(data, scenario="nic", tasks=40):
        found = latents(task.test).numpy()
        wanted = [(c, k, row) for c in task.classes for k in (2, 6, 9) for row in range(2)]
        assert sorted(map(tuple, found.tolist())) == sorted(wanted)


def test_the_tests_of_a_class_of_latents_are_fixed_and_never_trained_on() -> None:
    tests: dict[int, list[bytes]] = {}
    for task in [*NC, *NIC]:
        rows = keys(task.test)
        for label in task.classes:
            mine = [rows[i] for i in np.flatnonzero(task.test.labels == label)]
            assert tests.setdefault(label, mine) == mine
            assert len(set(mine)) == 2
    trained = {key for task in NC for key in keys(task.train)}
    assert not trained & {key for rows in tests.values() for key in rows}


WIDE = Latents(
    classes=2, first=2, dimensions=10_000, train=2, test=2, sessions=4, test_sessions=(2,)
)


def test_half_of_the_numbers_are_cut_off_and_the_others_have_the_variance_of_all_terms() -> None:
    rows = latents(WIDE[0].train).double()
    assert float(rows.min()) == 0
    assert float((rows > 0).double().mean()) == pytest.approx(0.5, abs=0.02)
    # E ReLU(x) = s / sqrt(2 pi) and E ReLU(x)^2 = s^2 / 2 for x of N(0, s^2).
    variance = 1 + 0.8**2 + 0.8**2 + 0.9**2
    assert float(rows.mean()) == pytest.approx((variance / (2 * np.pi)) ** 0.5, rel=0.05)
    assert float(rows.square().mean()) == pytest.approx(variance / 2, rel=0.05)


def test_a_latent_is_the_relu_of_class_session_pair_and_noise() -> None:
    mean = WIDE._normals(1, 0, 0)
    centre = mean + 0.8 * WIDE._normals(0, 1, 0) + 0.8 * WIDE._normals(1, 1, 0)
    expected = np.maximum(centre + 0.9 * WIDE._normals(1, 1, np.arange(1, 3)), 0)
    task = WIDE[0]
    mine = np.flatnonzero(task.train.labels == 0)[:2]
    assert np.allclose(latents(task.train)[mine], expected, atol=1e-6)
    place = task.classes.index(0)
    assert np.allclose(latents(task.canonical)[place], np.maximum(mean, 0), atol=1e-6)


def test_a_linear_probe_tells_the_classes_apart() -> None:
    stream = Latents(classes=10)
    (points, labels), (asked, answers) = (
        (
            torch.cat([latents(task.split(name)) for task in stream]),
            torch.cat([torch.from_numpy(task.split(name).labels) for task in stream]),
        )
        for name in ("train", "test")
    )
    wanted = torch.nn.functional.one_hot(labels).float()
    weights = torch.linalg.lstsq(points, wanted).solution
    assert float(((asked @ weights).argmax(1) == answers).float().mean()) > 0.9


def test_tasks_follow_from_the_seed_in_any_order() -> None:
    for stream in (NC, NIC):
        forward = [keys(task.train) for task in stream]
        for index in (2, 0, -1):
            assert keys(stream[index].train) == forward[index]
        assert keys(stream.with_changes(seed=1)[0].train) != forward[0]
    orders = {tuple(c for task in NC.with_changes(seed=s) for c in task.classes) for s in range(4)}
    assert len(orders) == 4


def test_a_latent_does_not_depend_on_how_many_there_are() -> None:
    more = NC.with_changes(train=5, sessions=6, tasks=None)
    assert set(keys(NC[0].train)) <= {key for task in more for key in keys(task.train)}


def test_there_are_no_val_rows_and_labels_are_of_the_task() -> None:
    task = NC[1]
    assert len(task.val) == 0
    assert len(task.val.batch(slice(None)).images) == 0
    assert set(task.test.labels.tolist()) == set(task.classes) == set(task.train.labels.tolist())
    assert task.exemplars().labels.tolist() == list(task.classes)
    assert task.train.batch([0]).images.shape == (1, *NC.canvas.shape) == (1, 16, 1, 1)
    assert list(NC.class_ids) == list(range(6))


@pytest.mark.parametrize("stream", [Latents(), NC, NIC, NIC.with_changes(tasks=3, online=True)])
def test_json_gives_an_equal_stream(stream: Latents) -> None:
    assert read_stream(stream.to_json()) == stream
    with pytest.raises(ValueError, match=r"unknown settings \['colour'\] of a stream of latents"):
        Latents.from_json(json.dumps(json.loads(stream.to_json()) | {"colour": 1}))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seed": -1}, "seed"),
        ({"scenario": "ni"}, "unknown scenario 'ni' of latents; known: nc, nic"),
        ({"tasks": 10}, r"tasks must lie in 1 .. 3, found 10"),
        ({"first": 7}, r"first must lie in 1 .. 6"),
        ({"scenario": "nic", "first": 6}, r"first must lie in 1 .. 5"),
        ({"test_sessions": (1, 1)}, "each once"),
        ({"test_sessions": ()}, "test_sessions must be some of the 4 sessions"),
        ({"test_sessions": (0, 1, 2, 3)}, "leave some to train on"),
        ({"test_sessions": (4,)}, r"test_sessions must lie in 0 .. 3, found 4"),
        ({"test_sessions": 2}, "test_sessions must be numbers, found 2"),
        ({"train": 0}, "train"),
        ({"dimensions": 2.5}, "dimensions"),
        ({"online": 1}, "online"),
    ],
)
def test_bad_settings_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        NC.with_changes(**change)


@pytest.mark.parametrize("index", [3, -4])
def test_a_task_that_is_not_there_is_refused(index: int) -> None:
    with pytest.raises(IndexError, match=r"not in the stream \(0 .. 2\)"):
        NC[index]


def test_another_scenario_may_ask_for_all_its_tasks() -> None:
    assert len(NC.with_changes(scenario="nic", tasks=None)) == 17
    assert len(NIC.with_changes(tasks=5)) == 5
