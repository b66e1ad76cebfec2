"""What experiments on real latents begin with: an extractor, and the latents of 50 shapes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from time import sleep

import numpy as np

from everlearn.lock import locked
from everlearn.nets.extractor import load_halves
from everlearn.pretraining import latents
from everlearn.pretraining.settings import ShapeSettings
from everlearn.pretraining.shapes import ShapePretraining
from everlearn.stream import Stream
from everlearn.stream.named import named

FILE = "extractor.npz"
DATA = "data"  # a folder of data sets that has these latents only
NAME = "latents/idsprites-50"
PRETRAINING = ShapeSettings(steps=4000)
STREAM = named("idsprites-50")
_AT_ONCE = 1024
_WAIT = 1.0  # seconds between two looks at what another process is making


def have_extractor(folder: Path, device: str) -> Path:
    """The extractor of a folder, pre-trained unless it is there."""

    def make(path: Path) -> None:
        work = ShapePretraining(PRETRAINING, device)
        for _ in work.learn():
            pass
        work.save(path, work.test(), work.transfer())

    return _have(folder / FILE, make)


def have_latents(folder: Path, device: str) -> Path:
    """The latents of 50 shapes in 11 sessions by a folder's extractor, made unless they are there."""

    def make(path: Path) -> None:
        assert isinstance(STREAM, Stream)
        weights = have_extractor(folder, device)
        loaded, sights = load_halves(weights), latents.list_sights(STREAM)
        table = np.empty((len(sights.labels), *loaded.halves.shape), np.float16)
        for _ in latents.see(loaded.halves.lower, sights.splits, table, _AT_ONCE, device):
            pass
        latents.save_latents(path, table, sights, latents.describe(STREAM, weights, loaded, device))

    return _have(folder / DATA / f"{NAME}.npz", make)


def _have(path: Path, make: Callable[[Path], None]) -> Path:
    """Make a file that is not there; of several processes one makes it, and the others wait."""
    path.parent.mkdir(parents=True, exist_ok=True)
    while not path.exists():
        try:
            with locked(path.parent):
                if not path.exists():
                    make(path)
        except BlockingIOError:
            sleep(_WAIT)
    return path
