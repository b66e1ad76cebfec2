"""TensorBoard: event files in the run's folder, written without TensorFlow or torch."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from time import time
from typing import Any

from everlearn.runs.trackers.provenance import Config, flatten, log_folder
from everlearn.runs.trackers.tracker import tracker_errors

_PREFIX = "events.out.tfevents."


class TensorBoard:
    """Event files of one run, one for each session."""

    def __init__(self, folder: Path, config: Config, first_step: int) -> None:
        """Begin an event file; events of older files from `first_step` on are discarded by TensorBoard."""
        from tensorboard.compat.proto.event_pb2 import Event, SessionLog
        from tensorboard.summary.writer.record_writer import RecordWriter

        with tracker_errors("tensorboard", OSError):
            self._file = _new_file(log_folder(folder) / "tensorboard").open("xb")
            self._records = RecordWriter(self._file)
            self._add(Event(wall_time=time(), file_version="brain.Event:2"))
            session = SessionLog(status=SessionLog.START)
            self._add(Event(wall_time=time(), step=first_step, session_log=session))
            self._add(Event(wall_time=time(), summary=_hyper_parameters(config)))

    def write(self, step: int, metrics: Mapping[str, float]) -> None:
        """Write metrics at a step; they are in the file at once."""
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.compat.proto.summary_pb2 import Summary

        values = [Summary.Value(tag=name, simple_value=n) for name, n in metrics.items()]
        with tracker_errors("tensorboard", OSError):
            self._add(Event(wall_time=time(), step=step, summary=Summary(value=values)))

    def close(self, finished: bool) -> None:
        """Close the file."""
        with tracker_errors("tensorboard", OSError):
            self._file.close()

    def _add(self, event: Any) -> None:
        self._records.write(event.SerializeToString())
        self._file.flush()


def _new_file(folder: Path) -> Path:
    """Return a path that sorts after all others there: TensorBoard reads them in this order."""
    folder.mkdir(exist_ok=True)
    numbers = [int(path.name.split(".")[3]) for path in folder.glob(f"{_PREFIX}*")]
    return folder / f"{_PREFIX}{max([int(time()), *(n + 1 for n in numbers)]):010}.everlearn"


def _hyper_parameters(config: Config) -> Any:
    """Return the summary that the HPARAMS tab shows of a run."""
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.plugins.hparams import metadata
    from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData, SessionStartInfo

    start = SessionStartInfo(start_time_secs=time())
    for name, value in flatten(config).items():
        setattr(start.hparams[name], f"{_type_name(value)}_value", value)
    value = Summary.Value(
        tag=metadata.SESSION_START_INFO_TAG,
        metadata=metadata.create_summary_metadata(HParamsPluginData(session_start_info=start)),
        tensor=metadata.NULL_TENSOR,
    )
    return Summary(value=[value])


def _type_name(value: bool | float | str) -> str:
    if isinstance(value, bool):
        return "bool"
    return "string" if isinstance(value, str) else "number"
