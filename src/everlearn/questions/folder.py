"""A set of questions as a folder: pictures, prompts and answers, that any program can read.

set.json comes last: where it is, all the rest is.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from everlearn.core.jsonl import read_json_lines
from everlearn.questions.prompt import Message, picture_names
from everlearn.questions.question import Question
from everlearn.questions.question_set import QuestionSet, question_key

SET = "set.json"
UNFINISHED = "making.json"
ANSWERS = "answers.jsonl"
PROMPT = "prompt.json"
_ADVICE = "put back a copy of it, or make the questions in another folder"


class QuestionFolder:
    """A complete set of questions on disk.

    Attributes:
        set: the settings of the questions.
    """

    def __init__(self, folder: Path) -> None:
        """Read a folder and check that its answers are those of its settings."""
        self.folder = folder
        _check_complete(folder)
        self.set = read_set(folder / SET)
        rows = read_json_lines(folder / ANSWERS)
        _check_answers(folder / ANSWERS, self.set, rows)
        self._sums: dict[str, str] = {row["key"]: row.get("sha256", "") for row in rows}
        self._prompts = {n: _read_prompt(prompt_path(folder, n), n) for n in self.set.sizes}

    @property
    def digest(self) -> str:
        """Return a checksum of the settings, the pictures and the correct answers."""
        return checksum((self.folder / name).read_bytes() for name in (SET, ANSWERS))

    @property
    def prompt_digest(self) -> str:
        """Return a checksum of the prompts."""
        return checksum(json.dumps(self._prompts[n]).encode() for n in self.set.sizes)

    def messages(self, n: int) -> list[Message]:
        """Return the prompt of a question of n choices."""
        return self._prompts[n]

    def pictures(self, question: Question) -> dict[str, bytes]:
        """Return the PNG files of a question by name, or raise if they were altered."""
        place = self.folder / question_key(question)
        pictures = read_pictures(place, question.n)
        if checksum(pictures.values()) != self._sums[question_key(question)]:
            raise ValueError(f"a picture in {place} is damaged; {_ADVICE}")
        return pictures


def read_set(path: Path) -> QuestionSet:
    """Read the settings of questions, or raise if the file is damaged."""
    try:
        return QuestionSet.from_json(path.read_bytes().decode())
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path} is damaged: {error}; {_ADVICE}") from None


def _check_complete(folder: Path) -> None:
    if (folder / UNFINISHED).exists() and not (folder / SET).exists():
        raise ValueError(
            f"the set in {folder} is not complete yet; run the same everlearn ask make again"
        )
    if not (folder / SET).exists():
        raise FileNotFoundError(
            f"{folder} holds no set of questions: {SET} is missing; write one with: "
            f"everlearn ask make {folder}"
        )


def _check_answers(path: Path, wanted: QuestionSet, rows: list[dict[str, Any]]) -> None:
    """Compare the stored answers with those that follow from the seed."""
    if len(rows) != len(wanted):
        found = f"it has {len(rows)} lines, and {SET} says {len(wanted)} questions"
        raise ValueError(f"{path} is damaged: {found}; {_ADVICE}")
    for row, question in zip(rows, wanted, strict=True):
        answer = expected_answer(question)
        if {name: row.get(name) for name in answer} != answer:
            raise ValueError(f"{path} is damaged: it has {row}, expected {answer}; {_ADVICE}")


def expected_answer(question: Question) -> dict[str, Any]:
    """Return the stored form of the correct answer, which follows from the seed."""
    answer = {"n": question.n, "number": question.number, "answer": question.answer}
    return {"key": question_key(question), **answer}


def prompt_path(folder: Path, n: int) -> Path:
    """Return the file of the prompt for questions of n choices."""
    return folder / f"n{n:02}" / PROMPT


def _read_prompt(path: Path, n: int) -> list[Message]:
    """Read a prompt; its texts may have been edited, its pictures may not."""
    try:
        prompt = [Message(m["role"], m["text"], tuple(m["pictures"])) for m in _load(path)]
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is damaged: {error!r}; {_ADVICE}") from None
    shown = tuple(name for message in prompt for name in message.pictures)
    if shown != picture_names(n):
        names = ", ".join(picture_names(n))
        raise ValueError(f"{path} must show the pictures {names}, in this order, found {shown}")
    return prompt


def _load(path: Path) -> Any:
    if not path.exists():
        raise ValueError("it is missing")
    return json.loads(path.read_bytes())


def read_pictures(place: Path, n: int) -> dict[str, bytes]:
    """Read the PNG files of a question by name."""
    paths = {name: place / f"{name}.png" for name in picture_names(n)}
    missing = [str(path) for path in paths.values() if not path.is_file()]
    if missing:
        raise ValueError(f"{missing[0]} is missing; {_ADVICE}")
    return {name: path.read_bytes() for name, path in paths.items()}


def checksum(parts: Iterable[bytes]) -> str:
    """Return a checksum of the checksums of all parts, so that no byte can move between parts."""
    sums = (hashlib.sha256(part).digest() for part in parts)
    return hashlib.sha256(b"".join(sums)).hexdigest()
