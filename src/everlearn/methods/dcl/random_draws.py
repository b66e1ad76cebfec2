"""The random draws of DCL: functions of seed, task and step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from everlearn.core.random import Purpose, uniform
from everlearn.methods.dcl.settings import Settings
from everlearn.render.affine import compose, invert, similarity_maps, transform_images
from everlearn.stream import Task
from everlearn.stream.device_copy import copy_to_device
from everlearn.training.schedule import count_steps

_STEPS_AT_ONCE = 16
_LOWEST_THRESHOLD = 0.01  # 0 hardens nothing


class RandomDraws(NamedTuple):
    """The random draws of several steps of a task, or of one step.

    Attributes:
        replayed: (steps, R) which exemplars are replayed, as places in the pool.
        views: (steps, R, 2, 3) the maps under which they are shown.
        moves: (steps, N, 2, 3) the maps that jitter the first images.
        edges: (steps, B, 2) the threshold that hardens the edges of each image, 0 for none, and how far it
            is blurred or, with hard edges, its shape shrinks, from 0 to 1; empty without jitter of edges.
        mask: (steps, 2, 3) ones, and zeros at the entries masked in the loss.
    """

    replayed: Tensor
    views: Tensor
    moves: Tensor
    edges: Tensor
    mask: Tensor


def step_draws(settings: Settings, task: Task, pool: int, device: str) -> Iterator[RandomDraws]:
    """Yield the draws of each step, on a device.

    They are made a few steps at a time, so that a GPU need not wait for those of the whole task.

    Args:
        pool: number of exemplars that may be replayed.
    """
    count = count_steps(task, settings.schedule)
    for first in range(0, count, _STEPS_AT_ONCE):
        steps = range(first, min(count, first + _STEPS_AT_ONCE))
        replayed, views = draw_views(settings, task, pool, steps)
        moves = draw_moves(settings, task, steps)
        if settings.hard_edge_jitter:
            edges = draw_hard_edges(settings, task, steps, views)
        else:
            edges = draw_edges(settings, task, steps)
        parts = (replayed, views, moves, edges, draw_mask(settings, task, steps))
        draws = [copy_to_device(part, device) for part in parts]
        for step in range(len(steps)):
            yield RandomDraws(*(part[step] for part in draws))


def draw_views(
    settings: Settings, task: Task, pool: int, steps: range
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Draw exemplars (steps, R) and maps (steps, R, 2, 3) over all scales, angles and positions."""
    count = _count(settings.exemplar_replay, settings, task)
    numbers = _uniform(Purpose.REHEARSAL, task, steps, count, 5)
    replayed = (numbers[..., 0] * pool).astype(np.int64)
    scale = 0.5 + 0.5 * numbers[..., 1]
    angle = 2.0 * np.pi * numbers[..., 2]
    return replayed, similarity_maps(scale, angle, numbers[..., 3:] - 0.5)


def draw_moves(settings: Settings, task: Task, steps: range) -> NDArray[np.float32]:
    """Draw the maps of jitter (steps, N, 2, 3) within the ranges of the settings."""
    count = _count(settings.jitter, settings, task)
    numbers = 2.0 * _uniform(Purpose.JITTER, task, steps, count, 4) - 1.0
    scale = np.exp(settings.jitter_scale * numbers[..., 0])
    angle = np.deg2rad(settings.jitter_rotation) * numbers[..., 1]
    return similarity_maps(scale, angle, settings.jitter_translation * numbers[..., 2:])


def draw_edges(settings: Settings, task: Task, steps: range) -> NDArray[np.float32]:
    """Draw a threshold or an amount of blur (steps, B, 2) for some images; the others get 0, 0."""
    count = _count(1.0 if settings.edge_jitter else 0.0, settings, task)
    chosen, value = np.moveaxis(_uniform(Purpose.EDGES, task, steps, count, 2), -1, 0)
    hard = np.where(chosen < settings.edge_jitter / 2, 0.25 + 0.5 * value, 0.0)
    blurred = (settings.edge_jitter / 2 <= chosen) & (chosen < settings.edge_jitter)
    return np.stack((hard, np.where(blurred, value, 0.0)), axis=-1).astype(np.float32)


def draw_hard_edges(
    settings: Settings, task: Task, steps: range, views: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Draw how far some shapes shrink, and harden replayed exemplars, (steps, B, 2).

    The edge of an exemplar lies half a pixel outside its outline, and scale / 2 pixels where it is shown
    smaller. There it is a ramp as wide as a pixel of the exemplar, which is `scale` pixels. So the
    threshold that moves it out by the missing (1 - scale) / 2 is 1/2 - (1 - scale) / (2 scale).

    Args:
        views: (steps, R, 2, 3) the maps under which exemplars are shown, as the last images of a batch.
    """
    count = _count(1.0, settings, task)
    chosen, amount = np.moveaxis(_uniform(Purpose.EDGES, task, steps, count, 2), -1, 0)
    threshold = np.zeros_like(amount)
    scale = np.sqrt(np.linalg.det(views[..., :2]))
    threshold[:, count - views.shape[1] :] = np.maximum(1 - 0.5 / scale, _LOWEST_THRESHOLD)
    shrunk = np.where(chosen < settings.hard_edge_jitter, amount, 0.0)
    return np.stack((threshold, shrunk), axis=-1).astype(np.float32)


def draw_mask(settings: Settings, task: Task, steps: range) -> NDArray[np.float32]:
    """Draw ones (steps, 2, 3), with zeros at the entries that a step masks."""
    mask = np.ones((len(steps), 6), np.float32)
    order = _uniform(Purpose.MASK, task, steps, 1, 6)[:, 0].argsort(axis=1)
    np.put_along_axis(mask, order[:, : settings.masked_entries], 0, axis=1)
    return mask.reshape(-1, 2, 3)


def jitter(images: Tensor, theta: Tensor, moves: Tensor) -> tuple[Tensor, Tensor]:
    """Transform the first images by moves J; their maps become J^-1 theta."""
    count = len(moves)
    if count == 0:
        return images, theta
    moved = transform_images(images[:count], moves)
    maps = compose(invert(moves), theta[:count])
    return torch.cat((moved, images[count:])), torch.cat((maps, theta[count:]))


def replay_exemplars(
    images: Tensor, theta: Tensor, replayed: Tensor, views: Tensor
) -> tuple[Tensor, Tensor]:
    """Replace the last images by exemplars (uint8), shown under the maps `views`."""
    count = len(images) - len(views)
    if count == len(images):
        return images, theta
    shown = transform_images(replayed.float() / 255.0, invert(views))
    return torch.cat((images[:count], shown)), torch.cat((theta[:count], views))


def _count(fraction: float, settings: Settings, task: Task) -> int:
    return round(fraction * min(settings.schedule.batch_size, len(task.train)))


def _uniform(
    purpose: Purpose, task: Task, steps: range, count: int, each: int
) -> NDArray[np.float64]:
    """Draw uniform numbers in [0, 1), (steps, count, each)."""
    if count == 0:
        return np.zeros((len(steps), 0, each))
    drawn = uniform(task.seed, purpose, task.index, np.array(steps), count=count * each)
    return drawn.reshape(len(steps), count, each)
