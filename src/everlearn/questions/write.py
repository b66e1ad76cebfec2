"""Write a set of questions to a folder; a second call resumes after a kill."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

from everlearn.core.files import explain_write_errors, sync, write_file
from everlearn.core.jsonl import encode_row
from everlearn.core.lock import locked
from everlearn.questions.folder import (
    ANSWERS,
    SET,
    UNFINISHED,
    QuestionFolder,
    checksum,
    expected_answer,
    prompt_path,
    read_pictures,
    read_set,
)
from everlearn.questions.prompt import messages, picture_names
from everlearn.questions.question import Question
from everlearn.questions.question_set import QuestionSet, question_key
from everlearn.stream.export.png_codec import encode as encode_png


def write_questions(folder: Path, wanted: QuestionSet) -> Iterator[int]:
    """Write a set and yield the number of questions done; resume what a killed call has written."""
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(f"{folder} is a file; give a folder for the questions")
    with explain_write_errors("the questions", folder):
        folder.mkdir(parents=True, exist_ok=True)
    with locked(folder):
        _check_free(folder, wanted)
        if not (folder / SET).exists():
            yield from _write(folder, wanted)
        kept = QuestionFolder(folder)
        for question in wanted:
            kept.pictures(question)


def draw_pictures(question: Question) -> dict[str, bytes]:
    """Draw a question as PNG files by name, without loss."""
    drawn = question.draw()
    levels = [(image * 255).round().byte().numpy() for image in (drawn.query, *drawn.choices)]
    names = picture_names(question.n)
    return {name: encode_png(image) for name, image in zip(names, levels, strict=True)}


def _write(folder: Path, wanted: QuestionSet) -> Iterator[int]:
    """Write everything, and set.json last."""
    write_file(folder / UNFINISHED, wanted.to_json().encode())
    for n in wanted.sizes:
        text = json.dumps([message._asdict() for message in messages(n)], indent=1)
        write_file(prompt_path(folder, n), text.encode())
    for done, question in enumerate(wanted, 1):
        with explain_write_errors("a question", folder, "complete questions are kept"):
            _write_question(folder / question_key(question), question)
        yield done
    answers = (encode_row(_answer(folder, question)) for question in wanted)
    write_file(folder / ANSWERS, b"".join(answers))
    (folder / UNFINISHED).replace(folder / SET)
    sync(folder)


def _write_question(place: Path, question: Question) -> None:
    if place.exists():
        return
    part = place.with_name(f".{place.name}.part")
    shutil.rmtree(part, ignore_errors=True)  # of a run that was killed
    part.mkdir()
    for name, data in draw_pictures(question).items():
        (part / f"{name}.png").write_bytes(data)
    for path in (*part.iterdir(), part):
        sync(path)
    part.rename(place)
    sync(place.parent)


def _answer(folder: Path, question: Question) -> dict[str, Any]:
    """Return the correct answer to a question, with a checksum of its pictures."""
    pictures = read_pictures(folder / question_key(question), question.n)
    return {**expected_answer(question), "sha256": checksum(pictures.values())}


def _check_free(folder: Path, wanted: QuestionSet) -> None:
    """Raise if a folder holds anything other than this set or a part of it."""
    there = [name for name in (SET, UNFINISHED) if (folder / name).exists()]
    if there:
        _check_same(folder, read_set(folder / there[0]), wanted)
        return
    others = sorted(p.name for p in folder.iterdir() if not p.name.startswith("."))
    if others:
        raise ValueError(f"{folder} holds {others[0]} and no set; give a new or an empty folder")


def _check_same(folder: Path, found: QuestionSet, wanted: QuestionSet) -> None:
    for name in (item.name for item in fields(wanted)):
        old, new = getattr(found, name), getattr(wanted, name)
        if old != new:
            raise ValueError(
                f"{folder} holds another set: its {name} is {old}, not {new}; give another folder"
            )
