"""Runner: make the runs and measurements of experiments that are missing, and resume those that stopped."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from everlearn.core.files import write_file
from everlearn.core.json_values import to_json_value
from everlearn.core.jsonl import encode_row, read_json_lines
from everlearn.core.provenance import provenance
from everlearn.experiments.framework import extractor
from everlearn.experiments.framework.results_folder import MEASUREMENTS, ORIGIN
from everlearn.experiments.framework.scales import find_latents, find_scale, limit_environments
from everlearn.experiments.framework.trial import (
    DATA_ENVIRONMENTS,
    ENVIRONMENTS,
    EXTRACTOR,
    IDSPRITES,
    LATENTS,
    PRESETS,
    Settings,
    Trial,
    at_scale,
)
from everlearn.learner import Learner
from everlearn.rows import MeasurementRow, Row
from everlearn.runs import launch
from everlearn.runs.folder import DONE, is_finished
from everlearn.runs.presets import Preset, find_preset
from everlearn.stream import ArrayStream, Stream, TaskStream
from everlearn.stream.datasets.files import data_folder
from everlearn.stream.scenarios.incremental import find_scenario
from everlearn.training.device import find_device, gpu_name

# Consumes the rows of one run: rows, its folder, its name, its number of tasks.
Follow = Callable[[Iterable[Row], Path, str, int | None], None]


class Runner:
    """Makes the results of one scale in one folder, on one device.

    Args:
        only: names of the runs and measurements to make; all by default.
        follow: consumes the rows of a run, to show its progress.
        data: folder of the data sets, for experiments on recorded images.
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
        self.folder = folder
        self.scale = scale
        self.data = data
        self.device = find_device(device)
        self.preset = find_scale(scale)
        self.base = as_sprites(self.preset.stream)
        self.only = frozenset(only)
        self._follow = follow or _finish

    def settings(self, by_scale: Mapping[str, Settings]) -> Settings:
        """Return the settings of an experiment at this scale."""
        return at_scale(by_scale, self.scale)

    def is_selected(self, name: str) -> bool:
        """Return whether to make the run or measurement of this name."""
        return not self.only or name in self.only

    def run_trials(self, trials: Iterable[Trial]) -> None:
        """Start or resume the runs of the trials, and finish them."""
        for trial in trials:
            for seed in trial.seeds_at(self.scale):
                if self.is_selected(trial.folder(seed)):
                    self._run_trial(trial, seed)

    def measure(
        self,
        name: str,
        settings: Mapping[str, Any],
        measure: Callable[[], Iterable[MeasurementRow]],
        trials: Iterable[Trial] = (),
    ) -> None:
        """Write the rows of a measurement to a file, unless they are there.

        Args:
            settings: everything that determines the rows, as plain values.
            measure: returns the rows.
            trials: trials whose runs, of their first seed, are measured.
        """
        if not self.is_selected(name):
            return
        path = self.folder / MEASUREMENTS / f"{name}.jsonl"
        plain_settings = to_json_value(settings, "settings")
        runs = [trial.folder(trial.seeds[0]) for trial in trials]
        existing = read_json_lines(path)
        if existing:
            _check_origin(path, existing[0], plain_settings, self._summary_hashes(runs))
            return
        rows = list(measure())  # also finishes the runs, so their hashes come after
        hashes = self._summary_hashes(runs)
        origin = {"kind": ORIGIN, "settings": plain_settings, "runs": hashes}
        origin |= provenance(gpu_name(self.device))
        write_file(path, b"".join(map(encode_row, [origin, *rows])))

    def _summary_hashes(self, names: Iterable[str]) -> dict[str, str]:
        """Return the SHA-256 of the summaries of finished runs, by name."""
        paths = {name: self.folder / name / DONE for name in names if self.is_finished(name)}
        return {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in paths.items()}

    def is_finished(self, name: str) -> bool:
        """Return whether the run of this name is finished."""
        return is_finished(self.folder / name)

    def extractor(self) -> Path:
        """Return the file of the extractor; pre-train it if it does not exist."""
        return extractor.ensure_extractor(self.folder, self.device)

    def latents(self) -> Path:
        """Return the file of the latents of 50 sprites; compute them if it does not exist."""
        return extractor.ensure_latents(self.folder, self.device)

    def lacks_data(self, trials: Iterable[Trial]) -> bool:
        """Return whether a trial needs data sets, and neither --data nor EVERLEARN_DATA names a folder.

        With `only`, the data are taken to be there: a missing folder then raises an error.
        """
        if self.data or self.only or not any(trial.base in DATA_ENVIRONMENTS for trial in trials):
            return False
        try:
            data_folder()
        except FileNotFoundError:
            return True
        return False

    def preset_of(self, trial: Trial) -> Preset:
        """Return the preset that provides the defaults of a trial."""
        return find_preset(trial.base) if trial.base in PRESETS else self.preset

    def stream(self, trial: Trial, seed: int | None = None) -> TaskStream:
        """Return the stream that a trial learns with a seed, by default its first."""
        seed = trial.seeds[0] if seed is None else seed
        changes = {"seed": seed, **trial.stream}
        scenario = changes.get("scenario")
        if isinstance(scenario, Mapping):  # {"name": "domain", "bands": 1}
            changes["scenario"] = find_scenario(
                scenario["name"], {k: v for k, v in scenario.items() if k != "name"}
            )
        stream = self._full_stream(trial.base, changes)
        return stream.with_changes(tasks=trial.limit_tasks(len(stream), seed))

    def _full_stream(self, base: str, changes: dict[str, Any]) -> TaskStream:
        if base == LATENTS:
            return find_latents(self.scale).with_changes(**{"tasks": None, **changes})
        if base == IDSPRITES:
            self.latents()
            data = self.folder / extractor.DATA
            return ArrayStream(extractor.NAME, data=data, val_share=0, **changes)
        if base in ENVIRONMENTS:
            environments = find_preset(base).stream.with_changes(data=self.data, **changes)
            return limit_environments(environments, self.scale)
        if base in PRESETS:
            return find_preset(base).stream.with_changes(**changes)
        if base:
            known = ", ".join((LATENTS, IDSPRITES, *PRESETS))
            raise ValueError(f"unknown base {base!r} of a trial; known: {known}")
        return self.base.with_changes(**changes)

    def learner(self, trial: Trial) -> Learner:
        """Finish the run of the first seed of a trial and return its learner."""
        seed = trial.seeds[0]
        self._run_trial(trial, seed)
        return launch.load_learner(
            self.folder / trial.folder(seed), self.device, self._data_folder(trial)
        )

    def _run_trial(self, trial: Trial, seed: int) -> None:
        if trial.needs_extractor and self.is_finished(trial.folder(seed)):
            return  # the extractor may have been deleted since
        name = trial.folder(seed)
        folder = self.folder / name
        stream = self.stream(trial, seed)
        preset = self.preset_of(trial)
        plan = replace(preset.plan, **trial.plan)
        settings = {**preset.settings_of(trial.method), **self._settings(trial)}
        data = self._data_folder(trial)
        rows = launch.ensure(folder, trial.method, stream, plan, self.device, data=data, **settings)
        if rows is not None:
            self._follow(rows, folder, name, stream.tasks)

    def _data_folder(self, trial: Trial) -> Path | None:
        """Return the folder of the data sets that a resumed run of the trial reads."""
        return self.data if trial.base in ENVIRONMENTS else self.folder / extractor.DATA

    def _settings(self, trial: Trial) -> dict[str, Any]:
        """Return the settings of a trial, with the path of the extractor filled in."""
        return {
            name: str(self.extractor()) if value == EXTRACTOR else value
            for name, value in trial.settings.items()
        }


def as_sprites(stream: TaskStream) -> Stream:
    """Return a stream that is known to be of sprites; raise for any other."""
    if not isinstance(stream, Stream):
        raise TypeError(f"experiments need a stream of sprites, found {stream!r}")
    return stream


def _check_origin(
    path: Path, origin: dict[str, Any], settings: Mapping[str, Any], hashes: dict[str, str]
) -> None:
    advice = "give another --out, or delete the file to measure again"
    if origin.get("settings") != settings:
        raise ValueError(
            f"{path} holds another measurement, of {origin.get('settings')}, not of {settings}; {advice}"
        )
    recorded = origin.get("runs", hashes)
    changed = [name for name, found in hashes.items() if recorded.get(name) != found]
    if changed:
        raise ValueError(f"{path} was measured with another run in {', '.join(changed)}; {advice}")


def _finish(rows: Iterator[Row], folder: Path, name: str, tasks: int | None) -> None:
    for _ in rows:
        pass
