"""Where experiments are carried out: it makes what is missing, and goes on with what was stopped."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from everlearn import runs
from everlearn.disk import write_file
from everlearn.exam.costs import gpu_of
from everlearn.experiments import extractor
from everlearn.experiments.found import ORIGIN, PARTS
from everlearn.experiments.scales import find_latents, find_scale, shorten
from everlearn.experiments.trial import (
    ENVIRONMENTS,
    EXTRACTOR,
    IDSPRITES,
    LATENTS,
    WITH_DATA,
    Settings,
    Trial,
    at_scale,
)
from everlearn.learner import find_device
from everlearn.presets import Preset, find_preset
from everlearn.provenance import provenance
from everlearn.results import Row
from everlearn.results.folder import DONE, is_finished
from everlearn.results.lines import encode, read_lines
from everlearn.results.plain import plain
from everlearn.stream import ArrayStream, Stream
from everlearn.stream.arrays.files import data_folder

# Sees the rows of one run through: rows, its folder, its name, how many tasks it has.
Follow = Callable[[Iterable[Row], Path, str, int | None], None]


class Lab:
    """The folder of one scale, on one device.

    Args:
        only: names of runs and measurements to make, when others make the rest; all by default.
        follow: shows how a run is going.
        data: folder of the data sets, for what needs real images.
    """

    def __init__(
        self,
        folder: Path,
        scale: str,
        device: str = "auto",
        only: Iterable[str] = (),
        follow: Follow | None = None,
        data: Path | None = None,
    ) -> None:
        self.folder, self.scale, self.data = folder, scale, data
        self.device = find_device(device)
        self.preset = find_scale(scale)
        self.base = as_sprites(self.preset.stream)
        self.only, self._follow = frozenset(only), follow or _finish

    def settings(self, every: dict[str, Settings]) -> Settings:
        """An experiment's settings at this scale."""
        return at_scale(every, self.scale)

    def wants(self, name: str) -> bool:
        """Whether a run or a measurement of this name is to be made here."""
        return not self.only or name in self.only

    def learn(self, trials: Iterable[Trial]) -> None:
        """Have the runs of some trials finished."""
        for trial in trials:
            for seed in trial.seeds:
                if self.wants(trial.folder(seed)):
                    self._learn(trial, seed)

    def measure(
        self,
        part: str,
        settings: Any,
        rows: Callable[[], Iterable[Row]],
        trials: Iterable[Trial] = (),
    ) -> None:
        """Have a measurement on disk: made and written whole, unless it is there.

        Args:
            settings: what the rows follow from, plain values.
            rows: makes the measurement.
            trials: whose runs, of the first seed, it is made with.
        """
        if not self.wants(part):
            return
        path, kept = self.folder / PARTS / f"{part}.jsonl", plain(settings, "settings")
        names = [trial.folder(trial.seeds[0]) for trial in trials]
        there = read_lines(path)
        if there:
            _check_same(path, there[0], kept, self._sums(names))
            return
        made = list(rows())  # which finishes the runs
        head = {"kind": ORIGIN, "settings": kept, "runs": self._sums(names)}
        head |= provenance(gpu_of(self.device))
        write_file(path, b"".join(map(encode, [head, *made])))

    def _sums(self, names: Iterable[str]) -> dict[str, str]:
        """What finished runs came to, each as one number."""
        ends = {name: self.folder / name / DONE for name in names if self.has(name)}
        return {name: hashlib.sha256(end.read_bytes()).hexdigest() for name, end in ends.items()}

    def has(self, name: str) -> bool:
        """Whether a run of this name is finished."""
        return is_finished(self.folder / name)

    def extractor(self) -> Path:
        """The file of the extractor, which is pre-trained where it is not there."""
        return extractor.have_extractor(self.folder, self.device)

    def latents(self) -> Path:
        """The file of the latents of 50 sprites, which are made where they are not there."""
        return extractor.have_latents(self.folder, self.device)

    def lacks_data(self, trials: Iterable[Trial]) -> bool:
        """Whether some trials need data of which no folder is known, and none was promised."""
        if self.data or self.only or not any(trial.base in WITH_DATA for trial in trials):
            return False
        try:
            data_folder()
        except FileNotFoundError:
            return True
        return False

    def preset_of(self, trial: Trial) -> Preset:
        """What a trial is when it says nothing else."""
        return find_preset(trial.base) if trial.base in ENVIRONMENTS else self.preset

    def stream(self, trial: Trial, seed: int = 0) -> Any:
        """The stream that a trial learns."""
        stream = self._whole_stream(trial.base, {"seed": seed, **trial.stream})
        return stream.with_changes(tasks=min(len(stream), trial.most or len(stream)))

    def _whole_stream(self, base: str, changes: dict[str, Any]) -> Any:
        if base == LATENTS:
            return find_latents(self.scale).with_changes(**{"tasks": None, **changes})
        if base == IDSPRITES:
            self.latents()
            data = self.folder / extractor.DATA
            return ArrayStream(extractor.NAME, data=data, val_share=0, **changes)
        if base in ENVIRONMENTS:
            whole: Any = find_preset(base).stream
            return shorten(whole.with_changes(data=self.data, **changes), self.scale)
        if base:
            known = ", ".join((LATENTS, IDSPRITES, *ENVIRONMENTS))
            raise ValueError(f"unknown base {base!r} of a trial; known: {known}")
        return self.base.with_changes(**changes)

    def learner(self, trial: Trial, seed: int = 0) -> Any:
        """The learner of a trial at the end of its run, which is finished first."""
        self._learn(trial, seed)
        return runs.load_learner(self.folder / trial.folder(seed), self.device, self._data(trial))

    def _learn(self, trial: Trial, seed: int) -> None:
        if trial.needs_extractor and self.has(trial.folder(seed)):
            return  # what it began with need not be here any more
        stream, folder = self.stream(trial, seed), self.folder / trial.folder(seed)
        preset, data = self.preset_of(trial), self._data(trial)
        plan = replace(preset.plan, **trial.plan)
        own = {**preset.settings_of(trial.method), **self._settings(trial)}
        rows = runs.ensure(folder, trial.method, stream, plan, self.device, data=data, **own)
        if rows is not None:
            self._follow(rows, folder, trial.folder(seed), stream.tasks)

    def _data(self, trial: Trial) -> Path | None:
        """Where the data lie that a trial reads when it goes on."""
        return self.data if trial.base in ENVIRONMENTS else self.folder / extractor.DATA

    def _settings(self, trial: Trial) -> dict[str, Any]:
        """A trial's settings, with the extractor's file in its place."""
        return {
            name: str(self.extractor()) if value == EXTRACTOR else value
            for name, value in trial.settings.items()
        }


def as_sprites(stream: Any) -> Stream:
    """A scale's stream, which has shapes."""
    if not isinstance(stream, Stream):
        raise TypeError(f"experiments need a stream of sprites, found {stream!r}")
    return stream


def _check_same(path: Path, origin: Row, settings: Any, runs: dict[str, str]) -> None:
    again = "give another --out, or delete the file to measure again"
    if origin.get("settings") != settings:
        raise ValueError(
            f"{path} holds another measurement, of {origin.get('settings')}, not of {settings}; {again}"
        )
    changed = [name for name, end in runs.items() if origin.get("runs", runs).get(name) != end]
    if changed:
        raise ValueError(f"{path} was measured with another run in {', '.join(changed)}; {again}")


def _finish(rows: Iterator[Row], folder: Path, name: str, tasks: int | None) -> None:
    for _ in rows:
        pass
