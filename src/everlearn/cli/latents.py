"""`everlearn latents`: what an extractor makes of every image of a stream, in one file."""

from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from everlearn.cli.options import takes_stream
from everlearn.cli.outputs import check_new
from everlearn.cli.progress import is_tenth, shown
from everlearn.cli.say import tell, tell_file
from everlearn.cli.values import read_value

if TYPE_CHECKING:
    from everlearn.stream import Stream
    from everlearn.stream.arrays import ArrayStream


@takes_stream
def latents(
    stream: "Stream | ArrayStream",
    weights: Annotated[
        Path, typer.Option(help="The extractor: a file of pretrain --net.", show_default=False)
    ],
    out: Annotated[
        Path,
        typer.Option(
            help="The file to write: DATA/latents/NAME.npz is the data set latents/NAME.",
            show_default=False,
        ),
    ],
    test_sessions: Annotated[
        str, typer.Option(help="Sessions of shapes to test on.", show_default="2,6,9")
    ] = "",
    batch_size: Annotated[int, typer.Option(help="Images at once.", min=1)] = 512,
    device: Annotated[
        str, typer.Option(help="auto (a GPU where there is one), cpu, cuda, cuda:0 ...")
    ] = "auto",
) -> None:
    """Push every image of a stream once through the lower half of an extractor, and keep the latents."""
    check_new(out)
    import numpy as np

    from everlearn.learner import find_device
    from everlearn.nets.extractor import load_halves
    from everlearn.pretraining import latents as work

    place, loaded = find_device(device), load_halves(weights)
    typed = read_value(test_sessions, tuple[int, ...], "--test-sessions") if test_sessions else None
    sights = work.list_sights(stream, typed)
    work.check_images(stream, loaded.about)
    about = work.describe(stream, weights, loaded, place)
    table = np.empty((len(sights.labels), *loaded.halves.shape), np.float16)
    _follow(work.see(loaded.halves.lower, sights.splits, table, batch_size, place), len(table))
    tested = int(sights.test.sum())
    tell(f"{len(table) - tested} latents to train on, {tested} to test on")
    tell_file(work.save_latents(out, table, sights, about))


def _follow(counts: Iterable[int], total: int) -> None:
    """Go through the work and show how it is going."""
    before = 0
    with shown("latents", total) as show:
        for done in counts:
            words = partial("{:,} of {:,} images".format, done, total)
            show(done, total, words, is_tenth(before, done, total))
            before = done
