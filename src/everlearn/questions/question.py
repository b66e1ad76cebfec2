"""Questions: which of n canonical pictures shows the shape of a query?

After section 5.4 of Dziadzio et al. 2023 (arXiv 2312.16731).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from everlearn.core.random import Floats, Purpose, check_seed, uniform
from everlearn.core.validate import check_int
from everlearn.factors import UNIFORMS_PER_SAMPLE, Factors, canonical_factors, grid_space
from everlearn.render import Canvas, render
from everlearn.shapes import outlines

if TYPE_CHECKING:
    from torch import Tensor

MAX_CHOICES = 256
_MAX_QUESTIONS = 2**32
_VALUES = 32  # of each factor
# Class ids of streams stay below this, so no learner has seen a shape that it is asked about.
_FIRST_SHAPE = 2**63


class DrawnQuestion(NamedTuple):
    """A question as a player sees it.

    Attributes:
        query: (C, H, W) float32 in 0 .. 1.
        choices: (n, C, H, W) float32 in 0 .. 1.
    """

    query: Tensor
    choices: Tensor


@dataclass(frozen=True)
class Question:
    """A question by its address; nothing is drawn before `draw`.

    Args:
        n: how many choices there are.
        number: index of the question among those with the same seed and n.
        canvas: what pictures look like; the paper's have 256 pixels a side.
    """

    seed: int
    n: int
    number: int
    canvas: Canvas = Canvas()

    def __post_init__(self) -> None:
        """Check the address."""
        check_seed(self.seed)
        check_choices(self.n)
        check_int(self.number, "number", 0, _MAX_QUESTIONS - 1)

    @property
    def answer(self) -> int:
        """The index of the choice that shows the shape of the query."""
        return int(self._numbers()[0] * self.n)

    @property
    def shape_ids(self) -> NDArray[np.uint64]:
        """The shapes (n,) of the choices, which no other question has."""
        first = self.number * self.n
        places = np.arange(first, first + self.n, dtype=np.uint64)
        return places + np.uint64(_FIRST_SHAPE | self.n << 40)

    @property
    def factors(self) -> Factors:
        """The factors of the query, one row."""
        return grid_space(_VALUES, colors=len(self.canvas.colors)).sample(self._numbers()[None, 1:])

    def draw(self, device: str = "cpu") -> DrawnQuestion:
        """Draw the query and the choices."""
        import torch

        curves = outlines(self.seed, self.shape_ids)
        canvas = replace(self.canvas, dtype="float32")
        query = render(curves, self.factors, canvas, device, which=[self.answer])
        choices = render(curves, canonical_factors(self.n), canvas, device)
        return DrawnQuestion(torch.as_tensor(query)[0], torch.as_tensor(choices))

    def _numbers(self) -> Floats:
        return uniform(
            self.seed, Purpose.CHOICE, self.number, self.n, count=1 + UNIFORMS_PER_SAMPLE
        )


def questions(
    seed: int = 0,
    sizes: Iterable[int] = range(2, 11),
    each: int = 100,
    canvas: Canvas | None = None,
) -> Iterator[Question]:
    """Yield questions; by default the paper's: 100 each with 2 to 10 choices."""
    for n in sizes:
        for number in range(each):
            yield Question(seed, n, number, canvas or Canvas())


def check_choices(n: int) -> int:
    """Return the number of choices of a question, or raise with what is allowed."""
    return check_int(n, "n, the choices of a question,", 2, MAX_CHOICES)
