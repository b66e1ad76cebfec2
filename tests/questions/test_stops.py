"""Answers outlive any stop: none is lost, none asked for twice, none of two players mixed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from everlearn.core.lock import locked

pytestmark = pytest.mark.integration

ALL = Counter({(n, number): 1 for n in (2, 4) for number in range(3)})


def places(rows: list[dict[str, Any]]) -> Counter[tuple[int, int]]:
    return Counter((row["n"], row["number"]) for row in rows)


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (("--model", "other", "--name", "m"), 'its model is "m", not "other"; give another --name'),
        (("--max-tokens", "9"), 'its request is {"max_tokens": 16, "temperature": 0}, not'),
    ],
)
def test_another_player_is_not_mixed_in(hall: Any, more: tuple[str, ...], told: str) -> None:
    hall.play()
    code, _, errors = hall.play(*more)
    assert (code, told in errors) == (2, True), errors
    assert hall.asked == ALL


def test_another_prompt_is_not_mixed_in(hall: Any, answers: Any) -> None:
    hall.play()
    path = hall.kept.folder / "n02" / "prompt.json"
    path.write_text(path.read_text().replace("a game", "the game"))
    code, _, errors = hall.play()
    assert (code, "its prompt_sha256 is " in errors) == (2, True)
    assert hall.play("--name", "other words")[0] == 0
    assert len(answers(hall.kept.folder, "other-words")) == 6


def test_another_player_of_the_same_name_is_refused(folder: Path, call: Any) -> None:
    assert call("ask", "play", folder, "random")[0] == 0
    code, _, errors = call("ask", "play", folder, "pixels", "--name", "random")
    assert (code, 'its player is "random", not "pixels"' in errors) == (2, True)
    code, _, errors = call("ask", "play", folder, "random", "--seed", "1")
    assert (code, "its seed is 0, not 1" in errors) == (2, True)


def test_answers_of_unknown_origin_are_refused(folder: Path, call: Any) -> None:
    place = folder / "players" / "random"
    place.mkdir(parents=True)
    (place / "rows.jsonl").write_text("")
    code, _, errors = call("ask", "play", folder, "random")
    assert (code, "holds rows.jsonl and no settings.json" in errors) == (2, True)


def spoil(folder: Path, change: Callable[[list[bytes]], list[bytes]]) -> None:
    path = folder / "players" / "m" / "rows.jsonl"
    path.write_bytes(b"".join(change(path.read_bytes().splitlines(True))))


def test_half_a_line_is_cut_and_asked_again(hall: Any) -> None:
    hall.play()
    for name in ("rows.jsonl", "provenance.jsonl"):
        path = hall.kept.folder / "players" / "m" / name
        path.write_bytes(path.read_bytes()[:-9])
    assert hall.play()[0] == 0
    assert hall.asked == ALL + Counter({(4, 2): 1})
    assert places(hall.rows()) == ALL


@pytest.mark.parametrize(
    "change",
    [
        lambda lines: [*lines, lines[0]],
        lambda lines: [lines[0].replace(b'"number": 0', b'"number": 99'), *lines[1:]],
        lambda lines: [b"{}\n", *lines[1:]],
        lambda lines: [b"\0\0\n", *lines[1:]],
    ],
)
def test_a_damaged_row_is_refused_and_nothing_is_asked(hall: Any, change: Any) -> None:
    hall.play()
    spoil(hall.kept.folder, change)
    code, _, errors = hall.play()
    assert (code, "is damaged" in errors, hall.asked) == (2, True, ALL)


def test_a_second_writer_is_refused(hall: Any) -> None:
    place = hall.kept.folder / "players" / "m"
    place.mkdir(parents=True)
    with locked(place):
        code, _, errors = hall.play()
    assert (code, "another writer holds" in errors, hall.asked) == (2, True, {})


def test_a_damaged_picture_is_not_sent(hall: Any) -> None:
    (hall.kept.folder / "n02" / "0001" / "query.png").write_bytes(b"no picture")
    code, _, errors = hall.play()
    assert (code, "is damaged; put back a copy" in errors) == (2, True)
    assert hall.asked == {(2, 0): 1}


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """Heed Ctrl-C, which a process that was started in the background ignores."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupt(_: Any = None) -> None:
    """Press Ctrl-C: the server is in the process that asks."""
    os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.usefixtures("ctrl_c")
def test_stopped_by_hand_the_answer_under_way_is_kept(hall: Any, acts: Any) -> None:
    def late(handler: Any) -> None:
        interrupt()
        time.sleep(0.1)
        acts.say("1")(handler)

    hall.act = lambda question, times: late if question.number == 1 else acts.say("1")
    code, _, errors = hall.play()
    assert code == 130
    assert "stopped by hand; 2 of 6 answers are kept" in errors
    assert places(hall.rows()) == hall.asked == {(2, 0): 1, (2, 1): 1}
    hall.act = lambda question, times: acts.say("1")
    assert (hall.play()[0], hall.asked, places(hall.rows())) == (0, ALL, ALL)


def test_stopped_while_a_row_is_shown_the_answer_under_way_is_kept(
    hall: Any, acts: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def late(handler: Any) -> None:
        time.sleep(0.2)
        acts.say("1")(handler)

    def show(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(
        import_module("everlearn.cli.ask"), "progress_display", lambda *_: nullcontext(show)
    )
    hall.act = lambda question, times: late if question.number == 1 else acts.say("1")
    assert hall.play("--parallel", "2")[0] == 130
    assert places(hall.rows()) == hall.asked == {(2, 0): 1, (2, 1): 1}


@pytest.mark.usefixtures("ctrl_c")
def test_stopped_by_hand_a_long_wait_ends(hall: Any, acts: Any) -> None:
    def busy(handler: Any) -> None:
        acts.raw(429, {}, Retry_After="60")(handler)
        threading.Timer(0.1, interrupt).start()

    hall.act = lambda question, times: busy
    began = time.monotonic()
    code, _, errors = hall.play()
    assert (code, "stopped by hand; 0 of 6" in errors) == (130, True)
    assert time.monotonic() - began < 10


def start(hall: Any, *more: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "everlearn", *hall.words("--timeout", "60", *more)]
    return subprocess.Popen(command, stderr=subprocess.DEVNULL, text=True)


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.001)
    assert condition()


def kill_in_the_middle(hall: Any, acts: Any, answered: int, parallel: int) -> None:
    """Answer so many questions, leave the next ones under way, and kill who asks."""
    before = sum(hall.asked.values()) - len(hall.rows())
    hall.act = lambda question, times: (
        acts.say(question.answer) if len(hall.rows()) < answered else acts.hang
    )
    with start(hall, "--parallel", str(parallel)) as process:
        wait_for(lambda: len(hall.rows()) >= answered)
        wait_for(lambda: sum(hall.asked.values()) - len(hall.rows()) - before == parallel)
        code, _, errors = hall.play()
        assert (code, f"(process {process.pid})" in errors) == (2, True)
        process.kill()
    assert process.returncode == -signal.SIGKILL


@pytest.mark.slow
def test_killed_no_answer_is_lost_and_none_asked_for_again(hall: Any, acts: Any) -> None:
    kill_in_the_middle(hall, acts, answered=1, parallel=1)
    first = hall.rows()
    kill_in_the_middle(hall, acts, answered=3, parallel=2)
    second, asked = hall.rows(), hall.asked.copy()
    assert second[: len(first)] == first
    hall.act = lambda question, times: acts.say(question.answer)
    assert hall.play()[0] == 0
    rows = hall.rows()
    assert (rows[: len(second)], places(rows)) == (second, ALL)
    assert {place: hall.asked[place] - asked[place] for place in places(second)} == dict.fromkeys(
        places(second), 0
    )
    # What was under way at the two kills, 1 and 2, had no answer yet.
    assert sum(hall.asked.values()) == len(ALL) + 3
