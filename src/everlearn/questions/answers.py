"""Answers to questions: parsed from a model's text, and collected as rows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from everlearn.questions.players import Answer
from everlearn.questions.question import Question, check_choices
from everlearn.rows import ChoiceRow

NO_ANSWER = -1
# The only number of a text. A minus, a decimal point, a letter or a per cent sign makes it another thing.
_ONLY = re.compile(r"\D*(?<![^\W_])(?<![-−–.,])([0-9]{1,9})(?![^\W_]|%)\D*")


def parse_answer(text: str, n: int) -> int:
    """Read the answer to a question of n choices from a text; -1 where it holds none.

    The text must hold one number and no other, a whole number from 0 to n - 1. Words around it do
    not matter ("Answer: 2", "(2)", "2."). Two numbers are no answer, even if they are equal.
    """
    found = _ONLY.fullmatch(text)
    number = int(found[1]) if found else NO_ANSWER
    return number if number < check_choices(n) else NO_ANSWER


def answer_all(questions: Iterable[Question], answer: Answer) -> Iterator[ChoiceRow]:
    """Answer questions; yield a row for each."""
    for question in questions:
        yield {
            "kind": "choice",
            "n": question.n,
            "number": question.number,
            "answer": question.answer,
            "chosen": int(answer(question)),
        }
