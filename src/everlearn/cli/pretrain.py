"""`everlearn pretrain`: a small transformer for L2P-lite, from the user's MNIST and Fashion-MNIST."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated

import typer

from everlearn.cli.progress import shown
from everlearn.cli.say import tell, tell_file

if TYPE_CHECKING:
    from everlearn.pretraining import Moment

_EVERY = 50  # steps between two looks at the loss, which wait for a GPU
_PARTS = 10  # lines where there is no terminal


def pretrain(
    out: Annotated[Path, typer.Option(help="The file of weights to write.")] = Path(
        "out/vit-lite.npz"
    ),
    data: Annotated[
        Path | None, typer.Option(help="Folder of the data sets.", show_default="EVERLEARN_DATA")
    ] = None,
    seconds: Annotated[
        float, typer.Option(help="About how long, when --steps is not given.")
    ] = 240.0,
    steps: Annotated[
        int | None, typer.Option(help="How many steps; the same give the same weights.")
    ] = None,
    batch_size: Annotated[int, typer.Option(help="Images a step.")] = 256,
    test_images: Annotated[int, typer.Option(help="Images to test on, at most.")] = 20_000,
    seed: Annotated[int, typer.Option(help="Everything follows from it.")] = 0,
    device: Annotated[
        str, typer.Option(help="auto (a GPU where there is one), cpu, cuda, cuda:0 ...")
    ] = "auto",
) -> None:
    """Pre-train the frozen net of l2p-lite on digits and clothes."""
    if out.suffix != ".npz":
        raise ValueError(f"--out must end in .npz, found {str(out)!r}")
    if out.exists():
        raise ValueError(f"{out} is there already, and runs may rest on it; give another --out")
    from everlearn.learner import find_device
    from everlearn.pretraining import Pretraining, Settings

    settings = Settings(steps, seconds, seed, batch_size, test_images=test_images)
    work = Pretraining(settings, data, find_device(device))
    began = monotonic()
    with shown("pretrain") as show:
        for now in work.learn():
            tenth = _is_tenth(now)
            if tenth or now.step % _EVERY == 0:
                show(now.step, now.steps, partial(_words, now, began), tenth)
    score = work.test()
    share = 100 * score.right / score.total
    tell(f"{work.done} steps; {score.right} of {score.total} test images right ({share:.1f} %)")
    tell_file(work.save(out, score))
    tell(f"to use it: everlearn run l2p-lite --weights {out}")


def _is_tenth(now: Moment) -> bool:
    """Whether another tenth of the steps is done."""
    if not now.steps:
        return False
    return now.step * _PARTS // now.steps > (now.step - 1) * _PARTS // now.steps


def _words(now: Moment, began: float) -> str:
    """Step, loss and time left."""
    known = f" of {now.steps}" if now.steps else ""
    words = f"step {now.step}{known}, loss {float(now.loss):.3g}"
    if now.steps is None:
        return words
    seconds = round((monotonic() - began) / now.step * (now.steps - now.step))
    return f"{words}, {seconds // 60}:{seconds % 60:02} left"
