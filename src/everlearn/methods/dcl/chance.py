"""What is random in a task of DCL: a function of seed, task and step, drawn at once and sent at once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from everlearn.learner import count_steps
from everlearn.methods.dcl.settings import Settings
from everlearn.philox import Purpose, uniform
from everlearn.stream import Task
from everlearn.warp import compose, invert, normalise, similarities


class Chance(NamedTuple):
    """What is random in every step, or in one.

    Attributes:
        recalled: (steps, R) which exemplars are rehearsed, by their place in the pool.
        views: (steps, R, 2, 3) the maps under which they are shown.
        moves: (steps, N, 2, 3) through which the first images are seen.
        kept: (steps, 2, 3) ones, and zeros at the entries left out of the loss.
    """

    recalled: Tensor
    views: Tensor
    moves: Tensor
    kept: Tensor

    def to(self, device: str) -> Chance:
        """The same on a device."""
        return Chance(*(part.to(device) for part in self))


def draw_chance(settings: Settings, task: Task, known: int) -> Chance:
    """Draw all that is random in a task.

    Args:
        known: how many exemplars may be rehearsed.
    """
    recalled, views = draw_views(settings, task, known)
    parts = (recalled, views, draw_moves(settings, task), draw_kept(settings, task))
    return Chance(*(torch.from_numpy(part) for part in parts))


def draw_views(
    settings: Settings, task: Task, known: int
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Exemplars (steps, R) and maps (steps, R, 2, 3) in the whole range of scale, angle and place."""
    steps, count = count_steps(task, settings.pace), _count(settings.rehearse, settings, task)
    number = _numbers(Purpose.REHEARSAL, task, steps, count, 5)
    recalled = (number[..., 0] * known).astype(np.int64)
    scale, angle = 0.5 + 0.5 * number[..., 1], 2.0 * np.pi * number[..., 2]
    return recalled, similarities(scale, angle, number[..., 3:] - 0.5)


def draw_moves(settings: Settings, task: Task) -> NDArray[np.float32]:
    """Moves (steps, N, 2, 3) within the ranges of the settings."""
    steps, count = count_steps(task, settings.pace), _count(settings.jitter, settings, task)
    side = 2.0 * _numbers(Purpose.JITTER, task, steps, count, 4) - 1.0
    scale = np.exp(settings.jitter_scale * side[..., 0])
    angle = np.deg2rad(settings.jitter_turn) * side[..., 1]
    return similarities(scale, angle, settings.jitter_shift * side[..., 2:])


def draw_kept(settings: Settings, task: Task) -> NDArray[np.float32]:
    """Ones (steps, 2, 3), and zeros at the entries that a step leaves out."""
    steps = count_steps(task, settings.pace)
    kept = np.ones((steps, 6), np.float32)
    order = _numbers(Purpose.MASK, task, steps, 1, 6)[:, 0].argsort(axis=1)
    np.put_along_axis(kept, order[:, : settings.masked], 0, axis=1)
    return kept.reshape(steps, 2, 3)


def move(images: Tensor, theta: Tensor, moves: Tensor) -> tuple[Tensor, Tensor]:
    """See the first images through moves J; their maps become J^-1 theta."""
    count = len(moves)
    if count == 0:
        return images, theta
    moved = normalise(images[:count], moves)
    maps = compose(invert(moves), theta[:count])
    return torch.cat((moved, images[count:])), torch.cat((maps, theta[count:]))


def rehearse(
    images: Tensor, theta: Tensor, recalled: Tensor, views: Tensor
) -> tuple[Tensor, Tensor]:
    """Show exemplars (uint8) under maps in the place of the last images."""
    count = len(images) - len(views)
    if count == len(images):
        return images, theta
    shown = normalise(recalled.float() / 255.0, invert(views))
    return torch.cat((images[:count], shown)), torch.cat((theta[:count], views))


def _count(part: float, settings: Settings, task: Task) -> int:
    return round(part * min(settings.pace.batch_size, len(task.train)))


def _numbers(
    purpose: Purpose, task: Task, steps: int, count: int, each: int
) -> NDArray[np.float64]:
    """Uniform numbers (steps, count, each)."""
    if count == 0:
        return np.zeros((steps, 0, each))
    drawn = uniform(task.seed, purpose, task.index, np.arange(steps), count=count * each)
    return drawn.reshape(steps, count, each)
