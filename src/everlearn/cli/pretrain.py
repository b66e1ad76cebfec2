"""`everlearn pretrain`: a net for methods that start from one that has learned other things.

A small transformer for L2P-lite, from the user's MNIST and Fashion-MNIST, or an extractor of latents, from
shapes that no stream shows.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any

import typer

from everlearn.cli.messages import print_message, print_written
from everlearn.cli.outputs import check_new_file
from everlearn.cli.progress import is_tenth, progress_display

if TYPE_CHECKING:
    from everlearn.training.pretraining import Score, TrainingProgress

_EVERY = 50  # steps between two looks at the loss, which wait for a GPU
_TRANSFORMER = "vit-lite"


def pretrain(
    net: Annotated[
        str, typer.Option(help="vit-lite, or an extractor such as resnet18-slim.")
    ] = _TRANSFORMER,
    out: Annotated[
        Path | None,
        typer.Option(help="The file of weights to write.", show_default="out/NET.npz"),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(help="Folder of the data sets, for vit-lite.", show_default="EVERLEARN_DATA"),
    ] = None,
    seconds: Annotated[
        float | None,
        typer.Option(
            help="About how long, when --steps is not given.", show_default="240, extractor 120"
        ),
    ] = None,
    steps: Annotated[
        int | None, typer.Option(help="How many steps; the same give the same weights.")
    ] = None,
    batch_size: Annotated[
        int | None, typer.Option(help="Images a step.", show_default="256, extractor 1024")
    ] = None,
    test_images: Annotated[int, typer.Option(help="Images to test on, at most.")] = 20_000,
    seed: Annotated[int, typer.Option(help="Everything follows from it.")] = 0,
    device: Annotated[
        str, typer.Option(help="auto (a GPU where there is one), cpu, cuda, cuda:0 ...")
    ] = "auto",
    shapes: Annotated[
        int | None, typer.Option(help="Shapes an extractor learns.", show_default="500")
    ] = None,
    size: Annotated[
        int | None, typer.Option(help="Side of an extractor's images.", show_default="64")
    ] = None,
    channels: Annotated[
        int | None, typer.Option(help="Channels of an extractor's images.", show_default="1")
    ] = None,
    map_loss_weight: Annotated[
        float | None,
        typer.Option(help="Weight of the loss on an image's affine map.", show_default="0"),
    ] = None,
) -> None:
    """Pre-train a net: that of l2p-lite on digits and clothes, an extractor on shapes."""
    out = out or Path("out") / f"{net}.npz"
    check_new_file(out)
    typed = {"seconds": seconds, "steps": steps, "batch_size": batch_size}
    typed |= {"test_images": test_images, "seed": seed}
    extra = _given(
        {"shapes": shapes, "size": size, "channels": channels, "map_loss_weight": map_loss_weight}
    )
    if net == _TRANSFORMER:
        if extra:
            raise ValueError(f"--{next(iter(extra))} goes with an extractor, found --net {net}")
        _pretrain_transformer(_given(typed), data, device, out)
    else:
        if data is not None:
            raise ValueError(f"--data goes with --net {_TRANSFORMER}, found --net {net}")
        _pretrain_extractor({"net": net} | _given(typed) | extra, device, out)


def _given(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def _pretrain_transformer(given: dict[str, Any], data: Path | None, device: str, out: Path) -> None:
    from everlearn.training.device import find_device
    from everlearn.training.pretraining import Pretraining, Settings

    work = Pretraining(Settings(**given), data, find_device(device))
    _show_progress(work.learn())
    score = work.test()
    print_message(f"{work.done} steps; {_share(score, 'test images right')}")
    print_written(work.save(out, score))
    print_message(f"to use it: everlearn run l2p-lite --weights {out}")


def _pretrain_extractor(given: dict[str, Any], device: str, out: Path) -> None:
    from everlearn.nets.split_net import SPLIT_NETS
    from everlearn.training.device import find_device
    from everlearn.training.pretraining.settings import ShapeSettings
    from everlearn.training.pretraining.shape_pretraining import TRANSFER_SHAPES, ShapePretraining

    if given["net"] not in SPLIT_NETS:
        known = ", ".join((_TRANSFORMER, *SPLIT_NETS))
        raise ValueError(f"unknown net {given['net']!r}; known: {known}")
    work = ShapePretraining(ShapeSettings(**given), find_device(device))
    _show_progress(work.learn())
    score, transfer = work.test(), work.transfer()
    print_message(f"{work.done} steps; {_share(score, 'test images right')}")
    print_message(
        f"{TRANSFER_SHAPES} other shapes: {_share(transfer, 'right by the nearest class mean')}"
    )
    print_written(work.save(out, score, transfer))
    print_message(
        f"to use it: everlearn latents --weights {out} --stream idsprites-50 --out FILE.npz"
    )


def _show_progress(steps: Iterable[TrainingProgress]) -> None:
    """Go through all steps and show how it is going."""
    began = monotonic()
    with progress_display("pretrain") as show:
        for now in steps:
            tenth = is_tenth(now.step - 1, now.step, now.steps)
            if tenth or now.step % _EVERY == 0:
                show(now.step, now.steps, partial(_describe, now, began), tenth)


def _share(score: Score, what: str) -> str:
    share = 100 * score.correct / score.total
    return f"{score.correct} of {score.total} {what} ({share:.1f} %)"


def _describe(now: TrainingProgress, began: float) -> str:
    """Step, loss and time left."""
    known = f" of {now.steps}" if now.steps else ""
    state = f"step {now.step}{known}, loss {float(now.loss):.3g}"
    if now.steps is None:
        return state
    seconds = round((monotonic() - began) / now.step * (now.steps - now.step))
    return f"{state}, {seconds // 60}:{seconds % 60:02} left"
