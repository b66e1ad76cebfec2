"""`everlearn compare`: methods and seeds on one stream, as one table, one plot and one page."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from everlearn.cli.jobs import Asked, check, ensure, make_job, read_log
from everlearn.cli.options import takes_changes, takes_plan
from everlearn.cli.report import check_plots, write_report
from everlearn.cli.run import Device, Log, Preset, SaveSeconds, Words
from everlearn.cli.settings import Given
from everlearn.cli.values import read_value

TITLE = "Everlearn comparison"
USUAL = ("dcl-plus", "er", "fine-tuning", "joint")


@takes_plan
@takes_changes
def compare(
    changes: Given,
    exams: Given,
    words: Words = None,
    seeds: Annotated[str, typer.Option(help="With commas between.")] = "0,1,2",
    runs: Annotated[
        Path | None, typer.Option(help="Learn nothing: compare the runs in this folder.")
    ] = None,
    preset: Preset = "small",
    out: Annotated[
        Path | None, typer.Option(help="Folder.", show_default="out/compare-PRESET")
    ] = None,
    device: Device = "auto",
    save_seconds: SaveSeconds = 30.0,
    log: Log = None,
) -> None:
    """Let methods (by default dcl-plus, er, fine-tuning, joint) learn streams of several seeds."""
    check_plots()
    if runs is not None:
        _check_alone(words or (), [*changes.values(), *exams.values(), log])
        write_report([runs], out or runs, TITLE)
        return
    if changes["seed"] is not None:
        raise ValueError(f"compare takes several seeds: --seeds {changes['seed']}, not --seed")
    out = out or Path("out", f"compare-{preset}")
    asked = Asked(preset, changes, exams, device, save_seconds, read_log(log))
    folders = learn_all(words or (), read_seeds(seeds), out, asked)
    write_report(folders, out, TITLE)


def learn_all(words: Sequence[str], seeds: Sequence[int], out: Path, asked: Asked) -> list[Path]:
    """Have every method learn the stream of every seed; return the folders of the runs."""
    from everlearn.cli.words import read_words

    settings = read_words(words, USUAL)
    jobs = [
        make_job(out / f"{method}-seed{seed}", method, own, asked.with_seed(seed))
        for seed in seeds
        for method, own in settings.items()
    ]
    for job in jobs:
        check(job)  # what is wrong is said before others take their hours
    for job in jobs:
        ensure(job)
    return [job.folder for job in jobs]


def read_seeds(text: str) -> tuple[int, ...]:
    """Read seeds with commas between, each once."""
    seeds: tuple[int, ...] = read_value(text, tuple[int, ...], "--seeds")
    if not seeds or len(set(seeds)) < len(seeds):
        raise ValueError(f"--seeds must be different whole numbers, such as 0,1,2; found {text!r}")
    return seeds


def _check_alone(words: Sequence[str], options: Sequence[Any]) -> None:
    if words or any(value is not None for value in options):
        raise ValueError(
            "--runs compares runs that exist: leave methods, stream and exams out, and --log"
        )
