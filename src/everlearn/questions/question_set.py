"""QuestionSet: the settings that determine a set of questions, with a JSON form."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

from everlearn.core.random import check_seed
from everlearn.core.validate import check_int, check_names
from everlearn.questions.question import Question, check_choices, questions
from everlearn.render import Canvas

_FORMAT = 1
_KEY = "everlearn_questions"
_MAX_EACH = 100_000


@dataclass(frozen=True)
class QuestionSet:
    """Equally many questions for each number of choices; the paper's by default.

    Args:
        sizes: the numbers of choices.
        each: questions of each size.
    """

    seed: int = 0
    sizes: tuple[int, ...] = tuple(range(2, 11))
    each: int = 100
    canvas: Canvas = Canvas()

    def __post_init__(self) -> None:
        """Check every field."""
        check_seed(self.seed)
        check_int(self.each, "each, the questions of a size,", 1, _MAX_EACH)
        sizes = tuple(check_choices(n) for n in self.sizes)
        if not sizes or len(set(sizes)) < len(sizes):
            raise ValueError(f"sizes must be one or more, each named once, found {list(sizes)}")
        object.__setattr__(self, "sizes", sizes)

    def __len__(self) -> int:
        """Count the questions."""
        return len(self.sizes) * self.each

    def __iter__(self) -> Iterator[Question]:
        """Go through the questions, size by size."""
        return questions(self.seed, self.sizes, self.each, self.canvas)

    def to_json(self) -> str:
        """Return the settings as JSON."""
        settings = {item.name: getattr(self, item.name) for item in fields(self)}
        return (
            json.dumps({_KEY: _FORMAT, **settings, "canvas": self.canvas.to_dict()}, indent=1)
            + "\n"
        )

    @classmethod
    def from_json(cls, text: str) -> QuestionSet:
        """Read what `to_json` wrote, or raise with what is wrong."""
        found = _read(text)
        sizes = found["sizes"]
        canvas = found["canvas"]
        if not isinstance(sizes, list) or not isinstance(canvas, dict):
            raise ValueError("sizes must be a list and canvas an object")
        check_names(canvas, [item.name for item in fields(Canvas)], "canvas")
        return cls(found["seed"], tuple(sizes), found["each"], Canvas(**canvas))


def question_key(question: Question) -> str:
    """Return the name of a question, which is the folder of its pictures: "n02/0007"."""
    return f"n{question.n:02}/{question.number:04}"


def _read(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"it is not JSON: {error}") from None
    names = [_KEY, *(item.name for item in fields(QuestionSet))]
    if not isinstance(found, dict) or sorted(found) != sorted(names):
        raise ValueError(f"it must be a JSON object of {', '.join(names)}")
    if found[_KEY] != _FORMAT:
        raise ValueError(
            f"it has format {found[_KEY]!r}; this version of everlearn reads {_FORMAT}: update it"
        )
    return found
