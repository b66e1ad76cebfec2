"""The row that ends a task: what it cost, and what the learner reports about itself."""

from __future__ import annotations

from everlearn.evaluation.costs import (
    count_bytes,
    count_numbers,
    measure_memory,
    read_diagnostics,
)
from everlearn.evaluation.timing import TaskTimer
from everlearn.learner import Learner
from everlearn.rows import TaskRow


def task_row(
    learner: Learner,
    learned: int,
    step: int,
    steps: int,
    loss: float | None,
    timer: TaskTimer,
    tested: bool,
) -> TaskRow:
    """Make the row of a task.

    Args:
        steps: optimizer steps of this task.
        loss: mean of the task.
        tested: whether the learner was tested after the task: its state is counted then.
    """
    seconds = timer.learning_seconds
    memory = measure_memory(learner.device)
    row: TaskRow = {
        "kind": "task",
        "learned": learned,
        "step": step,
        "images": steps * learner.batch_size,
        "seconds": seconds,
        "evaluation_seconds": timer.evaluation_seconds,
        "loss": loss,
        "host_memory": memory.host,
        "memory": memory.device,
        "peak_memory": memory.peak,
    }
    diagnostics = read_diagnostics(learner)
    if diagnostics is not None:
        row["diagnostics"] = diagnostics
    if tested:
        state = learner.state()
        row["bytes"] = {name: count_bytes(part) for name, part in state.items()}
        row["parameters"] = count_numbers(state.get("net", {}))
    return row
