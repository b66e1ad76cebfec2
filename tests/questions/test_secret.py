"""The key shows in no file and no message, however a server spells it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from everlearn.questions.secret import hide, parse_json

pytestmark = pytest.mark.integration

KEY = 'sk/Qzv9"Xwk4\\\\Jfb7Hpt2'


def as_it_is(key: str) -> str:
    return json.dumps(key)[1:-1]


def in_numbers(key: str) -> str:
    return "".join(f"\\u{ord(c):04X}" for c in key)


def with_slashes(key: str) -> str:
    return as_it_is(key).replace("/", "\\/").replace("Q", "\\u0051")


SPELLINGS = [as_it_is, in_numbers, with_slashes]


@pytest.mark.parametrize("spell", SPELLINGS)
def test_the_key_is_hidden_in_every_text_of_a_reply(spell: Callable[[str], str]) -> None:
    data = f'{{"a": ["x {spell(KEY)} y", 1, null], "{spell(KEY)}": {{"b": "{spell(KEY)}"}}}}'
    assert json.loads(data)["a"][0] == f"x {KEY} y"
    assert parse_json(data, KEY) == {"a": ["x *** y", 1, None], "***": {"b": "***"}}


@pytest.mark.parametrize("spell", SPELLINGS)
def test_the_key_is_hidden_in_json_that_is_cut_off_or_within_a_text(
    spell: Callable[[str], str],
) -> None:
    assert hide(f'{{"a": "{spell(KEY)}', KEY) == '{"a": "***'
    assert parse_json(json.dumps([f'{{"a": "{spell(KEY)}"}}']), KEY) == ['{"a": "***"}']


def test_what_stands_before_the_key_stays_json() -> None:
    """A line's end, written as a backslash and the first letter of the key."""
    assert parse_json(r'"key:\nokey-0123"', "nokey-0123") == "key:\nokey-0123"
    assert parse_json(r'"key:\\nokey-0123 "', "nokey-0123") == "key:\\*** "


def test_a_long_text_of_backslashes_takes_no_long_time() -> None:
    began = time.process_time()
    hide("\\" * 100_000, "\\" * 20 + "x")
    assert time.process_time() - began < 5


@pytest.mark.parametrize("data", ["", "<html>", '{"a": ', "[" * 100_000])
def test_what_is_no_json_is_told(data: str) -> None:
    with pytest.raises(ValueError, match="not JSON"):
        parse_json(data, KEY)


def echo(spell: Callable[[str], str], status: int, body: str) -> Callable[[Any], None]:
    """Reply with the key that came, put where the body has an @."""

    def act(handler: Any) -> None:
        key = handler.headers["Authorization"].removeprefix("Bearer ")
        handler.send(status, body.replace("@", spell(key)).encode())

    return act


def babble(handler: Any) -> None:
    handler.wfile.write(f"you sent {handler.headers['Authorization']}\r\n\r\n".encode())
    handler.close_connection = True


ANSWER = '{"choices": [{"message": {"content": "I am @."}, "finish_reason": "@"}]}'
REFUSAL = '{"choices": [{"message": {"content": null, "refusal": "not for @"}}]}'
PARTS = '{"choices": [{"message": {"content": [{"type": "text", "text": "@"}]}}]}'


@pytest.mark.slow
@pytest.mark.parametrize("spell", SPELLINGS)
@pytest.mark.parametrize(
    ("status", "body", "fails"),
    [
        (200, ANSWER, False),
        (200, REFUSAL, False),
        (200, PARTS, False),
        (200, '{"error": {"message": "wrong: @"}}', True),
        (200, '{"what": "@"}', True),
        (200, '{"cut": "@', True),
        (401, '{"error": {"message": "wrong: @"}}', True),
        (500, "[" + " " * 290 + '"@", @', True),
    ],
)
def test_an_echoed_key_is_in_no_file_and_no_message(
    hall: Any,
    monkeypatch: pytest.MonkeyPatch,
    spell: Callable[[str], str],
    status: int,
    body: str,
    fails: bool,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    hall.act = lambda question, times: echo(spell, status, body)
    code, out, errors = hall.play("--retries", "1")
    assert code == (2 if fails else 0), errors
    assert "***" in (errors if fails else json.dumps(hall.rows()))
    check_hidden(hall, out, errors)


def test_a_key_in_a_line_that_is_no_http_is_hidden(
    hall: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    hall.act = lambda question, times: babble
    _, out, errors = hall.play("--retries", "0")
    assert "did not answer: illegal status line" in errors
    assert "you sent" not in errors
    check_hidden(hall, out, errors)


def check_hidden(hall: Any, *shown: str) -> None:
    """Look for a part of the key in all spellings, in rows as they stand and as they are read."""
    files = [p.read_text() for p in (hall.kept.folder / "players").rglob("*") if p.is_file()]
    texts = [*shown, *files, *(str(value) for row in hall.rows() for value in row.values())]
    for part in ("Qzv9", "Xwk4", "Jfb7", "Hpt2"):
        assert not any(spell(part) in text for spell in SPELLINGS for text in texts)
