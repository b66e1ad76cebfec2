"""What a model is told names every picture once and the answers that are allowed."""

from __future__ import annotations

import pytest

from everlearn.questions import messages, picture_names


@pytest.mark.parametrize("n", [2, 10])
def test_there_are_three_messages_and_every_picture_is_shown_once(n: int) -> None:
    instruction, query, choices = messages(n)
    assert instruction.pictures == ()
    assert query.pictures == ("query",)
    assert choices.pictures == tuple(f"choice-{place}" for place in range(n))
    assert (*query.pictures, *choices.pictures) == picture_names(n)


def test_the_instruction_says_which_answers_are_allowed() -> None:
    assert "a whole number from 0 to 6" in messages(7)[0].text


def test_no_text_is_left_unfilled() -> None:
    assert not any("{" in message.text for message in messages(5))
