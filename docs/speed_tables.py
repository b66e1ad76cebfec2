"""Tables of speeds, costs and targets in docs/results.md: functions of committed rows."""

from __future__ import annotations

import statistics
from collections.abc import Iterable

from cells import join, name_seeds, rounded, table
from committed import Committed, Lines

from everlearn.experiments.beyond.million import MEASUREMENT as MILLION
from everlearn.experiments.dcl.table1_one_shot import PUBLISHED, one_shot_scores
from everlearn.experiments.framework.shared_trials import SEEDS, TABLE_TASKS
from everlearn.metrics import share

# Which rows of benchmarks/task_seconds.py the page describes.
_TASK_SECONDS = {"what": "seconds per task, alone", "preset": "paper"}
TIMED_DCL_PLUS = "reproduce overview --only dcl-plus-seed10"
_HEAD = ("what", "measured", "target")
_CPU_SIZES = (64, 128, 256)
_GPU_SIZES = (64, 128, 224)
Cells = list[list[str]]


def learning(rows: Committed) -> str:
    """Return the table of speed and accuracy of DCL+, with targets."""
    return table(_HEAD, *_training(rows), *_long_run(rows), *_new_shapes(rows), *_on_a_cpu(rows))


def _training(rows: Committed) -> Cells:
    train = rows.only("train_gpu", {}, "what", "size", "batch")
    speeds = [train["training", 64, batch]["images_per_second"] for batch in (256, 512, 1024)]
    loops = [train[f"plain eager loop, {kind}", 64, 256] for kind in ("float32", "autocast")]
    rendering = train["share of a step spent drawing", 64, 256]["share"]
    return [
        ["training images per second of plain dcl, including making the tasks; batches of 256 / 512 / 1024",
         rounded(speeds, -3), "140,000 at 256"],
        ["speed-up over a plain eager loop, float32 / autocast",
         _each((row["ours_over_it"] for row in loops), "{:.1f}×"), "4×"],
        ["fraction of a step spent rendering", f"{100 * rendering:.1f} %", "3 %"],
    ]  # fmt: skip


def _long_run(rows: Committed) -> Cells:
    runs = rows.long_dcl_plus
    tasks, seeds = runs.runs[0].stream["tasks"], name_seeds(runs.seeds)
    lowest = {mode: join(_lowest(rows, mode), exact=True) for mode in PUBLISHED}
    return [
        [f"after {tasks} tasks, accuracy on all tasks, {seeds}",
         join(runs.values("average_accuracy").values()), "0.999"],
        [f"seconds for {tasks} tasks alone on the card, from start to end, tested after every tenth task",
         f"{rows.seconds(TIMED_DCL_PLUS):.1f}", "130"],
        [f"after {TABLE_TASKS} tasks, one-shot, standard, 10 / 100 / 1000 new classes, lowest of "
         f"{name_seeds(rows.dcl_plus.seeds)}", lowest["standard"], "1.00 / 0.99 / 0.98"],
        ["the same, generalised", lowest["generalised"], "0.99 / 0.98 / 0.97"],
        [f"after {tasks} tasks, open set, average precision, {seeds}",
         join(runs.values("open_set_average_precision").values(), 3), "0.95"],
    ]  # fmt: skip


def _lowest(rows: Committed, mode: str) -> list[float]:
    """Return the lowest one-shot accuracy over seeds, by number of classes."""
    scores = [one_shot_scores(run, TABLE_TASKS) for run in rows.dcl_plus.runs]
    return [min(score[mode, "grid", n] for score in scores) for n in PUBLISHED[mode]]


def _new_shapes(rows: Committed) -> Cells:
    million = [share(row["correct"], row["total"]) for row in rows.paper.rows(MILLION)]
    return [
        [f"with jitter, after {TABLE_TASKS} tasks, {name_seeds(SEEDS[:1])}: one-shot among 1,000 new "
         "classes with continuous factors; accuracy on all tasks", _continuous(rows, "jitter"),
         "0.99; 0.99"],
        *(["the same without jitter, on the paper's images with hard edges, "
           f"{size} pixels", _continuous(rows, f"exact-{size}"), ""] for size in (128, 224)),
        ["a million new classes, exact search: factors of the grid / continuous "
         "(`results/paper/parts/million.jsonl.gz`)", join(million, 3), ""],
    ]  # fmt: skip


def _continuous(rows: Committed, trial: str) -> str:
    """Return two accuracies of a trial of DCL+: on new classes in continuous poses, and on all tasks."""
    summary = rows.run(f"paper/dcl-plus-{trial}-seed{SEEDS[0]}").summary
    names = ("one_shot_standard_continuous_1000", "average_accuracy")
    return "; ".join(f"{summary[name]:.4f}" for name in names)


def _on_a_cpu(rows: Committed) -> Cells:
    dcl_plus, dcl = (
        [rows.run(f"small/{name}-seed{seed}").summary["average_accuracy"] for seed in SEEDS]
        for name in ("dcl-plus", "dcl")
    )
    return [
        [f"twelve tasks on a CPU, accuracy, {name_seeds(SEEDS)}", join(dcl_plus, 3), "0.85"],
        ["the same, plain dcl", join(dcl, 3), "0.85"],
    ]


def costs(rows: Committed) -> str:
    """Return the table of seconds per task at the start and at the end of 500 tasks."""
    timed = rows.only("task_seconds", _TASK_SECONDS, "method")
    methods = ("lwf", "si", "ewc", "agem")
    er = rows.run("paper/er-20k-seed0").costs
    start = [timed[method,]["seconds_per_task"] for method in methods]
    start.append(statistics.mean(row["seconds"] for row in er[4:15]))
    end = [timed[method,]["seconds_at_the_end"] for method in methods]
    end.append(statistics.mean(row["seconds"] for row in er[439:]))
    return table(
        ["", *methods, "er, 20,000 images", "target"],
        ["seconds per task at the start", *(f"{value:.3f}" for value in start), "0.6; replay 1.0"],
        ["at the end", *(f"{value:.3f}" for value in end), "1.1 times the start"],
    )


def rendering(rows: Committed) -> str:
    """Return the table of speed and exactness of the renderers, with targets."""
    cpu = rows.only("render_cpu", {}, "what", "size")
    gpu = rows.only("render_gpu", {}, "what", "size")
    return table(
        _HEAD, *_cpu_speeds(cpu), *_gpu_speed(gpu), *_cpu_errors(cpu), *_hard_edges(gpu),
        *_gpu_error(gpu), *_streams(cpu),
    )  # fmt: skip


def _cpu_speeds(cpu: Lines) -> Cells:
    core = [cpu["images/s, one core, grey uint8, against idsprites", s] for s in _CPU_SIZES]
    ratios = _each((row["value"] for row in core), "{:.0f}×")
    cores = [cpu["two cores against one", size]["value"] for size in _CPU_SIZES]
    outlines = cpu["outlines/s, one core, in batches", None]["value"]
    return [
        ["images per second on one core against `idsprites`, grey, 64 / 128 / 256 pixels",
         f"{ratios} ({rounded([row['ours'] for row in core], -3)})", "25×"],
        ["two cores against one, 64 / 128 / 256 pixels", _each(cores, "{:.2f}×"), "1.7×"],
        ["outlines per second, one core", rounded([outlines], -2), "20,000"],
    ]  # fmt: skip


def _gpu_speed(gpu: Lines) -> Cells:
    speeds = [gpu["images/s, GPU, grey float32", size]["value"] / 1e6 for size in _GPU_SIZES]
    return [["images per second on the H200, float, 64 / 128 / 224 pixels",
             _each(speeds, "{:.2g} M"), "10 M / 3 M / 1 M"]]  # fmt: skip


def _cpu_errors(cpu: Lines) -> Cells:
    off_16 = cpu["levels of 255 off 16x16 samples a pixel, 1000 images at 64 px", None]
    off_64 = cpu["levels of 255 off 64x64 samples a pixel, 100 images at 64 px", None]
    return [
        ["CPU against 16 × 16 samples per pixel, 1,000 images, levels of 255",
         f"mean {off_16['value']:.3f}, max {off_16['max']:.2f} (see below)", "0.5, 4"],
        ["CPU against 64 × 64 samples per pixel, 100 images",
         f"mean {off_64['value']:.3f}, max {off_64['max']:.2f}", ""],
    ]  # fmt: skip


def _hard_edges(gpu: Lines) -> Cells:
    speeds = [gpu["images/s, GPU, grey float32, parity", s]["value"] / 1e6 for s in _GPU_SIZES]
    off = "pixels that differ, GPU against CPU, 10000 parity images"
    differing = [gpu[off, size]["value"] for size in _GPU_SIZES]
    return [
        ["images with hard edges per second on the H200, float, 64 / 128 / 224 pixels",
         _each(speeds, "{:.2g} M"), "10 M at 64 pixels"],
        ["pixels that differ on the GPU and on the CPU, hard edges, 10,000 images of each size",
         _each(differing, "{}"), "0"],
    ]  # fmt: skip


def _gpu_error(gpu: Lines) -> Cells:
    off = gpu["levels of 255, GPU against CPU, 10000 images at 64 px", None]
    measured = f"mean {off['value']:.4f}, max {off['max']:.0f}"
    return [["GPU against CPU, 10,000 images", measured, "0.1, 2"]]


def _streams(cpu: Lines) -> Cells:
    far = cpu["stream[10**9] to its first batch, against stream[0]", None]["value"]
    growth = cpu["memory growth over 10000 tasks, MB", None]["value"]
    imported = cpu["import everlearn, seconds", None]
    torch = "with torch" if imported["loads_torch"] else "no torch"
    return [
        ["`stream[10**9]` to its first batch against `stream[0]`", f"{far:.2f}×", "1.2×"],
        ["memory growth over 10,000 tasks", f"{growth:.0f} MB", "20 MB"],
        ["`import everlearn`", f"{imported['value']:.2f} s, {torch}", "0.2 s"],
    ]


def _each(values: Iterable[float], form: str) -> str:
    return " / ".join(form.format(value) for value in values)
