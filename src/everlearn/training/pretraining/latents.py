"""Latents of a stream: the output of an extractor's lower half for every image."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import nn

from everlearn.core.files import open_atomic
from everlearn.core.provenance import provenance
from everlearn.core.validate import check_int
from everlearn.nets.extractor import LoadedExtractor
from everlearn.nets.precision import eval_mode, forward_pass, to_device
from everlearn.nets.weights import ABOUT, digest
from everlearn.stream import ArrayStream, Split, Stream
from everlearn.stream.datasets.images import DatasetImages
from everlearn.stream.datasets.scenario import find_file_lists
from everlearn.stream.datasets.sessions import hold_out_sessions
from everlearn.stream.datasets.sources import load
from everlearn.stream.datasets.splits import split_rows
from everlearn.training.device import gpu_name

MAKER = "everlearn latents"
TEST_SESSIONS = (2, 6, 9)
Float16s = NDArray[np.float16]


class StreamImages(NamedTuple):
    """Every image of a stream with its class, its session and whether it is a test image."""

    splits: list[Split]
    labels: NDArray[np.int64]
    sessions: NDArray[np.int64]
    test: NDArray[np.bool_]


def list_images(
    stream: Stream | ArrayStream, test_sessions: Sequence[int] | None = None
) -> StreamImages:
    """List every image of a stream.

    Args:
        test_sessions: the tasks of a stream of shapes to test on; data sets define their own.
    """
    if isinstance(stream, Stream):
        return _list_shapes(stream, TEST_SESSIONS if test_sessions is None else test_sessions)
    if not isinstance(stream, ArrayStream):
        raise ValueError(f"latents need a stream of images, found {type(stream).__name__}")
    if test_sessions is not None:
        raise ValueError(f"{stream.name} defines its own test images; leave out the test sessions")
    return _list_dataset(stream)


def _list_shapes(stream: Stream, test_sessions: Sequence[int]) -> StreamImages:
    """List every row of every task; a task is a session."""
    if stream.scenario.name != "domain" or stream.tasks is None:
        raise ValueError(
            "latents of shapes need sessions: give a finite stream of the scenario domain, such as "
            f"idsprites-50; found scenario {stream.scenario.name!r}"
        )
    for session in test_sessions:
        check_int(session, "test_sessions", 0, stream.tasks - 1, " (the last session)")
    if len(set(test_sessions)) == stream.tasks:
        raise ValueError(
            f"test_sessions {tuple(test_sessions)} leave none of {stream.tasks} sessions to train on; "
            "give fewer"
        )
    tasks = [[task.train, task.val, task.test] for task in stream]
    sessions = np.repeat(np.arange(len(tasks)), [sum(map(len, splits)) for splits in tasks])
    splits = [split for splits in tasks for split in splits if len(split)]
    labels = np.concatenate([split.labels for split in splits]) - stream.first_class
    return StreamImages(splits, labels, sessions, np.isin(sessions, test_sessions))


def _list_dataset(stream: ArrayStream) -> StreamImages:
    """List every image of a data set in order; without a test split, by the stream's share."""
    arrays = load(stream.name, stream.folder, find_file_lists(stream.scenario))
    arrays = hold_out_sessions(arrays, stream.scenario, stream.seed, stream.test_share)
    test = arrays.test
    if test is None:
        parts = split_rows(arrays, stream.seed, stream.val_share, stream.test_share)
        test = np.isin(np.arange(len(arrays)), np.concatenate(list(parts.test.values())))
    sessions = np.zeros(len(arrays), np.int64) if arrays.sessions is None else arrays.sessions
    images = DatasetImages(arrays.images, np.arange(len(arrays)), stream.canvas)
    return StreamImages([Split(arrays.labels, images)], arrays.labels, sessions, test)


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


def compute_latents(
    lower: nn.Module, splits: Sequence[Split], out: Float16s, batch_size: int, device: str
) -> Iterator[int]:
    """Fill `out` (N, C, H, W) with the latents of all images, in evaluation mode.

    Yields the number of finished images after every batch.
    """
    net = to_device(lower, device)
    done = 0
    for batch in (b for split in splits for b in split.batches(batch_size, device)):
        with eval_mode(net):
            latents = forward_pass(net, batch.images).half().cpu().numpy()
        if not np.isfinite(latents).all():
            raise ValueError("a latent overflows float16; use other weights")
        out[done : done + len(latents)] = latents
        done += len(latents)
        yield done


def describe_source(
    stream: Stream | ArrayStream, weights: Path, loaded: LoadedExtractor, device: str
) -> dict[str, Any]:
    """Describe where latents come from: the stream, the weights, this machine."""
    return {
        "maker": MAKER,
        "stream": json.loads(stream.to_json()),
        "weights": {"file": weights.name, "sha256": digest(loaded.net), "about": loaded.about},
        "provenance": provenance(gpu_name(device)),
    }


def save_latents(
    path: Path, latents: Float16s, images: StreamImages, about: dict[str, Any]
) -> Path:
    """Write latents with their classes and sessions as .npz, uncompressed and atomically."""
    columns = {name: getattr(images, name) for name in ("labels", "sessions", "test")}
    text = {ABOUT: np.array(json.dumps(about))}
    with open_atomic(path) as file:
        np.savez(file, allow_pickle=False, latents=latents, **columns, **text)
    return path
