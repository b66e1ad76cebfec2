"""The answers of one player to one set of questions, as a folder that is written answer by answer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, cast

from everlearn.core.files import explain_write_errors, sync, write_file
from everlearn.core.json_values import parse_object, read_text
from everlearn.core.jsonl import RowWriter, read_json_lines
from everlearn.core.lock import locked
from everlearn.core.provenance import provenance
from everlearn.questions.question import Question
from everlearn.questions.question_set import QuestionSet
from everlearn.rows import ChoiceRow

PROVENANCE = "provenance.jsonl"
ROWS = "rows.jsonl"
SETTINGS = "settings.json"


class Record:
    """The stored answers of a player; `open_record` makes one.

    Attributes:
        rows: one for each answer.
    """

    def __init__(self, folder: Path, asked: QuestionSet, lines: RowWriter) -> None:
        """Read the answers that are there."""
        self.folder = folder
        self.rows = cast("list[ChoiceRow]", read_json_lines(folder / ROWS))
        self._lines = lines
        _check_rows(folder / ROWS, asked, self.rows)

    def left(self, asked: QuestionSet) -> list[Question]:
        """Return the questions without an answer."""
        done = {(row["n"], row["number"]) for row in self.rows}
        return [question for question in asked if (question.n, question.number) not in done]

    def keep(self, row: ChoiceRow) -> ChoiceRow:
        """Write an answer with the player's name and wait until it is on disk."""
        named: ChoiceRow = {**row, "player": self.folder.name}
        with explain_write_errors(ROWS, self.folder, "the answers so far are kept"):
            self._lines.append(named)
            self._lines.sync()
        self.rows.append(named)
        return named


@contextmanager
def open_record(
    folder: Path, settings: dict[str, Any], asked: QuestionSet, gpu: str | None = None
) -> Iterator[Record]:
    """Open the folder of a player as its only writer.

    Args:
        settings: who answers what; a folder with other settings is refused.
    """
    with explain_write_errors("answers", folder):
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
    """Write the settings, or check that the folder has the same ones."""
    for path in folder.glob(f".{SETTINGS}.*.tmp"):  # of a killed writer
        path.unlink()
    path = folder / SETTINGS
    if path.exists():
        _check_same(folder, parse_object(read_text(path), str(path)), settings)
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
def _open(path: Path) -> Iterator[RowWriter]:
    """Open a file of rows, without an incomplete last line of a killed writer."""
    complete = path.read_bytes().rfind(b"\n") + 1 if path.exists() else 0
    with closing(RowWriter(path, complete)) as lines:
        yield lines


def _check_rows(path: Path, asked: QuestionSet, rows: list[ChoiceRow]) -> None:
    """Raise if a row answers no question, or one that another row has answered."""
    unanswered = {(question.n, question.number) for question in asked}
    for number, row in enumerate(rows, 1):
        place = row.get("n"), row.get("number")
        if place not in unanswered or not isinstance(row.get("chosen"), int):
            raise ValueError(
                f"{path}, line {number} is damaged: it is not the first answer to a question of the set; "
                "put back a copy of the file"
            )
        unanswered.remove(place)
