"""`everlearn latents`: what an extractor makes of every image of a stream, in one file."""

from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from everlearn.cli.messages import print_message, print_written
from everlearn.cli.options import with_stream
from everlearn.cli.outputs import check_new_file
from everlearn.cli.progress import is_tenth, progress_display
from everlearn.cli.values import parse_value

if TYPE_CHECKING:
    from everlearn.stream import Stream
    from everlearn.stream.datasets import ArrayStream


@with_stream
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
    check_new_file(out)
    import numpy as np

    from everlearn.nets.extractor import load_extractor
    from everlearn.training.device import find_device
    from everlearn.training.pretraining import latents as work

    place, loaded = find_device(device), load_extractor(weights)
    typed = (
        parse_value(test_sessions, tuple[int, ...], "--test-sessions") if test_sessions else None
    )
    sights = work.list_images(stream, typed)
    work.check_images(stream, loaded.about)
    about = work.describe_source(stream, weights, loaded, place)
    table = np.empty((len(sights.labels), *loaded.net.latent_shape), np.float16)
    _show_progress(
        work.compute_latents(loaded.net.lower, sights.splits, table, batch_size, place), len(table)
    )
    tested = int(sights.test.sum())
    print_message(f"{len(table) - tested} latents to train on, {tested} to test on")
    print_written(work.save_latents(out, table, sights, about))


def _show_progress(counts: Iterable[int], total: int) -> None:
    """Go through the work and show how it is going."""
    before = 0
    with progress_display("latents", total) as show:
        for done in counts:
            describe = partial("{:,} of {:,} images".format, done, total)
            show(done, total, describe, is_tenth(before, done, total))
            before = done
