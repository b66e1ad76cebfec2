"""CIFAR-10 from the official binary version, or from a subset in one npz file.

The official Python version consists of pickles, which are never loaded.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from everlearn.stream.datasets.files import Arrays, Bytes, Origin, check_labels, corrupt, read_npz

CLASSES = 10
ORIGIN = Origin(
    "CIFAR-10",
    "www.cs.toronto.edu/~kriz/cifar.html (the binary version, cifar-10-binary.tar.gz, unpacked)",
    "CIFAR10",
)
_FOLDER = "cifar-10-batches-bin"
_TRAIN = tuple(f"data_batch_{i}.bin" for i in range(1, 6))
_TEST = "test_batch.bin"
_SUBSET = "cifar10_subset_500x10.npz"
_RECORD = 1 + 3 * 32 * 32


def read_cifar10(folder: Path) -> Arrays:
    """Read all of CIFAR-10 if it is there, else the subset; images are 3 x 32 x 32."""
    place = folder / ORIGIN.place
    for batches in (place / _FOLDER, folder / _FOLDER):
        if batches.is_dir():
            return _read_binary(folder, batches)
    if (place / _SUBSET).is_file():
        return _read_subset(place / _SUBSET)
    raise ORIGIN.missing(folder, [f"{_FOLDER}/{name}" for name in (*_TRAIN, _TEST)])


def _read_binary(folder: Path, batches: Path) -> Arrays:
    missing = [f"{_FOLDER}/{name}" for name in (*_TRAIN, _TEST) if not (batches / name).is_file()]
    if missing:
        raise ORIGIN.missing(folder, missing)
    train = np.concatenate([_records(batches / name) for name in _TRAIN])
    test = _records(batches / _TEST)
    both = np.concatenate((train, test))
    return Arrays(
        both[:, 1:].reshape(-1, 3, 32, 32),
        check_labels(both[:, 0], CLASSES, batches),
        test=np.arange(len(both)) >= len(train),
    )


def _records(path: Path) -> Bytes:
    """Read a file of records (N, 3073): a label, then the planes red, green and blue."""
    data = np.fromfile(path, np.uint8)
    if len(data) == 0 or len(data) % _RECORD:
        raise corrupt(path, f"expected records of {_RECORD} bytes, found {len(data)} bytes")
    return data.reshape(-1, _RECORD)


def _read_subset(path: Path) -> Arrays:
    x, y, x_test, y_test = read_npz(path, ("x_train", "y_train", "x_test", "y_test"))
    for images, labels in ((x, y), (x_test, y_test)):
        if images.dtype != np.uint8 or images.shape != (len(labels), 32, 32, 3):
            raise corrupt(path, f"images of {images.dtype} {images.shape}, {len(labels)} labels")
    return Arrays(
        np.ascontiguousarray(np.concatenate((x, x_test)).transpose(0, 3, 1, 2)),
        check_labels(np.concatenate((y, y_test)), CLASSES, path),
        test=np.arange(len(y) + len(y_test)) >= len(y),
    )
