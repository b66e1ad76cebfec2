"""From the settings of a stream of environments to one task."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from everlearn.shapes import outlines
from everlearn.stream.environments.data_sets import DataSet
from everlearn.stream.environments.items import Items
from everlearn.stream.environments.lanes import test_lane, train_lane
from everlearn.stream.environments.names import Environment
from everlearn.stream.environments.sprites import SpriteSet, space_of
from everlearn.stream.task import Task

if TYPE_CHECKING:
    from everlearn.stream.environments.spec import Environments


def build_environment(stream: Environments, number: int) -> Task:
    """Make one task."""
    environment, seed = stream.environments[number], stream.seed
    source = _source(stream, environment)
    canonical = source.canonical()
    lane = train_lane(seed, environment, number, stream.train)
    return Task(
        number,
        tuple(canonical.labels.tolist()),
        train=source.train(lane),
        val=source.train(lane._replace(rows=0)),
        test=source.test(test_lane(seed, environment, stream.test)),
        canonical=canonical,
        seed=seed,
        online=stream.online,
    )


def _source(stream: Environments, environment: Environment) -> DataSet | SpriteSet:
    first, inverse = stream.blocks[environment.source].start, environment.inverse
    if environment.shape_set is None:
        items = Items(environment.source, stream.folder, stream.size)
        return DataSet(items, first, environment.moving, inverse)
    ids = environment.shape_set * stream.shapes + np.arange(stream.shapes)
    curves = outlines(stream.seed, ids)
    return SpriteSet(curves, space_of(environment), stream.canvas, first, inverse)
