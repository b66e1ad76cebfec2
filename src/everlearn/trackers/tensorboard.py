"""TensorBoard: event files in the run's folder, written without TensorFlow or torch."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from time import time
from typing import Any

from everlearn.trackers.origin import Config, flat, logs
from everlearn.trackers.tracker import told

_NAME = "events.out.tfevents."


class TensorBoard:
    """Event files of one run, one a session."""

    def __init__(self, folder: Path, config: Config, first: int) -> None:
        """Begin an event file; what older ones hold from the step `first` on counts no more."""
        from tensorboard.compat.proto.event_pb2 import Event, SessionLog
        from tensorboard.summary.writer.record_writer import RecordWriter

        with told("tensorboard", OSError):
            self._file = _new_file(logs(folder) / "tensorboard").open("xb")
            self._records = RecordWriter(self._file)
            self._add(Event(wall_time=time(), file_version="brain.Event:2"))
            again = SessionLog(status=SessionLog.START)
            self._add(Event(wall_time=time(), step=first, session_log=again))
            self._add(Event(wall_time=time(), summary=_hyper_parameters(config)))

    def write(self, step: int, numbers: Mapping[str, float]) -> None:
        """Write numbers at a step; they are in the file at once."""
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.compat.proto.summary_pb2 import Summary

        values = [Summary.Value(tag=name, simple_value=n) for name, n in numbers.items()]
        with told("tensorboard", OSError):
            self._add(Event(wall_time=time(), step=step, summary=Summary(value=values)))

    def close(self, finished: bool) -> None:
        """End the file."""
        with told("tensorboard", OSError):
            self._file.close()

    def _add(self, event: Any) -> None:
        self._records.write(event.SerializeToString())
        self._file.flush()


def _new_file(place: Path) -> Path:
    """A name that sorts after all others there, in which order TensorBoard reads them."""
    place.mkdir(exist_ok=True)
    numbers = [int(path.name.split(".")[3]) for path in place.glob(f"{_NAME}*")]
    return place / f"{_NAME}{max([int(time()), *(n + 1 for n in numbers)]):010}.everlearn"


def _hyper_parameters(config: Config) -> Any:
    """What the tab HPARAMS shows of a run."""
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.plugins.hparams import metadata
    from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData, SessionStartInfo

    start = SessionStartInfo(start_time_secs=time())
    for name, value in flat(config).items():
        kind = (
            "bool" if isinstance(value, bool) else "string" if isinstance(value, str) else "number"
        )
        setattr(start.hparams[name], f"{kind}_value", value)
    about = metadata.create_summary_metadata(HParamsPluginData(session_start_info=start))
    tag, nothing = metadata.SESSION_START_INFO_TAG, metadata.NULL_TENSOR
    return Summary(value=[Summary.Value(tag=tag, metadata=about, tensor=nothing)])
