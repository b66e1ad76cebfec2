"""MNIST and Fashion-MNIST from their four idx files, compressed (.gz) or not."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np

from everlearn.stream.datasets.files import Arrays, Bytes, Origin, check_labels, corrupt, read_bytes

CLASSES = 10
MNIST = Origin("MNIST", "yann.lecun.com/exdb/mnist or any mirror of MNIST", "MNIST/raw")
FASHION = Origin("Fashion-MNIST", "github.com/zalandoresearch/fashion-mnist", "FashionMNIST/raw")
_FILES = (
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
)
_UBYTE = 0x08


def read_mnist(folder: Path) -> Arrays:
    """Read MNIST: 70000 images of 28 x 28."""
    return _read(folder, MNIST)


def read_fashion(folder: Path) -> Arrays:
    """Read Fashion-MNIST: 70000 images of 28 x 28."""
    return _read(folder, FASHION)


def _read(folder: Path, origin: Origin) -> Arrays:
    paths = {name: _find(folder / origin.place, name) for name in _FILES}
    missing = [f"{name}.gz (or {name})" for name, path in paths.items() if path is None]
    if missing:
        raise origin.missing(folder, missing)
    found = [path for path in paths.values() if path is not None]
    images, labels = _pair(found[0], found[1])
    test_images, test_labels = _pair(found[2], found[3])
    if images.shape[1:] != test_images.shape[1:]:
        raise corrupt(found[2], f"its images are not like those of {found[0].name}")
    return Arrays(
        np.concatenate((images, test_images))[:, None],
        check_labels(np.concatenate((labels, test_labels)), CLASSES, found[1].parent),
        test=np.arange(len(labels) + len(test_labels)) >= len(labels),
    )


def _find(place: Path, name: str) -> Path | None:
    return next((p for p in (place / f"{name}.gz", place / name) if p.is_file()), None)


def _pair(images: Path, labels: Path) -> tuple[Bytes, Bytes]:
    pixels = read_idx(images, 3)
    classes = read_idx(labels, 1)
    if len(pixels) != len(classes):
        raise corrupt(labels, f"{len(classes)} labels for {len(pixels)} images of {images.name}")
    return pixels, classes


def read_idx(path: Path, dimensions: int) -> Bytes:
    """Read one idx file of uint8 with a number of dimensions."""
    data = read_bytes(path)
    start = 4 + 4 * dimensions
    if len(data) < start or tuple(data[:4]) != (0, 0, _UBYTE, dimensions):
        raise corrupt(path, f"it does not start as an idx file of {dimensions} dimensions")
    shape = struct.unpack(f">{dimensions}I", data[4:start])
    size = int(np.prod(shape, dtype=object))
    if size != len(data) - start:
        raise corrupt(path, f"its header promises {size} bytes, {len(data) - start} follow")
    return np.frombuffer(data, np.uint8, offset=start).reshape(shape)
