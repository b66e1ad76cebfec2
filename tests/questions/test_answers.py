"""Texts become answers or count as wrong."""

from __future__ import annotations

import json

import pytest

from everlearn.questions import Question, Tally, answer_all, parse_answer, questions, tally

CLEAR = [
    ("2", 2),
    (" 2.\n", 2),
    ("Answer: 2", 2),
    ("The answer is **3**.", 3),
    ("(0)", 0),
    ("[1]", 1),
    ('{"answer": 3}', 3),
    ("- 2", 2),
    ("_2_", 2),
    ("Picture 3, because of its two horns.", 3),
    ("02", 2),
]
UNCLEAR = [
    "",
    "two",
    "I cannot tell.",
    "2 or 3",
    "2, 2",
    "2 of 4",
    "2.5",
    ".2",
    "2/3",
    "-1",
    "-2",
    "−2",
    "4",
    "12",
    "2nd",
    "A2",
    "2%",
    "1e0",
    "1½",
    "٢",
    "٢ 3",
    "9" * 5000,
]


@pytest.mark.parametrize(("text", "expected"), CLEAR)
def test_one_number_in_range_is_the_answer(text: str, expected: int) -> None:
    assert parse_answer(text, 4) == expected


@pytest.mark.parametrize("text", UNCLEAR)
def test_b11_anything_else_is_no_answer(text: str) -> None:
    assert parse_answer(text, 4) == -1


def test_what_is_in_range_depends_on_the_question() -> None:
    assert [parse_answer("9", n) for n in (9, 10)] == [-1, 9]


def test_b11_an_answer_that_cannot_be_read_counts_as_wrong() -> None:
    rows = answer_all(questions(0, [2, 3], 50), lambda question: parse_answer("0 or 1", question.n))
    assert tally(rows) == {2: Tally(0, 50), 3: Tally(0, 50)}


def test_who_knows_the_answer_is_always_right() -> None:
    found = tally(answer_all(questions(0, [7, 2], 30), lambda question: question.answer))
    assert list(found) == [2, 7]
    assert [count.accuracy for count in found.values()] == [1.0, 1.0]


def test_a_row_tells_the_question_the_answer_and_the_choice() -> None:
    question = Question(0, 3, 5)
    rows = list(answer_all([question], lambda question: -1))
    told = {"kind": "choice", "n": 3, "number": 5, "answer": question.answer, "chosen": -1}
    assert json.loads(json.dumps(rows)) == [told]
