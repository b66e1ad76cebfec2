"""A set of questions on disk: whole or told to be otherwise, made once, equal to what its seed says."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from everlearn import Canvas
from everlearn.core.lock import locked
from everlearn.questions import (
    QuestionFolder,
    QuestionSet,
    messages,
    picture_names,
    write_questions,
)

SMALL = QuestionSet(seed=3, sizes=(2, 4), each=3, canvas=Canvas(size=16))


def files(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_pictures_on_disk_are_the_questions_to_the_last_bit(folder: Path) -> None:
    for question in SMALL:
        query, choices = question.draw()
        place = folder / f"n{question.n:02}" / f"{question.number:04}"
        for name, image in zip(picture_names(question.n), [query, *choices], strict=True):
            levels = np.asarray(Image.open(place / f"{name}.png"))
            assert np.array_equal(levels.astype(np.float32) / np.float32(255), image[0].numpy())


def test_the_folder_tells_answers_and_prompts_to_any_program(folder: Path) -> None:
    rows = [json.loads(line) for line in (folder / "answers.jsonl").read_text().splitlines()]
    told = [(row["key"], row["n"], row["number"], row["answer"]) for row in rows]
    assert told == [(f"n{q.n:02}/{q.number:04}", q.n, q.number, q.answer) for q in SMALL]
    prompt = json.loads((folder / "n04" / "prompt.json").read_text())
    assert [(m["role"], m["text"], tuple(m["pictures"])) for m in prompt] == list(messages(4))


def test_a_set_is_read_back_from_its_folder(folder: Path) -> None:
    kept = QuestionFolder(folder)
    assert kept.set == SMALL
    assert list(kept.set) == list(SMALL)
    assert tuple(kept.messages(2)) == messages(2)


def test_colours_are_kept(tmp_path: Path) -> None:
    colourful = QuestionSet(
        0, (2,), 1, Canvas(size=8, channels=3, colors=("red", "blue"), mark=None)
    )
    list(write_questions(tmp_path, colourful))
    assert QuestionFolder(tmp_path).set == colourful


def test_made_again_nothing_changes(folder: Path) -> None:
    before = files(folder)
    list(write_questions(folder, SMALL))
    assert files(folder) == before


def test_a_set_stopped_at_any_question_ends_the_same(made: Path, tmp_path: Path) -> None:
    for stop in range(len(SMALL) + 1):
        folder = tmp_path / str(stop)
        going = write_questions(folder, SMALL)
        for _ in range(stop):
            next(going)
        going.close()
        with pytest.raises((ValueError, FileNotFoundError), match=r"everlearn ask make"):
            QuestionFolder(folder)
        list(write_questions(folder, SMALL))
        assert files(folder) == files(made)


def test_half_a_question_is_written_anew(made: Path, tmp_path: Path) -> None:
    next(write_questions(tmp_path, SMALL))
    part = tmp_path / "n02" / ".0001.part"
    part.mkdir()
    (part / "query.png").write_bytes(b"half")
    list(write_questions(tmp_path, SMALL))
    assert files(tmp_path) == files(made)


@pytest.mark.slow
def test_a_killed_process_leaves_a_set_that_can_be_finished(tmp_path: Path) -> None:
    folder = tmp_path / "set"
    words = ["ask", "make", str(folder), "--sizes", "2", "--each", "80", "--size", "16"]
    with subprocess.Popen([sys.executable, "-m", "everlearn", *words]) as process:
        deadline = time.monotonic() + 60
        while not (folder / "n02" / "0005").exists() and time.monotonic() < deadline:
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    assert not (folder / "set.json").exists()
    kept = {path.name: os.stat(path).st_ino for path in (folder / "n02").glob("????")}
    list(write_questions(folder, QuestionSet(0, (2,), 80, Canvas(size=16))))
    assert len(QuestionFolder(folder).set) == 80
    now = {name: os.stat(folder / "n02" / name).st_ino for name in kept}
    assert (len(kept) >= 5, now) == (True, kept)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (QuestionSet(4, (2, 4), 3, Canvas(size=16)), "its seed is 3, not 4; give another folder"),
        (QuestionSet(3, (2,), 3, Canvas(size=16)), r"its sizes is \(2, 4\), not \(2,\)"),
        (QuestionSet(3, (2, 4), 4, Canvas(size=16)), "its each is 3, not 4"),
    ],
)
def test_another_set_is_refused_and_the_first_left_alone(
    folder: Path, other: QuestionSet, message: str
) -> None:
    before = files(folder)
    with pytest.raises(ValueError, match=f"holds another set: {message}"):
        list(write_questions(folder, other))
    assert files(folder) == before


def test_another_half_made_set_is_refused(tmp_path: Path) -> None:
    next(write_questions(tmp_path, SMALL))
    with pytest.raises(ValueError, match="its seed is 3, not 0"):
        list(write_questions(tmp_path, QuestionSet(0, (2, 4), 3, Canvas(size=16))))


def test_a_folder_of_other_things_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("mine")
    with pytest.raises(ValueError, match=r"holds thesis.tex and no set; give a new or an empty"):
        list(write_questions(tmp_path, SMALL))
    assert files(tmp_path) == {"thesis.tex": b"mine"}
    with pytest.raises(NotADirectoryError, match="is a file; give a folder"):
        list(write_questions(tmp_path / "thesis.tex", SMALL))


def test_two_writers_are_refused(tmp_path: Path) -> None:
    with locked(tmp_path), pytest.raises(BlockingIOError, match="another writer holds"):
        list(write_questions(tmp_path, SMALL))


def test_a_folder_without_a_set_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"set.json is missing; .* everlearn ask make"):
        QuestionFolder(tmp_path)


def change_answers(folder: Path, change: Any) -> None:
    path = folder / "answers.jsonl"
    path.write_text("".join(change(path.read_text().splitlines(True))))


def test_a_set_that_does_not_match_its_seed_is_refused(folder: Path) -> None:
    change_answers(folder, lambda lines: lines[:-1])
    with pytest.raises(ValueError, match=r"it has 5 lines, and set.json says 6 questions"):
        QuestionFolder(folder)


def test_answers_of_another_seed_are_refused(folder: Path) -> None:
    path = folder / "set.json"
    path.write_text(path.read_text().replace('"seed": 3', '"seed": 4'))
    with pytest.raises(ValueError, match=r"answers.jsonl is damaged: it has .*, expected"):
        QuestionFolder(folder)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("{", "", "it is not JSON"),
        ('"seed"', '"sed"', "it must be a JSON object of everlearn_questions, seed"),
        ('questions": 1', 'questions": 2', "it has format 2; .*: update it"),
        ('"size": 16', '"size": 1', "canvas size must lie in"),
        ('"each": 3', '"each": 0', "each, the questions of a size, must lie in"),
    ],
)
def test_a_damaged_description_is_refused(folder: Path, old: str, new: str, message: str) -> None:
    path = folder / "set.json"
    path.write_text(path.read_text().replace(old, new, 1))
    with pytest.raises(ValueError, match=f"set.json is damaged: {message}"):
        QuestionFolder(folder)


def test_a_damaged_or_missing_picture_is_noticed(folder: Path) -> None:
    first, *_ = SMALL
    path = folder / "n02" / "0000" / "choice-1.png"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ValueError, match=r"a picture in .*0000 is damaged; put back a copy"):
        QuestionFolder(folder).pictures(first)
    path.unlink()
    with pytest.raises(ValueError, match=r"choice-1.png is missing"):
        QuestionFolder(folder).pictures(first)


def test_other_words_are_another_prompt_and_other_pictures_are_refused(folder: Path) -> None:
    path, before = folder / "n02" / "prompt.json", QuestionFolder(folder)
    path.write_text(path.read_text().replace("You play a game", "We play a game"))
    now = QuestionFolder(folder)
    assert "We play" in now.messages(2)[0].text
    assert (now.prompt_digest != before.prompt_digest, now.digest) == (True, before.digest)
    path.write_text(path.read_text().replace('"choice-1"', '"choice-2"'))
    with pytest.raises(ValueError, match="must show the pictures query, choice-0, choice-1, in"):
        QuestionFolder(folder)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"sizes": ()}, "sizes must be one or more, each named once"),
        ({"sizes": (2, 2)}, r"found \[2, 2\]"),
        ({"sizes": (1,)}, "must lie in 2 .. 256, found 1"),
        ({"each": 0}, "must lie in 1"),
        ({"seed": -1}, "seed must lie in"),
    ],
)
def test_a_set_of_nothing_is_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        QuestionSet(**settings)
