"""The pre-trained extractor of experiments on latents, and its latents of 50 shapes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from time import sleep

import numpy as np

from everlearn.core.lock import locked
from everlearn.nets.extractor import load_extractor
from everlearn.stream import Stream
from everlearn.stream.named import named
from everlearn.training.pretraining import latents
from everlearn.training.pretraining.settings import ShapeSettings
from everlearn.training.pretraining.shape_pretraining import ShapePretraining

FILE = "extractor.npz"
DATA = "data"  # a folder of data sets that holds only these latents
NAME = "latents/idsprites-50"
PRETRAINING = ShapeSettings(steps=4000)
STREAM = named("idsprites-50")
_CHUNK = 1024  # images encoded at a time
_WAIT = 1.0  # seconds between checks for a file that another process makes


def ensure_extractor(folder: Path, device: str) -> Path:
    """Return the extractor of a folder; pre-train it if it does not exist."""

    def make(path: Path) -> None:
        pretraining = ShapePretraining(PRETRAINING, device)
        for _ in pretraining.learn():
            pass
        pretraining.save(path, pretraining.test(), pretraining.transfer())

    return _ensure_file(folder / FILE, make)


def ensure_latents(folder: Path, device: str) -> Path:
    """Return the latents of 50 shapes in 11 sessions; compute them if they do not exist."""

    def make(path: Path) -> None:
        assert isinstance(STREAM, Stream)
        weights = ensure_extractor(folder, device)
        loaded, listed = load_extractor(weights), latents.list_images(STREAM)
        table = np.empty((len(listed.labels), *loaded.net.latent_shape), np.float16)
        for _ in latents.compute_latents(loaded.net.lower, listed.splits, table, _CHUNK, device):
            pass
        latents.save_latents(
            path, table, listed, latents.describe_source(STREAM, weights, loaded, device)
        )

    return _ensure_file(folder / DATA / f"{NAME}.npz", make)


def _ensure_file(path: Path, make: Callable[[Path], None]) -> Path:
    """Make a file that does not exist; of several processes one makes it while the others wait."""
    path.parent.mkdir(parents=True, exist_ok=True)
    while not path.exists():
        try:
            with locked(path.parent):
                if not path.exists():
                    make(path)
        except BlockingIOError:
            sleep(_WAIT)
    return path
