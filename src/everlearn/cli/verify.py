"""`everlearn verify`: repeat a sample of recorded runs and compare their rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from everlearn.cli.messages import error_message, print_message
from everlearn.cli.progress import show_progress
from everlearn.cli.run import Device
from everlearn.rows import Row

if TYPE_CHECKING:
    from everlearn.runs.agreement import Agreement

DIFFERS = 1  # exit code, also where nothing could be compared
_SHOWN = {
    "same bits": "same bits",
    "within noise": "within noise",
    "differs": "differ",
    "not compared": "not compared",
    "cannot run": "cannot run",
}
# What stops one run, anywhere in the package, must not hide what was found for the others.
_FAILURES = (ValueError, TypeError, OSError, ImportError, RuntimeError)


def verify(
    folder: Annotated[Path, typer.Argument(help="Folder of finished runs.", show_default=False)],
    sample: Annotated[int, typer.Option(help="How many runs to repeat.", min=1)] = 5,
    seed: Annotated[int, typer.Option(help="Which ones: the seed of the sample.", min=0)] = 0,
    device: Device = "auto",
    tasks: Annotated[int, typer.Option(help="Repeat the first so many tasks.", min=1)] = 20,
    data: Annotated[
        Path | None, typer.Option(help="Folder of the data sets.", show_default="EVERLEARN_DATA")
    ] = None,
) -> None:
    """Repeat a random sample of runs with this version, and compare their rows.

    A CPU repeats runs that a CPU made, a GPU the others. The exit code is 1 if one differs, or if none
    could be compared.
    """
    from everlearn.runs.repetition import sample_runs
    from everlearn.training.device import find_device

    device = find_device(device)
    runs = sample_runs(folder, device, sample, seed)
    found: Counter[str] = Counter()
    for number, run in enumerate(runs, 1):
        agreement = _verify_run(run, tasks, device, data)
        found[agreement.verdict] += 1
        detail = f": {agreement.detail}" if agreement.detail else ""
        print_message(f"{number} of {len(runs)}, {run}: {agreement.verdict}{detail}")
    print_message(", ".join(f"{found[verdict]} {text}" for verdict, text in _SHOWN.items()))
    if found["differs"] or not (found["same bits"] or found["within noise"]):
        raise typer.Exit(DIFFERS)


def _verify_run(folder: Path, tasks: int, device: str, data: Path | None) -> Agreement:
    from everlearn.evaluation.costs import DivergedError
    from everlearn.runs.agreement import Agreement

    try:
        return _repeat_and_compare(folder, tasks, device, data)
    except DivergedError as error:
        return Agreement("differs", error_message(error))
    except _FAILURES as error:
        return Agreement("cannot run", _reason(error))


def _repeat_and_compare(folder: Path, tasks: int, device: str, data: Path | None) -> Agreement:
    from everlearn.runs.agreement import compare_rows
    from everlearn.runs.repetition import (
        check_provenance,
        count_tasks,
        read_first_rows,
        read_other_seeds,
        repeat_run,
    )

    check_provenance(folder)
    tasks = count_tasks(folder, tasks)
    recorded = read_first_rows(folder, tasks)
    other_seeds = read_other_seeds(folder, tasks)
    repeated: list[Row] = []
    show_progress(_collect(repeat_run(folder, tasks, device, data), repeated), folder.name, tasks)
    return compare_rows(recorded, repeated, other_seeds)


def _reason(error: Exception) -> str:
    """Return the message of an error, with its type where the message alone says little."""
    message = error_message(error)
    unclear = isinstance(error, RuntimeError)  # of torch, mostly
    return f"{type(error).__name__}: {message}" if unclear else message


def _collect(rows: Iterator[Row], collected: list[Row]) -> Iterator[Row]:
    for row in rows:
        collected.append(row)
        yield row
