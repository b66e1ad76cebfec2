"""`everlearn quickstart`: three methods learn a short stream in minutes; a page shows how it went."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from everlearn.cli.compare import learn_all
from everlearn.cli.jobs import Asked
from everlearn.cli.options import CHOICES, EXAMS
from everlearn.cli.report import check_plots, write_report
from everlearn.cli.run import Device

METHODS = ("dcl-plus", "fine-tuning", "joint")


def quickstart(
    out: Annotated[Path, typer.Option(help="Folder to write to.")] = Path("out/quickstart"),
    seed: Annotated[int, typer.Option(help="Everything follows from it.")] = 0,
    device: Device = "auto",
) -> None:
    """See forgetting in minutes: three methods learn a short stream, a page shows how it went."""
    check_plots()
    nothing = dict.fromkeys(CHOICES), dict.fromkeys(EXAMS)
    asked = Asked("quickstart", *nothing, device, save_seconds=30.0)
    folders = learn_all(METHODS, [seed], out / "runs", asked)
    from everlearn.cli.pictures import draw_matches, draw_stream

    pictures = draw_matches(folders[0], out / "pictures")
    pictures |= draw_stream(folders[0], out / "pictures")
    command = shlex.join(["everlearn", "quickstart", "--out", str(out), "--seed", str(seed)])
    write_report(folders, out, "Everlearn quickstart", pictures, command)
