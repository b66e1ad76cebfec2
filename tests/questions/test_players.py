"""Players: chance, pixels, the oracle, and learners with exemplars. B11 is of the specification."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from everlearn import Canvas, Exemplars, Stream, build, theta
from everlearn.memory import SearchResult
from everlearn.questions import (
    AffineSearch,
    LearnerPlayer,
    NearestPixels,
    Question,
    answer_all,
    at_random,
    by_pictures,
    questions,
    tally,
)
from everlearn.questions.search import apply, undo
from everlearn.render.affine import invert, similarity_maps, transform_images


@pytest.mark.slow
@pytest.mark.parametrize("n", range(2, 11))
def test_b11_the_random_player_is_right_as_often_as_chance(n: int) -> None:
    found = tally(answer_all(questions(0, [n], 2000), at_random(seed=0)))[n]
    sigma = np.sqrt((1 / n) * (1 - 1 / n) / 2000)
    assert found.total == 2000
    assert abs(found.accuracy - 1 / n) < 3 * sigma


def test_guesses_follow_from_the_seed_and_the_question() -> None:
    forth, back = ([at_random(7)(q) for q in order] for order in (_few(), _few()[::-1]))
    assert forth == back[::-1]
    assert forth != [at_random(8)(q) for q in _few()]


def _few() -> list[Question]:
    return list(questions(0, [5, 10], 20))


@pytest.mark.integration
@pytest.mark.parametrize("n", [2, 10])
def test_b11_the_oracle_finds_the_answer(n: int) -> None:
    found = tally(answer_all(questions(0, [n], 20), by_pictures(AffineSearch())))[n]
    assert found.accuracy >= 0.95


@pytest.mark.slow
def test_b11_the_oracle_finds_the_answer_to_all_usual_questions() -> None:
    found = tally(answer_all(questions(1, each=20), by_pictures(AffineSearch())))
    assert min(count.accuracy for count in found.values()) >= 0.95


@pytest.mark.parametrize("canvas", [Canvas(size=48), Canvas(size=96, channels=3)])
def test_the_oracle_takes_pictures_of_any_size(canvas: Canvas) -> None:
    found = tally(answer_all(questions(0, [3], 4, canvas), by_pictures(AffineSearch())))[3]
    assert found.correct == 4


@pytest.mark.gpu
def test_the_oracle_takes_pictures_from_a_gpu() -> None:
    (question,) = questions(0, [3], 1)
    assert by_pictures(AffineSearch(), "cuda")(question) == by_pictures(AffineSearch())(question)


@pytest.mark.integration
def test_the_oracle_undoes_and_applies_maps_as_warp_does() -> None:
    pictures = Question(0, 2, 0, Canvas(size=16, channels=3)).draw().choices
    numbers = torch.tensor([[1.0, 0.0, 0.0, 0.0], [0.5, 1.0, 0.25, -0.5], [0.8, -2.0, -0.5, 0.1]])
    scale, angle = numbers[:, 0].numpy(), numbers[:, 1].numpy()
    maps = torch.from_numpy(similarity_maps(scale, angle, numbers[:, 2:].numpy()))
    for ours, plain in ((undo, maps), (apply, invert(maps))):
        fast = ours(pictures, numbers.expand(2, 3, 4))
        for picture, row in zip(pictures, fast, strict=True):
            slow = transform_images(picture.expand(3, -1, -1, -1), plain).flatten(1)
            torch.testing.assert_close(row, slow, atol=1e-5, rtol=0)


def test_the_pixel_player_knows_a_canonical_picture_and_little_else() -> None:
    choices = Question(0, 6, 0).draw().choices
    assert [NearestPixels().choose(choice, choices) for choice in choices] == list(range(6))
    found = tally(answer_all(questions(0, [10], 100), by_pictures(NearestPixels())))[10]
    assert found.accuracy < 0.5


class Result:
    """A learner that is told the map of each image and remembers other pictures."""

    def __init__(self, canvas: Canvas) -> None:
        self.memory = Exemplars(canvas.shape)
        self.memory.add([0, 1, 2], torch.zeros(3, *canvas.shape))
        self.maps = torch.zeros(1, 2, 3)

    def match(self, images: Tensor, memory: Any, k: int = 2) -> SearchResult:
        found: SearchResult = memory.search(transform_images(images, self.maps), k)
        return found

    def novelty(self, images: Tensor) -> Tensor:
        return self.match(images, self.memory).novelty


def test_a_learner_that_knows_the_map_answers_from_the_choices_alone() -> None:
    canvas = Canvas()
    learner = Result(canvas)
    for question in questions(0, [2, 10], 10, canvas):
        learner.maps = torch.from_numpy(theta(question.factors)).float()
        assert LearnerPlayer(learner).choose(*question.draw()) == question.answer
    assert learner.memory.labels == [0, 1, 2]


@pytest.mark.integration
@pytest.mark.parametrize("name", ["dcl", "dcl-plus"])
def test_dcl_plays_without_a_change_of_its_memory(name: str) -> None:
    canvas = Canvas(size=16)
    stream = Stream(tasks=1, classes_per_task=2, values_per_factor=2, canvas=canvas)
    learner: Any = build(name, stream, "cpu", net="convnet")
    rows = list(answer_all(questions(0, [4], 5, canvas), by_pictures(LearnerPlayer(learner))))
    assert {row["chosen"] for row in rows} <= {0, 1, 2, 3}
    assert len(learner.memory) == 0
