"""Questions follow from their address; one choice shows the shape of the query, and no other does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from everlearn import Canvas, Stream, theta
from everlearn.factors import canonical_factors, grid_space
from everlearn.questions import Question, questions
from everlearn.render import render
from everlearn.render.affine import transform_images
from everlearn.shapes import outlines

SMALL = Canvas(size=32)


def test_the_usual_questions_are_a_hundred_each_of_2_to_10_choices() -> None:
    counts = np.bincount([question.n for question in questions()])
    assert counts.tolist() == [0, 0] + 9 * [100]


def test_a_question_is_the_same_alone_and_in_the_list() -> None:
    listed = list(questions(3, [4], 6, SMALL))[5].draw()
    alone = Question(3, 4, 5, SMALL).draw()
    assert torch.equal(listed.query, alone.query)
    assert torch.equal(listed.choices, alone.choices)


@pytest.mark.parametrize("other", [Question(1, 3, 0), Question(0, 4, 0), Question(0, 3, 1)])
def test_other_addresses_have_other_queries(other: Question) -> None:
    assert not torch.equal(Question(0, 3, 0).draw().query, other.draw().query)


def test_undone_by_its_factors_the_query_is_nearest_to_the_answer() -> None:
    for question in questions(0, [10], 20):
        query, choices = question.draw()
        maps = torch.from_numpy(theta(question.factors)).float()
        differences = (transform_images(query[None], maps) - choices).square().mean((1, 2, 3))
        assert int(differences.argmin()) == question.answer


def test_choices_are_canonical_pictures_of_the_shapes_named() -> None:
    question = Question(5, 3, 2, SMALL)
    expected = render(outlines(5, question.shape_ids), canonical_factors(3), SMALL)
    assert np.array_equal(question.draw().choices.numpy(), expected)


def test_no_two_questions_share_a_shape_and_no_stream_has_one() -> None:
    ids = np.concatenate([question.shape_ids for question in questions(each=30)])
    assert len(np.unique(ids)) == len(ids)
    most = Stream(tasks=2**40, classes_per_task=100_000, values_per_factor=2, first_class=2**62)
    assert int(ids.min()) > most.class_ids[-1]
    largest = Question(0, 256, 2**32 - 1).shape_ids
    assert int(largest.max()) < 2**64


def test_every_place_is_as_often_the_answer() -> None:
    answers = [question.answer for question in questions(0, [4], 2000)]
    shares = np.bincount(answers) / 2000
    assert (np.abs(shares - 0.25) < 4 * np.sqrt(0.25 * 0.75 / 2000)).all()


def test_factors_come_from_all_of_a_grid_of_32_values() -> None:
    drawn = [question.factors for question in questions(0, [2], 600)]
    for name in ("scale", "orientation", "x", "y"):
        values = np.unique([getattr(row, name)[0] for row in drawn])
        assert np.allclose(values, sorted(getattr(grid_space(32), name).values))


def test_pictures_are_floats_whatever_the_canvas_keeps() -> None:
    whole = Question(0, 2, 0, Canvas(size=16, dtype="uint8")).draw()
    assert torch.equal(whole.query, Question(0, 2, 0, Canvas(size=16)).draw().query)


def test_pictures_have_the_size_and_channels_asked_for() -> None:
    query, choices = Question(0, 2, 0, Canvas(size=256, channels=3)).draw()
    assert query.shape == (3, 256, 256)
    assert choices.shape == (2, 3, 256, 256)


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ((0, 1, 0), "n, the choices of a question, must lie in 2 .. 256, found 1"),
        ((0, 257, 0), "found 257"),
        ((0, 2, -1), "number must lie in 0 .. 4294967295, found -1"),
        ((-1, 2, 0), "seed must lie in"),
    ],
)
def test_an_address_out_of_range_is_refused(address: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Question(*address)
