"""Latents of a whole stream: what the lower half of an extractor makes of every image, seen once."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import nn

from everlearn.border import check_whole
from everlearn.disk import writing
from everlearn.exam.costs import gpu_of
from everlearn.nets import fast
from everlearn.nets.extractor import Loaded
from everlearn.nets.weights import ABOUT, digest
from everlearn.provenance import provenance
from everlearn.stream import ArrayStream, Split, Stream
from everlearn.stream.arrays.parts import part_rows
from everlearn.stream.arrays.photos import Photos
from everlearn.stream.arrays.plan import find_lists
from everlearn.stream.arrays.sessions import hold_out
from everlearn.stream.arrays.sources import load

MAKER = "everlearn latents"
TEST_SESSIONS = (2, 6, 9)
Halfs = NDArray[np.float16]


class Sights(NamedTuple):
    """Every image of a stream, and what is known of it: its class, its session, whether to test on it."""

    splits: list[Split]
    labels: NDArray[np.int64]
    sessions: NDArray[np.int64]
    test: NDArray[np.bool_]


def list_sights(stream: Stream | ArrayStream, test_sessions: Sequence[int] | None = None) -> Sights:
    """List every image of a stream.

    Args:
        test_sessions: the tasks of a stream of shapes to test on; data sets say it themselves.
    """
    if isinstance(stream, Stream):
        return _list_shapes(stream, TEST_SESSIONS if test_sessions is None else test_sessions)
    if not isinstance(stream, ArrayStream):
        raise ValueError(f"latents are taken of images, found a stream of {type(stream).__name__}")
    if test_sessions is not None:
        raise ValueError(f"{stream.name} says itself what to test on; leave test sessions out")
    return _list_photos(stream)


def _list_shapes(stream: Stream, test_sessions: Sequence[int]) -> Sights:
    """Every row of every task; a task is a session."""
    if stream.scenario.name != "domain" or stream.tasks is None:
        raise ValueError(
            "latents are taken of shapes in sessions: give a stream that ends of the scenario domain, "
            f"such as idsprites-50; found scenario {stream.scenario.name!r}"
        )
    for session in test_sessions:
        check_whole(session, "test_sessions", 0, stream.tasks - 1, " (the sessions there are)")
    if len(set(test_sessions)) == stream.tasks:
        raise ValueError(
            f"test_sessions {tuple(test_sessions)} leave none of {stream.tasks} sessions to train on; "
            "name fewer"
        )
    tasks = [[task.train, task.val, task.test] for task in stream]
    sessions = np.repeat(np.arange(len(tasks)), [sum(map(len, splits)) for splits in tasks])
    splits = [split for splits in tasks for split in splits if len(split)]
    labels = np.concatenate([split.labels for split in splits]) - stream.first_class
    return Sights(splits, labels, sessions, np.isin(sessions, test_sessions))


def _list_photos(stream: ArrayStream) -> Sights:
    """Every image of a data set, in its order; without an official test set, by the stream's shares."""
    arrays = load(stream.name, stream.folder, find_lists(stream.scenario))
    arrays = hold_out(arrays, stream.scenario, stream.seed, stream.test_share)
    test = arrays.test
    if test is None:
        parts = part_rows(arrays, stream.seed, stream.val_share, stream.test_share)
        test = np.isin(np.arange(len(arrays)), np.concatenate(list(parts.test.values())))
    sessions = np.zeros(len(arrays), np.int64) if arrays.sessions is None else arrays.sessions
    photos = Photos(arrays.images, np.arange(len(arrays)), stream.canvas)
    return Sights([Split(arrays.labels, photos)], arrays.labels, sessions, test)


def check_images(stream: Stream | ArrayStream, about: dict[str, Any]) -> None:
    """Raise where an extractor was not made for the images of a stream."""
    canvas = stream.canvas
    if (canvas.channels, canvas.size) != (about["channels"], about["size"]):
        raise ValueError(
            f"these weights are for images of size {about['size']} with {about['channels']} channels, "
            f"found size {canvas.size} with {canvas.channels}; "
            f"give --size {about['size']} --channels {about['channels']}"
        )
    if canvas.dtype != "float32":
        raise ValueError(f"images must be float32, found {canvas.dtype}; change the stream's dtype")


def see(
    lower: nn.Module, splits: Sequence[Split], out: Halfs, batch_size: int, device: str
) -> Iterator[int]:
    """Fill `out` (N, C, H, W) with the latents of all images, by the moments that a net keeps.

    Gives after every batch how many are done.
    """
    net, done = fast.place(lower, device), 0
    for batch in (b for split in splits for b in split.batches(batch_size, device)):
        with fast.evaluating(net):
            latents = fast.forward(net, batch.images).half().cpu().numpy()
        if not np.isfinite(latents).all():
            raise ValueError("a latent is no number of 16 bits; these weights are of no use here")
        out[done : done + len(latents)] = latents
        done += len(latents)
        yield done


def describe(
    stream: Stream | ArrayStream, weights: Path, loaded: Loaded, device: str
) -> dict[str, Any]:
    """Say what latents come from: the stream, the weights, this machine."""
    return {
        "maker": MAKER,
        "stream": json.loads(stream.to_json()),
        "weights": {"file": weights.name, "sha256": digest(loaded.halves), "about": loaded.about},
        "provenance": provenance(gpu_of(device)),
    }


def save_latents(path: Path, latents: Halfs, sights: Sights, about: dict[str, Any]) -> Path:
    """Write latents and what is known of them as .npz, not packed; it is whole or not there."""
    known = {name: getattr(sights, name) for name in ("labels", "sessions", "test")}
    text = {ABOUT: np.array(json.dumps(about))}
    with writing(path) as file:
        np.savez(file, allow_pickle=False, latents=latents, **known, **text)
    return path
