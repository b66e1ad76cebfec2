"""`everlearn tune`: choose the settings of methods by the same number of trials for each."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from everlearn.cli.jobs import run_to_end
from everlearn.cli.messages import print_message
from everlearn.cli.report import print_tuning
from everlearn.cli.run import Device


def tune(
    methods: Annotated[
        list[str] | None, typer.Argument(help="Methods to tune; none: all with a grid.")
    ] = None,
    scale: Annotated[str, typer.Option(help="small (minutes, any machine) or paper (one GPU).")] = (
        "small"
    ),
    out: Annotated[Path, typer.Option(help="Folder of the trials.")] = Path("out/tuning"),
    device: Device = "auto",
    only: Annotated[
        str, typer.Option(help="Make these trials only, with commas, such as er-3; no table.")
    ] = "",
) -> None:
    """Run every trial of the methods' grids on validation images, and show which are chosen."""
    from everlearn.experiments.framework.grids import GRIDS, tuning_trials
    from everlearn.experiments.framework.pages import write_scale
    from everlearn.experiments.framework.runner import Runner

    names = methods or list(GRIDS)
    trials = {trial.name: trial for name in names for trial in tuning_trials(name, scale)}
    chosen = _read_only(only, list(trials))
    runner = Runner(out, scale, device, follow=run_to_end)
    write_scale(out, scale)
    runner.run_trials(trials[name] for name in chosen or trials)
    if not chosen:
        print_tuning(out, scale, names)
        print_message(f"rows are in {out}")


def _read_only(text: str, known: list[str]) -> list[str]:
    names = [name.strip() for name in text.split(",")] if text else []
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ValueError(f"--only names unknown trials {unknown}; known: {', '.join(known)}")
    return names
