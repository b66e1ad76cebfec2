"""A set of questions as a folder: pictures, prompts and answers, that any program can read.

set.json comes last: where it is, all the rest is.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from everlearn.choice.prompt import Message, picture_names
from everlearn.choice.questions import Question
from everlearn.choice.sets import QuestionSet, key
from everlearn.results.lines import read_lines

SET, MAKING = "set.json", "making.json"
ANSWERS, PROMPT = "answers.jsonl", "prompt.json"
_ANEW = "put back a copy of it, or make the questions in another folder"


class QuestionFolder:
    """A whole set on disk.

    Attributes:
        set: what the questions follow from.
    """

    def __init__(self, folder: Path) -> None:
        """Read a folder, and check that it holds the questions that it says it does."""
        self.folder = folder
        _check_whole(folder)
        self.set = read_set(folder / SET)
        rows = read_lines(folder / ANSWERS)
        _check_answers(folder / ANSWERS, self.set, rows)
        self._sums: dict[str, str] = {row["key"]: row.get("sha256", "") for row in rows}
        self._prompts = {n: _read_prompt(prompt_path(folder, n), n) for n in self.set.sizes}

    @property
    def digest(self) -> str:
        """Sum up the questions: what they follow from, their pictures and right answers."""
        return sum_up((self.folder / name).read_bytes() for name in (SET, ANSWERS))

    @property
    def prompt_digest(self) -> str:
        """Sum up what a model is told."""
        return sum_up(json.dumps(self._prompts[n]).encode() for n in self.set.sizes)

    def messages(self, n: int) -> list[Message]:
        """What a model is told about a question of n choices."""
        return self._prompts[n]

    def pictures(self, question: Question) -> dict[str, bytes]:
        """The PNG files of a question by name, or say that they are not those that were written."""
        place = self.folder / key(question)
        pictures = read_pictures(place, question.n)
        if sum_up(pictures.values()) != self._sums[key(question)]:
            raise ValueError(f"a picture in {place} is damaged; {_ANEW}")
        return pictures


def read_set(path: Path) -> QuestionSet:
    """Read what questions follow from, or say that the file is damaged."""
    try:
        return QuestionSet.from_json(path.read_bytes().decode())
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path} is damaged: {error}; {_ANEW}") from None


def _check_whole(folder: Path) -> None:
    if (folder / MAKING).exists() and not (folder / SET).exists():
        raise ValueError(
            f"the set in {folder} is not whole yet; run the same everlearn ask make again"
        )
    if not (folder / SET).exists():
        raise FileNotFoundError(
            f"{folder} holds no set of questions: {SET} is missing; write one with: "
            f"everlearn ask make {folder}"
        )


def _check_answers(path: Path, wanted: QuestionSet, rows: list[dict[str, Any]]) -> None:
    """Compare the right answers with those that follow from the seed."""
    if len(rows) != len(wanted):
        found = f"it has {len(rows)} lines, and {SET} says {len(wanted)} questions"
        raise ValueError(f"{path} is damaged: {found}; {_ANEW}")
    for row, question in zip(rows, wanted, strict=True):
        told = expected(question)
        if {name: row.get(name) for name in told} != told:
            raise ValueError(f"{path} is damaged: it has {row}, expected {told}; {_ANEW}")


def expected(question: Question) -> dict[str, Any]:
    """What the answers say of a question, as it follows from the seed."""
    own = {"n": question.n, "number": question.number, "answer": question.answer}
    return {"key": key(question), **own}


def prompt_path(folder: Path, n: int) -> Path:
    """Where the words for questions of n choices are."""
    return folder / f"n{n:02}" / PROMPT


def _read_prompt(path: Path, n: int) -> list[Message]:
    """Read what to say; other words than ours are fine, other pictures are not."""
    try:
        said = [Message(m["role"], m["text"], tuple(m["pictures"])) for m in _load(path)]
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is damaged: {error!r}; {_ANEW}") from None
    shown = tuple(name for message in said for name in message.pictures)
    if shown != picture_names(n):
        names = ", ".join(picture_names(n))
        raise ValueError(f"{path} must show the pictures {names}, in this order, found {shown}")
    return said


def _load(path: Path) -> Any:
    if not path.exists():
        raise ValueError("it is missing")
    return json.loads(path.read_bytes())


def read_pictures(place: Path, n: int) -> dict[str, bytes]:
    """Read the PNG files of a question by name."""
    paths = {name: place / f"{name}.png" for name in picture_names(n)}
    missing = [str(path) for path in paths.values() if not path.is_file()]
    if missing:
        raise ValueError(f"{missing[0]} is missing; {_ANEW}")
    return {name: path.read_bytes() for name, path in paths.items()}


def sum_up(parts: Iterable[bytes]) -> str:
    """One sum of the sums of all parts, so that no byte can move from one to the next."""
    sums = (hashlib.sha256(part).digest() for part in parts)
    return hashlib.sha256(b"".join(sums)).hexdigest()
