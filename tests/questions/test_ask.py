"""`everlearn ask`: players that need no server, tables, and mistakes in what is typed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from everlearn import Canvas, Stream
from everlearn.cli.players import PLAYERS
from everlearn.questions import AffineSearch as Oracle
from everlearn.questions import QuestionFolder, answer_all, at_random, by_pictures
from everlearn.runs import launch as runs

pytestmark = pytest.mark.integration


def places(rows: list[dict[str, Any]]) -> set[tuple[int, int]]:
    return {(row["n"], row["number"]) for row in rows}


def test_players_that_are_here_answer_as_from_python(folder: Path, call: Any, answers: Any) -> None:
    for name, answer in {"random": at_random(0), "search": by_pictures(Oracle())}.items():
        assert call("ask", "play", folder, name)[0] == 0
        expected = [
            {**row, "player": name} for row in answer_all(QuestionFolder(folder).set, answer)
        ]
        assert answers(folder, name) == expected


def test_the_table_counts_right_answers_beside_chance(
    folder: Path, call: Any, answers: Any
) -> None:
    out = call("ask", "play", folder, "search")[1]
    lines = [line.split() for line in out.splitlines() if line.split()[:1] in (["2"], ["4"])]
    rows = answers(folder, "search")
    right = [sum(r["n"] == n and r["chosen"] == r["answer"] for r in rows) for n in (2, 4)]
    assert [line[1:3] for line in lines] == [[str(r), "3"] for r in right]
    assert [line[-2:] for line in lines] == [["0.500", "0"], ["0.250", "0"]]
    assert "tokens" not in out


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of dcl and of a method without exemplars."""
    place = tmp_path_factory.mktemp("runs")
    stream = Stream(tasks=1, classes_per_task=2, values_per_factor=2, canvas=Canvas(size=16))
    for method in ("dcl", "fine-tuning"):
        more = {"net": "convnet", "batch_size": 8, "epochs": 1}
        list(runs.start(place / method, method, stream, device="cpu", **more))
    return place


@pytest.mark.integration
def test_a_learner_answers_from_its_run(
    folder: Path, learned: Path, call: Any, answers: Any
) -> None:
    code, _, errors = call("ask", "play", folder, "learner", "--run", learned / "dcl")
    assert code == 0, errors
    assert places(answers(folder, "dcl")) == {(q.n, q.number) for q in QuestionFolder(folder).set}
    settings = json.loads((folder / "players" / "dcl" / "settings.json").read_text())
    assert (settings["player"], settings["method"]) == ("learner", "dcl")


@pytest.mark.integration
def test_a_learner_of_other_pictures_is_refused(tmp_path: Path, learned: Path, call: Any) -> None:
    assert call("ask", "make", tmp_path, "--sizes", 2, "--each", 1, "--size", 32)[0] == 0
    code, _, errors = call("ask", "play", tmp_path, "learner", "--run", learned / "dcl")
    assert code == 2
    assert "knows pictures of (channels, height, width) (1, 16, 16), and the questions" in errors
    assert "everlearn ask make --size 16 --channels 1" in errors


@pytest.mark.integration
def test_a_learner_without_exemplars_is_refused(folder: Path, learned: Path, call: Any) -> None:
    code, _, errors = call("ask", "play", folder, "learner", "--run", learned / "fine-tuning")
    assert (code, "fine-tuning has no exemplars to choose from" in errors) == (2, True)


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (("nobody",), "unknown player 'nobody'; known: random, pixels, search, learner, endpoint"),
        (("learner",), "the player learner needs --run"),
        (("endpoint", "--model", "m"), "the player endpoint needs --base-url"),
        (("endpoint", "--base-url", "http://a"), "the player endpoint needs --model"),
        (("random", "--model", "m"), "--model is for the player endpoint, not random"),
        (("random", "--parallel", "2"), "--parallel is for the player endpoint"),
        (("endpoint", "--base-url", "a/v1", "--model", "m"), "base-url must read like http://"),
        (("endpoint", "--base-url", "http://a:99999", "--model", "m"), "base-url must read like"),
        (("endpoint", "--base-url", "http://a b/v1", "--model", "m"), "base-url must read like"),
        (
            ("endpoint", "--base-url", "http://me:pass@a:99999/v1", "--model", "m"),
            "base-url must hold no user and password",
        ),
        (("endpoint", "--base-url", "http://a", "--model", "m", "--also", "x"), "must be JSON"),
        (("endpoint", "--base-url", "http://a", "--model", "m", "--also", "[]"), "must read like"),
        (
            ("endpoint", "--base-url", "http://a", "--model", "m", "--also", '{"stream": true}'),
            "a request's stream is not yours to set",
        ),
        (
            ("endpoint", "--base-url", "http://a", "--model", "m", "--retries", "-1"),
            "retries must lie in 0 .. 1000, found -1",
        ),
        (("random", "--name", "../.."), "--name must hold letters or digits"),
    ],
)
def test_mistakes_are_one_line(folder: Path, call: Any, more: tuple[str, ...], told: str) -> None:
    code, _, errors = call("ask", "play", folder, *more)
    assert (code, len(errors.splitlines())) == (2, 1)
    assert told in errors
    assert "pass@" not in errors
    assert not (folder / "players").exists()


def test_make_and_play_from_the_command_line(tmp_path: Path, call: Any) -> None:
    folder = tmp_path / "new" / "set"
    make = ("ask", "make", folder, "--seed", 5, "--sizes", "2,3", "--each", 2, "--size", 8)
    code, out, _ = call(*make)
    assert (code, "4 questions are in" in out) == (0, True)
    assert QuestionFolder(folder).set.sizes == (2, 3)
    assert call("ask", "play", folder, "pixels")[0] == 0
    code, _, errors = call(*make, "--channels", "3")
    assert (code, "holds another set: its canvas is" in errors) == (2, True)
    code, _, errors = call("ask", "make", tmp_path / "x", "--sizes", "2,b")
    assert (code, "--sizes must be a whole number, found 'b'" in errors) == (2, True)


def test_help_names_every_player(call: Any) -> None:
    assert all(name in " ".join(call("ask", "play", "--help")[1].split()) for name in PLAYERS)
    assert "make" in call("ask")[1]
