"""What experiments on latents begin with is made once, and only where a run needs it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from threading import Thread

import numpy as np
import pytest

from everlearn.experiments import extractor
from everlearn.experiments.gnr import LABELS, MODES, NC, NIC
from everlearn.experiments.lab import Lab
from everlearn.experiments.trial import EXTRACTOR, PAPER, Trial
from everlearn.lock import locked
from everlearn.methods.ar1 import MODES as KNOWN
from everlearn.nets.extractor import load_halves
from everlearn.results import Run
from everlearn.stream import Latents
from everlearn.stream.named import named

pytestmark = pytest.mark.slow

EXAMS = {"one_shot": (), "open_set": False}


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pre-train for a step on small images, and take the latents of few of them."""
    settings = replace(
        extractor.PRETRAINING, steps=1, batch_size=2, shapes=2, size=16, test_images=2,
        net="convnet-pooled",
    )  # fmt: skip
    shapes = named("idsprites-50")
    small = shapes.with_changes(
        classes_per_task=12, split=(12, 0, 0), canvas=replace(shapes.canvas, size=16)
    )
    monkeypatch.setattr(extractor, "PRETRAINING", settings)
    monkeypatch.setattr(extractor, "STREAM", small)


def test_trials_have_the_modes_of_the_method():
    assert set(MODES) == set(LABELS) == set(KNOWN)


def test_a_trial_learns_the_synthetic_latents_of_its_scale(tmp_path):
    nc, nic = (every["small"].trial("none") for every in (NC, NIC))
    lab = Lab(tmp_path, "small", "cpu")
    assert lab.stream(nc, 3) == Latents(seed=3)
    assert lab.stream(nic) == Latents(scenario="nic", tasks=60)
    tiny = Lab(tmp_path, "tiny", "cpu").stream(nic)
    assert (len(tiny), tiny.classes) == (7, 4)


def test_a_trial_learns_the_latents_of_shapes(tmp_path, latents):
    lab = Lab(tmp_path, PAPER, "cpu")
    nc, nic = (lab.stream(every[PAPER].trial("none"), 1) for every in (NC, NIC))
    assert [len(task.classes) for task in nc] == [10] + 8 * [5]
    assert (len(nic), nc.seed, nic.val_share) == (391, 1, 0)


def test_an_unknown_base_is_told(tmp_path):
    with pytest.raises(ValueError, match="unknown base 'stones' of a trial; known: latents"):
        Lab(tmp_path, "tiny", "cpu").stream(Trial("a", "gnr", base="stones"))


@pytest.mark.slow
def test_latents_are_those_of_the_extractor_beside_them(tmp_path, small):
    lab = Lab(tmp_path, "tiny", "cpu")
    with np.load(lab.latents()) as file:
        assert file["latents"].shape == (132, *load_halves(lab.extractor()).halves.shape)
        assert file["test"].sum() == 3 * 12
    made = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.npz")}
    assert set(made) == {tmp_path / "extractor.npz", tmp_path / f"data/{extractor.NAME}.npz"}
    lab.latents()
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.npz")} == made
    assert not list(tmp_path.rglob(".lock"))


def test_who_comes_second_waits_for_the_first(tmp_path, monkeypatch):
    monkeypatch.setattr(extractor, "_WAIT", 0.01)
    monkeypatch.setattr(extractor, "ShapePretraining", lambda *_: pytest.fail("made twice"))
    path, found = tmp_path / "extractor.npz", list[Path]()
    second = Thread(target=lambda: found.append(extractor.have_extractor(tmp_path, "cpu")))
    with locked(tmp_path):
        second.start()
        second.join(0.1)
        assert second.is_alive()
        path.write_bytes(b"made by the first")
    second.join(10)
    assert found == [path]


def test_the_extractor_is_made_for_the_runs_that_are_asked_for(tmp_path, monkeypatch):
    trial = Trial("long", "gnr", {"weights": EXTRACTOR, "mode": "none"}, plan=EXAMS)
    asked: list[Path] = []

    def note(folder: Path, device: str) -> Path:
        asked.append(folder)
        raise InterruptedError

    monkeypatch.setattr(extractor, "have_extractor", note)
    Lab(tmp_path, "tiny", "cpu", ["other"]).learn([trial])
    assert asked == []
    with pytest.raises(InterruptedError):
        Lab(tmp_path, "tiny", "cpu").learn([trial])
    assert asked == [tmp_path]


def test_a_finished_run_needs_no_extractor(tmp_path, monkeypatch):
    monkeypatch.setattr(extractor, "have_extractor", lambda *_: pytest.fail("not needed"))
    trial = NC[PAPER].trial("none")
    made = Run.create(tmp_path / trial.folder(0), "{}", {"method": "gnr", "settings": {}})
    with made.writing():
        made.finish({})
    Lab(tmp_path, PAPER, "cpu", [trial.folder(0)]).learn([trial])


def test_the_file_of_the_extractor_stands_in_the_settings_of_a_run(tmp_path, small):
    settings = {"net": "convnet-pooled", "weights": EXTRACTOR, "mode": "none"}
    Lab(tmp_path, "tiny", "cpu").learn([Trial("long", "gnr", settings, plan=EXAMS)])
    kept = Run.open(tmp_path / "long-seed0").settings["settings"]
    assert kept["weights"] == str(tmp_path / "extractor.npz")
