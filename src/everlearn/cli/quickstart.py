"""`everlearn quickstart`: forgetting, replay and DCL on a short stream, in about a minute."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from everlearn.cli.compare import run_all
from everlearn.cli.jobs import RunRequest
from everlearn.cli.options import PLAN_OPTIONS, STREAM_OPTIONS
from everlearn.cli.report import check_plots, write_report
from everlearn.cli.run import Device

METHODS = ("fine-tuning", "er", "dcl-plus")


def quickstart(
    out: Annotated[Path, typer.Option(help="Folder to write to.")] = Path("out/quickstart"),
    seed: Annotated[int, typer.Option(help="Everything follows from it.")] = 0,
    device: Device = "auto",
) -> None:
    """See forgetting in a minute: three methods learn a short stream, and a page shows the result."""
    check_plots()
    request = RunRequest(
        preset="quickstart",
        changes=dict.fromkeys(STREAM_OPTIONS),
        plan_options=dict.fromkeys(PLAN_OPTIONS),
        device=device,
        save_seconds=30.0,
    )
    folders = run_all(METHODS, [seed], out / "runs", request)
    from everlearn.cli.pictures import draw_answers, draw_matches, draw_stream

    pictures = draw_answers(folders, out / "pictures")
    pictures |= draw_matches(folders[-1], out / "pictures")
    pictures |= draw_stream(folders[-1], out / "pictures")
    command = shlex.join(["everlearn", "quickstart", "--out", str(out), "--seed", str(seed)])
    write_report(folders, out, "Everlearn quickstart", pictures, command)
