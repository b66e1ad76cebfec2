"""What a stream must be so that a method can learn it."""

from __future__ import annotations

from everlearn.stream import TaskStream
from everlearn.training.schedule import Schedule


def check_epochs(stream: TaskStream, schedule: Schedule) -> None:
    """Raise where a schedule has several epochs but the stream is online."""
    if stream.online and schedule.epochs > 1:
        raise ValueError(
            f"this stream is online: one pass is allowed, found epochs={schedule.epochs}; give epochs=1"
        )


def finite_class_ids(stream: TaskStream) -> range:
    """Return the ids of all classes of a stream; raise where it is endless."""
    if stream.tasks is None:
        raise ValueError(
            "this method needs one output per class, but the stream is endless; give it an end, as in "
            "stream.with_changes(tasks=100), or use dcl or contrastive"
        )
    return stream.class_ids
