"""Build one task of a stream of environments."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from everlearn.shapes import outlines
from everlearn.stream.environments.dataset_environment import DatasetEnvironment
from everlearn.stream.environments.draws import test_draws, train_draws
from everlearn.stream.environments.environment import Environment
from everlearn.stream.environments.items import Items
from everlearn.stream.environments.sprite_environment import SpriteEnvironment, factor_space
from everlearn.stream.task import Task

if TYPE_CHECKING:
    from everlearn.stream.environments.stream import Environments


def build_environment(stream: Environments, number: int) -> Task:
    """Make one task."""
    environment = stream.environments[number]
    seed = stream.seed
    source = _source(stream, environment)
    canonical = source.canonical()
    draws = train_draws(seed, environment, number, stream.train)
    return Task(
        number,
        tuple(canonical.labels.tolist()),
        train=source.train(draws),
        val=source.train(draws._replace(rows=0)),
        test=source.test(test_draws(seed, environment, stream.test)),
        canonical=canonical,
        seed=seed,
        online=stream.online,
    )


def _source(
    stream: Environments, environment: Environment
) -> DatasetEnvironment | SpriteEnvironment:
    first_class = stream.blocks[environment.source].start
    if environment.shape_set is None:
        items = Items(environment.source, stream.folder, stream.size)
        return DatasetEnvironment(items, first_class, environment.moving, environment.inverse)
    ids = environment.shape_set * stream.shapes + np.arange(stream.shapes)
    curves = outlines(stream.seed, ids)
    space = factor_space(environment)
    return SpriteEnvironment(curves, space, stream.canvas, first_class, environment.inverse)
