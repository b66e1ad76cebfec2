"""What a server may send with status 200: texts, parts, refusals, and what is no reply at all."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from everlearn.questions.chat import read_error_message, read_reply

pytestmark = pytest.mark.integration

ALL = Counter({(n, number): 1 for n in (2, 4) for number in range(3)})
REFUSED = {"role": "assistant", "content": None, "refusal": "I will not look at 1 of them."}


def completion(message: Any, **more: Any) -> dict[str, Any]:
    return {"choices": [{"message": message, "finish_reason": "stop"}], **more}


def parts(*texts: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": text} for text in texts]


def test_texts_of_parts_are_the_answer(hall: Any, acts: Any) -> None:
    hall.act = lambda question, times: acts.raw(
        200,
        completion(
            {
                "content": [
                    {"type": "thinking", "thinking": "3 or 0?"},
                    *parts("It is", str(question.answer)),
                ]
            }
        ),
    )
    code, _, errors = hall.play()
    assert (code, hall.asked) == (0, ALL), errors
    rows = hall.rows()
    assert all(row["chosen"] == row["answer"] for row in rows)
    assert rows[0]["text"] == f"It is\n{rows[0]['answer']}"


def test_two_parts_are_two_answers() -> None:
    assert read_reply(completion({"content": parts("0", "1")})).text == "0\n1"


@pytest.mark.parametrize(
    ("reply", "instead"),
    [
        (completion(REFUSED), "refusal: I will not look at 1 of them."),
        (completion({**REFUSED, "content": ""}), "refusal: I will not look at 1 of them."),
        (completion({"content": None, "tool_calls": [1]}), '{"content": null, "tool_calls": [1]}'),
        (
            completion({"content": [{"type": "refusal", "refusal": "1"}]}),
            '{"content": [{"type": "refusal", "refusal": "1"}]}',
        ),
        (
            completion(None),
            '{"choices": [{"message": null, "finish_reason": "stop"}]}',
        ),
        ({"id": "1", "choices": []}, '{"id": "1", "choices": []}'),
    ],
    ids=["refusal", "refusal and empty text", "tool", "refusal as a part", "filter", "no choice"],
)
def test_a_reply_without_a_text_is_kept_as_a_wrong_answer_and_paid_once(
    hall: Any, acts: Any, reply: Any, instead: str
) -> None:
    """Though it holds the one number 1, which is the answer to some of the questions."""
    hall.act = lambda question, times: acts.raw(200, reply)
    code, _, errors = hall.play()
    assert (code, hall.asked) == (0, ALL), errors
    found = {(row["chosen"], row["text"], row["instead"], row["tries"]) for row in hall.rows()}
    assert found == {(-1, "", instead, 1)}


def test_where_there_is_a_text_nothing_came_instead(hall: Any) -> None:
    hall.play()
    assert {row["instead"] for row in hall.rows()} == {None}


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        ({"error": {"message": "the model is gone", "code": 5}}, "the model is gone"),
        ({"error": "no credit"}, "no credit"),
        ({"object": "list"}, '{"object": "list"}'),
        ({"choices": [{"text": "2"}]}, '{"choices": [{"text": "2"}]}'),
        ({"choices": None}, '{"choices": null}'),
        (completion("2"), '{"choices": [{"message": "2", "finish_reason": "stop"}]}'),
        (
            completion({"content": 2}),
            '{"choices": [{"message": {"content": 2}, "finish_reason": "stop"}]}',
        ),
        ([1], "[1]"),
        (None, "null"),
    ],
)
def test_json_that_is_no_completion_stops_at_once_in_one_line(
    hall: Any, acts: Any, reply: Any, told: str
) -> None:
    hall.act = lambda question, times: acts.raw(200, reply)
    code, _, errors = hall.play()
    assert (code, len(errors.splitlines()), sum(hall.asked.values())) == (2, 1, 1)
    assert f"/v1/chat/completions: the reply is not a chat completion: {told}; check" in errors
    assert "0 of 6 answers are kept" in errors


@pytest.mark.parametrize(
    "part", ["2", {"text": "2"}, {"type": "text"}, {"type": "text", "text": 2}]
)
def test_parts_that_are_none_make_no_completion(part: Any) -> None:
    with pytest.raises(ValueError, match="not a chat completion"):
        read_reply(completion({"content": [part]}))


@pytest.mark.parametrize("usage", [None, [], "many", {"prompt_tokens": "9"}])
def test_tokens_that_are_no_numbers_are_not_told(usage: Any) -> None:
    assert read_reply(completion({"content": "2"}, usage=usage))[-2:] == (None, None)


def test_a_complaint_is_the_message_or_all_of_it() -> None:
    assert read_error_message({"error": {"message": "no"}}) == "no"
    assert read_error_message({"error": {"code": 5}}) == '{"error": {"code": 5}}'
    assert read_error_message("straße") == "straße"
