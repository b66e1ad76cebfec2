"""A server that fails: what passes is tried again, what stays is told; the key never shows."""

from __future__ import annotations

import threading
import time
from collections import Counter
from email.utils import formatdate
from threading import Event
from typing import Any

import pytest

from everlearn.questions.http import ServerError, parse_retry_after
from everlearn.questions.retries import RetryPolicy

pytestmark = pytest.mark.integration

ALL = Counter({(n, number): 1 for n in (2, 4) for number in range(3)})


def places(rows: list[dict[str, Any]]) -> Counter[tuple[int, int]]:
    return Counter((row["n"], row["number"]) for row in rows)


def test_waits_double_up_to_a_minute_and_are_never_shorter_than_asked() -> None:
    retry_policy = RetryPolicy(retries=6, wait=2.0)
    assert [retry_policy.backoff(tries) for tries in (1, 2, 3, 5, 6, 1000)] == [2, 4, 8, 32, 60, 60]
    assert [retry_policy.backoff(1, after) for after in (1.0, 90.0)] == [2, 90]


def test_after_a_stop_there_is_no_other_try() -> None:
    stop, tries = Event(), []

    def attempt() -> None:
        tries.append(1)
        stop.set()
        raise ServerError("busy", retry=True)

    with pytest.raises(ServerError, match="busy"):
        RetryPolicy(retries=5, wait=60.0).call(attempt, stop)
    assert len(tries) == 1


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("7", 7),
        ("0.25", 0.25),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0),
        ("-3", 0),
        ("soon", 0),
        ("inf", 0),
        ("", 0),
        (None, 0),
    ],
)
def test_retry_after_is_read_as_seconds(text: str | None, seconds: float) -> None:
    assert parse_retry_after(text) == seconds


def test_retry_after_may_be_a_date() -> None:
    later = formatdate(time.time() + 100, usegmt=True)
    assert 90 <= parse_retry_after(later) <= 101


def failing(hall: Any, acts: Any, act: Any, times_failed: int = 1) -> None:
    """Fail so many times at each question, then answer it right."""
    hall.act = lambda question, times: act if times <= times_failed else acts.say(question.answer)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    ["429", "500", "503", "408", "hang", "cut", "drop", "babble", "page", "half", "nothing"],
)
def test_a_failure_that_passes_is_tried_again(hall: Any, acts: Any, name: str) -> None:
    ways = {
        "hang": acts.hang,
        "cut": acts.cut,
        "drop": acts.drop,
        "babble": acts.babble,
        "page": acts.raw(200, b"<html>Bad gateway</html>"),
        "half": acts.raw(200, b'{"choices": [{"mess'),
        "nothing": acts.raw(200, b""),
    }
    act = ways[name] if name in ways else acts.raw(int(name), {"error": {"message": "busy"}})
    failing(hall, acts, act)
    seconds = "1" if name == "hang" else "10"
    code, _, errors = hall.play("--parallel", "6", "--timeout", seconds)
    rows = hall.rows()
    assert (code, places(rows)) == (0, ALL), errors
    assert {(row["tries"], row["chosen"] == row["answer"]) for row in rows} == {(2, True)}
    assert set(hall.asked.values()) == {2}


def test_retry_after_is_honoured(hall: Any, acts: Any) -> None:
    failing(hall, acts, acts.raw(429, {}, Retry_After="0.4"))
    began = time.monotonic()
    assert hall.play("--parallel", "6")[0] == 0
    assert 0.4 <= time.monotonic() - began < 4


def test_a_wait_that_is_too_long_is_told_not_waited_for(hall: Any, acts: Any) -> None:
    failing(hall, acts, acts.raw(429, {}, Retry_After="86400"))
    code, _, errors = hall.play()
    assert (code, "it asks to wait 86400 s; 0 of 6 answers are kept" in errors) == (2, True)


def test_out_of_retries_the_run_stops_keeps_its_answers_and_goes_on(hall: Any, acts: Any) -> None:
    broken = acts.raw(500, {"error": {"message": "the model is asleep"}})
    hall.act = lambda question, times: broken if question.n == 4 else acts.say(question.answer)
    code, _, errors = hall.play("--retries", "2")
    assert code == 2
    for part in (
        "error: question n04/0000: no answer after 3 tries: ",
        "answered 500 (Internal Server Error): the model is asleep",
        "3 of 6 answers are kept in ",
        "run the same again to go on",
    ):
        assert part in errors
    assert hall.asked == Counter({(2, 0): 1, (2, 1): 1, (2, 2): 1, (4, 0): 3})
    hall.act = lambda question, times: acts.say(question.answer)
    assert hall.play()[0] == 0
    assert hall.asked == ALL + Counter({(4, 0): 3})
    assert places(hall.rows()) == ALL


def test_a_server_that_is_not_there_is_told(hall: Any) -> None:
    hall.url = "http://127.0.0.1:9/v1"
    code, _, errors = hall.play("--retries", "1")
    assert code == 2
    assert "after 2 tries: http://127.0.0.1:9/v1/chat/completions did not answer: " in errors
    assert "Connection refused" in errors


def test_answers_under_way_at_an_error_are_kept(hall: Any, acts: Any) -> None:
    """One thread meets an error while another waits for its reply."""
    refused = threading.Event()

    def late(handler: Any) -> None:
        refused.wait(5)
        time.sleep(0.1)
        acts.say("0")(handler)

    def no(handler: Any) -> None:
        acts.raw(400, {"error": "no"})(handler)
        refused.set()

    hall.act = lambda question, times: late if question.number == 0 else no
    code, _, errors = hall.play("--parallel", "2")
    assert (code, "1 of 6 answers are kept" in errors) == (2, True)
    assert places(hall.rows()) == {(2, 0): 1}


@pytest.mark.parametrize(
    ("status", "body", "told"),
    [
        (400, {"error": {"message": "max_tokens is too small"}}, "max_tokens is too small; change"),
        (
            401,
            {"error": {"message": "wrong key sk-very-secret-0123456789"}},
            "wrong key ***; put a valid key into",
        ),
        (403, {"error": "not you"}, "not you; put a key that may do this"),
        (404, {"message": "no such model"}, "no such model; check --base-url"),
        (404, b"<html>\nnothing here", "<html> nothing here; check --base-url"),
        (422, {"detail": "?"}, '{"detail": "?"}; check --base-url and --model'),
    ],
)
def test_a_refusal_stops_at_once_with_the_server_s_words(
    hall: Any, acts: Any, status: int, body: Any, told: str
) -> None:
    hall.act = lambda question, times: acts.raw(status, body)
    code, _, errors = hall.play()
    assert (code, len(errors.splitlines())) == (2, 1)
    assert f"answered {status} (" in errors
    assert told in errors
    assert sum(hall.asked.values()) == 1
    assert "tries" not in errors


def test_the_key_is_in_no_file_and_no_message(hall: Any, acts: Any) -> None:
    hall.act = lambda question, times: (
        acts.say(f"Your key is {hall.key}.")
        if question.n == 2
        else acts.raw(401, {"error": {"message": f"Incorrect API key provided: {hall.key}."}})
    )
    code, out, errors = hall.play()
    assert code == 2
    assert "Incorrect API key provided: ***." in errors
    assert len(hall.rows()) == 3
    texts = [p.read_bytes() for p in hall.kept.folder.rglob("*") if p.is_file()]
    assert not any(hall.key.encode() in text for text in [*texts, out.encode(), errors.encode()])


def test_a_key_in_a_long_complaint_is_hidden_as_a_whole(hall: Any, acts: Any) -> None:
    """The words are cut short after 300 characters, here in the middle of the key."""
    hall.act = lambda question, times: acts.raw(401, f"{'x' * 290} {hall.key}".encode())
    assert hall.key[:5] not in hall.play()[2]


def test_a_short_key_changes_no_answer(hall: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "1")
    assert hall.play()[0] == 0
    assert all(row["chosen"] == row["answer"] for row in hall.rows())


def test_a_key_that_no_header_holds_is_refused_and_not_quoted(
    hall: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTHER", "sk-abc\ndef")
    code, _, errors = hall.play("--key-env", "OTHER")
    assert (code, "visible ASCII" in errors, "abc" in errors) == (2, True, False)
    assert not hall.asked


@pytest.mark.parametrize("status", [302, 307])
def test_the_key_follows_no_redirection(hall: Any, acts: Any, status: int) -> None:
    hall.act = lambda question, times: acts.raw(status, b"", Location=f"{hall.url}/elsewhere")
    code, _, errors = hall.play()
    assert (code, len(hall.requests)) == (2, 1)
    assert f"answered {status}" in errors
    assert "give the address that it moved to" in errors
