"""The answers of one player to one set, as a folder: every answer is on the disk once it is given."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

from everlearn.choice.questions import Question
from everlearn.choice.sets import QuestionSet
from everlearn.disk import explained, sync, write_file
from everlearn.lock import locked
from everlearn.metrics import Row
from everlearn.provenance import provenance
from everlearn.results.folder import PROVENANCE, ROWS, SETTINGS, read_settings
from everlearn.results.lines import Lines, read_lines


class Record:
    """Answers that are there, and those to come; made by `recording`.

    Attributes:
        rows: one for each answer.
    """

    def __init__(self, folder: Path, asked: QuestionSet, lines: Lines) -> None:
        """Read the answers that are there."""
        self.folder = folder
        self.rows = read_lines(folder / ROWS)
        self._lines = lines
        _check_rows(folder / ROWS, asked, self.rows)

    def left(self, asked: QuestionSet) -> list[Question]:
        """The questions that have no answer yet."""
        done = {(row["n"], row["number"]) for row in self.rows}
        return [question for question in asked if (question.n, question.number) not in done]

    def keep(self, row: Row) -> Row:
        """Write an answer, with the player's name, and wait until it is on the disk."""
        named = {**row, "player": self.folder.name}
        with explained(ROWS, self.folder, "the answers so far are kept"):
            self._lines.append(named)
            self._lines.sync()
        self.rows.append(named)
        return named


@contextmanager
def recording(
    folder: Path, settings: dict[str, Any], asked: QuestionSet, gpu: str | None = None
) -> Iterator[Record]:
    """Hold the folder of a player as its one writer.

    Args:
        settings: who answers what; a folder of other settings is refused.
    """
    with explained("answers", folder):
        folder.mkdir(parents=True, exist_ok=True)
    with locked(folder), ExitStack() as stack:
        _claim(folder, settings)
        lines, sessions = (stack.enter_context(_open(folder / n)) for n in (ROWS, PROVENANCE))
        sync(folder)
        record = Record(folder, asked, lines)
        if record.left(asked):
            sessions.append(provenance(gpu))
            sessions.sync()
        yield record


def _claim(folder: Path, settings: dict[str, Any]) -> None:
    """Write who answers here, or check that it is the same one."""
    for path in folder.glob(f".{SETTINGS}.*.tmp"):  # of a writer that was killed
        path.unlink()
    path = folder / SETTINGS
    if path.exists():
        _check_same(folder, read_settings(folder), settings)
        return
    others = sorted(p.name for p in folder.iterdir() if not p.name.startswith("."))
    if others:
        raise ValueError(f"{folder} holds {others[0]} and no {SETTINGS}; give another --name")
    write_file(path, json.dumps(settings, indent=1).encode() + b"\n")


def _check_same(folder: Path, found: dict[str, Any], settings: dict[str, Any]) -> None:
    for name in (*settings, *found):
        old, new = (json.dumps(each.get(name), sort_keys=True) for each in (found, settings))
        if old != new:
            raise ValueError(
                f"{folder} holds answers of another player: its {name} is {old}, not {new}; "
                "give another --name"
            )


@contextmanager
def _open(path: Path) -> Iterator[Lines]:
    """Open a file of rows, without the last line where a killed writer left half of it."""
    whole = path.read_bytes().rfind(b"\n") + 1 if path.exists() else 0
    with closing(Lines(path, whole)) as lines:
        yield lines


def _check_rows(path: Path, asked: QuestionSet, rows: list[Row]) -> None:
    """Raise where a row answers no question, or one that another row has answered."""
    unanswered = {(question.n, question.number) for question in asked}
    for number, row in enumerate(rows, 1):
        place = row.get("n"), row.get("number")
        if place not in unanswered or not isinstance(row.get("chosen"), int):
            raise ValueError(
                f"{path}, line {number} is damaged: no first answer to a question of the set; "
                "put back a copy of the file"
            )
        unanswered.remove(place)
