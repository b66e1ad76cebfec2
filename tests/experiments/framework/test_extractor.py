"""The extractor and its latents are made once, and only where a run needs them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from threading import Thread

import numpy as np
import pytest

from everlearn.core.lock import locked
from everlearn.experiments.framework import extractor
from everlearn.experiments.framework.runner import Runner
from everlearn.experiments.framework.trial import EXTRACTOR, PAPER, Trial
from everlearn.experiments.gnr.trials import LABELS, MODES, NC, NIC
from everlearn.methods.ar1 import REPLAY_MODES as KNOWN
from everlearn.nets.extractor import load_extractor
from everlearn.runs import Run
from everlearn.stream import Latents
from everlearn.stream.named import named

pytestmark = pytest.mark.integration

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
    runner = Runner(tmp_path, "small", "cpu")
    assert runner.stream(nc, 3) == Latents(seed=3)
    assert runner.stream(nic) == Latents(scenario="nic", tasks=60)
    tiny = Runner(tmp_path, "tiny", "cpu").stream(nic)
    assert (len(tiny), tiny.classes) == (7, 4)


def test_a_trial_learns_the_latents_of_shapes(tmp_path, latents):
    runner = Runner(tmp_path, PAPER, "cpu")
    nc, nic = (runner.stream(every[PAPER].trial("none"), 1) for every in (NC, NIC))
    assert [len(task.classes) for task in nc] == [10] + 8 * [5]
    assert (len(nic), nc.seed, nic.val_share) == (391, 1, 0)


def test_an_unknown_base_is_refused(tmp_path):
    with pytest.raises(ValueError, match="unknown base 'stones' of a trial; known: latents"):
        Runner(tmp_path, "tiny", "cpu").stream(Trial("a", "gnr", base="stones"))


@pytest.mark.integration
def test_latents_are_computed_once_with_the_extractor_of_the_folder(tmp_path, small):
    runner = Runner(tmp_path, "tiny", "cpu")
    with np.load(runner.latents()) as file:
        assert file["latents"].shape == (132, *load_extractor(runner.extractor()).net.latent_shape)
        assert file["test"].sum() == 3 * 12
    made = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.npz")}
    assert set(made) == {tmp_path / "extractor.npz", tmp_path / f"data/{extractor.NAME}.npz"}
    runner.latents()
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.npz")} == made
    assert not list(tmp_path.rglob(".lock"))


def test_a_second_process_waits_for_the_file_of_the_first(tmp_path, monkeypatch):
    monkeypatch.setattr(extractor, "_WAIT", 0.01)
    monkeypatch.setattr(extractor, "ShapePretraining", lambda *_: pytest.fail("made twice"))
    path = tmp_path / "extractor.npz"
    found: list[Path] = []
    second = Thread(target=lambda: found.append(extractor.ensure_extractor(tmp_path, "cpu")))
    with locked(tmp_path):
        second.start()
        second.join(0.1)
        assert second.is_alive()
        path.write_bytes(b"made by the first")
    second.join(10)
    assert found == [path]


def test_the_extractor_is_made_only_for_selected_runs(tmp_path, monkeypatch):
    trial = Trial("long", "gnr", {"weights": EXTRACTOR, "replay_mode": "none"}, plan=EXAMS)
    asked: list[Path] = []

    def note(folder: Path, device: str) -> Path:
        asked.append(folder)
        raise InterruptedError

    monkeypatch.setattr(extractor, "ensure_extractor", note)
    Runner(tmp_path, "tiny", "cpu", ["other"]).run_trials([trial])
    assert asked == []
    with pytest.raises(InterruptedError):
        Runner(tmp_path, "tiny", "cpu").run_trials([trial])
    assert asked == [tmp_path]


def test_a_finished_run_needs_no_extractor(tmp_path, monkeypatch):
    monkeypatch.setattr(extractor, "ensure_extractor", lambda *_: pytest.fail("not needed"))
    trial = NC[PAPER].trial("none")
    made = Run.create(tmp_path / trial.folder(0), "{}", {"method": "gnr", "settings": {}})
    with made.writing():
        made.finish({})
    Runner(tmp_path, PAPER, "cpu", [trial.folder(0)]).run_trials([trial])


def test_settings_of_a_run_name_the_extractor_file(tmp_path, small):
    settings = {"net": "convnet-pooled", "weights": EXTRACTOR, "replay_mode": "none"}
    Runner(tmp_path, "tiny", "cpu").run_trials([Trial("long", "gnr", settings, plan=EXAMS)])
    kept = Run.open(tmp_path / "long-seed0").settings["settings"]
    assert kept["weights"] == str(tmp_path / "extractor.npz")
