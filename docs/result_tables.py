"""Tables of README.md and docs/results.md: functions of committed rows."""

from __future__ import annotations

import statistics
import textwrap
from collections.abc import Sequence

from cells import by_method, join, name_seeds, rounded, table, with_digits
from committed import Committed

from everlearn.experiments.beyond import overview
from everlearn.experiments.beyond.million import MEASUREMENT as MILLION
from everlearn.experiments.dcl.ablations import open_set_ceilings
from everlearn.experiments.dcl.table1_one_shot import (
    PUBLISHED,
    Protocol,
    one_shot_scores,
    scores_by_seed,
)
from everlearn.experiments.framework.grids import GRIDS
from everlearn.experiments.framework.pages import summary_groups
from everlearn.experiments.framework.results_folder import ResultsFolder
from everlearn.experiments.framework.shared_trials import SEEDS, TABLE_TASKS
from everlearn.experiments.framework.trial import PAPER
from everlearn.experiments.framework.tuning import choose, describe_settings, scores
from everlearn.metrics import LEARNED
from everlearn.report import Group, Table, summary_table
from everlearn.report.tables.formats import to_markdown_rows
from everlearn.report.tables.protocol import did_not_learn, format_seeds

# Of the rows of benchmarks/edges.py and task_seconds.py, which those are that the pages describe.
EDGES = {
    "what": "one shot by edges", "learner": "dcl-plus", "tasks": 150, "seed": 10, "size": 64,
    "classes": 1000, "total": 10_000,
}  # fmt: skip
_TASK_SECONDS = {"what": "seconds per task, alone", "preset": "paper"}
TIMED_DCL_PLUS = "reproduce overview --only dcl-plus-seed10"


def summary(rows: Committed, words: Sequence[str]) -> str:
    """Return columns of the summary and the main table: methods that learned, then the others by name.

    Columns are separated by semicolons, as in `method; seeds; after 10 tasks`.
    """
    columns = " ".join(words).split("; ")
    groups = summary_groups(rows.paper)
    learned = summary_table([group for group in groups if not did_not_learn(group)])
    main = by_method(overview.main_tables(rows.paper)[0])
    found = {method: main.get(method, {}) | cells for method, cells in by_method(learned).items()}
    cells = [[line[column] for column in columns] for line in found.values()]
    sentences = [*_describe_seeds(groups), *_describe_unlearned(groups)]
    text = textwrap.fill(" ".join(sentences), 120, break_on_hyphens=False).replace("*", r"\*")
    return f"{to_markdown_rows(Table('', list(columns), cells, ''))}\n\n{text}"


def _describe_seeds(groups: Sequence[Group]) -> list[str]:
    """Say which seeds the means are over, and which methods have others, fewer or none."""
    found = {group.label: tuple(group.seeds) for group in groups}
    by_sentence: dict[str, list[str]] = {}
    for trial in overview.SETTINGS[PAPER].trials:
        if trial != overview.in_its_row(trial):
            continue  # its runs stand in another row, which names their seeds
        seeds = found.get(trial.title, ())
        start = name_seeds(seeds).capitalize() if seeds else "No run"
        start += "" if seeds == trial.seeds else " so far"
        if seeds != SEEDS:
            by_sentence.setdefault(start, []).append(trial.title)
    others = [f"{start}: {'; '.join(by_sentence[start])}." for start in sorted(by_sentence)[::-1]]
    return [f"Means over {name_seeds(SEEDS)}.", *others]


def _describe_unlearned(groups: Sequence[Group]) -> list[str]:
    """Name the methods that did not learn, with their learning accuracies and what they end with."""
    found = [
        f"{group.label}, {format_seeds(list(group.values('learning_accuracy').values()))}; its accuracy is "
        f"{format_seeds(list(group.values('average_accuracy').values()))} after {TABLE_TASKS} tasks"
        for group in groups
        if did_not_learn(group)
    ]
    return [f"Learning accuracy below {LEARNED}: {'. '.join(found)}."] if found else []


def tuning(rows: Committed) -> str:
    """Return the chosen trial of each method."""
    trials = ResultsFolder(rows.folder / "tuning", PAPER)
    found = [(method, scores(trials, method)) for method in GRIDS]
    chosen = [(method, choose(candidates)) for method, candidates in found if candidates]
    lines = [
        [method, describe_settings(best), f"{best.accuracy:.3f}",
         "–" if best.learning_accuracy is None else f"{best.learning_accuracy:.3f}"]
        for method, best in chosen
    ]  # fmt: skip
    return table(["method", "settings", "accuracy", "learning accuracy"], *lines)


def edges(rows: Committed) -> str:
    """Return the table of one-shot accuracies by the edges of training and test images."""
    found = rows.only("edges", EDGES, "trained_on", "edges", "factors")
    lines = [
        [*key, *(f"{row[name] / row['total']:.3f}" for name in ("correct", "ceiling"))]
        for key, row in found.items()
    ]
    return table(["trained on", "tested on", "poses", "accuracy", "ceiling"], *lines)


def comparison(rows: Committed) -> str:
    """Return the table of published numbers of the DCL paper beside ours."""
    scores = [_mean_scores(group) for group in (rows.dcl, rows.dcl_plus)]
    ours = {
        mode: [join(found[mode, "grid", classes] for classes in by_classes) for found in scores]
        for mode, by_classes in PUBLISHED.items()
    }
    published = {mode: join(values.values(), 2) for mode, values in PUBLISHED.items()}
    areas = [group.mean("open_set_paper_area") for group in (rows.dcl, rows.dcl_plus)]
    limits = open_set_ceilings(rows.paper)
    new = "after 200 tasks, one-shot, standard, 10 / 100 / 1000 new classes"
    head = [
        "what", "published", f"dcl, the paper's method, {name_seeds(rows.dcl.seeds)}",
        f"dcl-plus, {name_seeds(rows.dcl_plus.seeds)}",
    ]  # fmt: skip
    return table(
        head,
        [new, published["standard"], *ours["standard"]],
        ["the same, generalised", published["generalised"], *ours["generalised"]],
        ["open set, area under the published curve", "0.92", *map(with_digits(4), areas)],
        ["the same with true maps, images of 64 / 128 pixels", "", join(limits.values()), ""],
    )


def learning(rows: Committed) -> str:
    """Return the table of speed and accuracy of DCL+, with targets."""
    train = rows.lines("train_gpu", "what", "size", "batch")
    speeds = [train["training", 64, batch]["images_per_second"] for batch in (256, 512, 1024)]
    loops = [train[f"plain eager loop, {kind}", 64, 256] for kind in ("float32", "autocast")]
    rendering = train["share of a step spent drawing", 64, 256]["share"]
    lowest = {mode: join(_lowest(rows, mode), exact=True) for mode in PUBLISHED}
    long_runs = rows.long_dcl_plus
    tasks = long_runs.runs[0].stream["tasks"]
    long_seeds = name_seeds(long_runs.seeds)
    precisions = long_runs.values("open_set_average_precision").values()
    once = {
        name: rows.run(f"paper/dcl-plus-{name}-seed{SEEDS[0]}").summary
        for name in ("jitter", "exact-128")
    }
    jitter, exact = (
        f"{found['one_shot_standard_continuous_1000']:.4f}; {found['average_accuracy']:.4f}"
        for found in once.values()
    )
    million = [row["correct"] / row["total"] for row in rows.paper.rows(MILLION)]
    small = {
        name: [rows.run(f"small/{name}-seed{seed}").summary["average_accuracy"] for seed in SEEDS]
        for name in ("dcl-plus", "dcl")
    }
    return table(
        ["what", "measured", "target"],
        ["training images per second of plain dcl, including making the tasks; batches of 256 / 512 / 1024",
         rounded(speeds, -3), "140,000 at 256"],
        ["speed-up over a plain eager loop, float32 / autocast",
         " / ".join(f"{row['ours_over_it']:.1f}×" for row in loops), "4×"],
        ["fraction of a step spent rendering", f"{100 * rendering:.1f} %", "3 %"],
        [f"after {tasks} tasks, accuracy on all tasks, {long_seeds}",
         join(long_runs.values("average_accuracy").values()), "0.999"],
        ["seconds for 500 tasks alone on the card, from start to end, tested after every tenth task",
         f"{rows.seconds(TIMED_DCL_PLUS):.1f}", "130"],
        ["after 200 tasks, one-shot, standard, 10 / 100 / 1000 new classes, lowest of "
         f"{name_seeds(rows.dcl_plus.seeds)}", lowest["standard"], "1.00 / 0.99 / 0.98"],
        ["the same, generalised", lowest["generalised"], "0.99 / 0.98 / 0.97"],
        [f"after {tasks} tasks, open set, average precision, {long_seeds}", join(precisions, 3),
         "0.95"],
        [f"with jitter, after 200 tasks, {name_seeds(SEEDS[:1])}: one-shot among 1,000 new classes with "
         "continuous factors; accuracy on all tasks", jitter, "0.99; 0.99"],
        ["the same without jitter, on the paper's images with hard edges, 128 pixels", exact, ""],
        ["a million new classes, exact search: factors of the grid / continuous "
         "(`results/paper/parts/million.jsonl.gz`)", join(million, 3), ""],
        [f"twelve tasks on a CPU, accuracy, {name_seeds(SEEDS)}", join(small["dcl-plus"], 3), "0.85"],
        ["the same, plain dcl", join(small["dcl"], 3), "0.85"],
    )  # fmt: skip


def costs(rows: Committed) -> str:
    """Return the table of seconds per task at the start and at the end of 500 tasks."""
    timed = rows.only("task_seconds", _TASK_SECONDS, "method")
    methods = ("lwf", "si", "ewc", "agem")
    start = [timed[method,]["seconds_per_task"] for method in methods]
    end = [timed[method,]["seconds_at_the_end"] for method in methods]
    er = rows.run("paper/er-20k-seed0").costs
    start.append(statistics.mean(row["seconds"] for row in er[4:15]))
    end.append(statistics.mean(row["seconds"] for row in er[439:]))
    return table(
        ["", *methods, "er, 20,000 images", "target"],
        ["seconds per task at the start", *map(with_digits(3), start), "0.6; replay 1.0"],
        ["at the end", *map(with_digits(3), end), "1.1 times the start"],
    )


def rendering(rows: Committed) -> str:
    """Return the table of speed and exactness of the renderers, with targets."""
    cpu = rows.lines("render_cpu", "what", "size")
    gpu = rows.lines("render_gpu", "what", "size")
    core = [cpu["images/s, one core, grey uint8, against idsprites", s] for s in (64, 128, 256)]
    ratios = " / ".join(f"{row['value']:.0f}×" for row in core)
    cores = [cpu["two cores against one", size]["value"] for size in (64, 128, 256)]
    speeds = [gpu["images/s, GPU, grey float32", size]["value"] for size in (64, 128, 224)]
    hard = [gpu["images/s, GPU, grey float32, parity", size]["value"] for size in (64, 128, 224)]
    off = "pixels that differ, GPU against CPU, 10000 parity images"
    differing = [gpu[off, size]["value"] for size in (64, 128, 224)]
    outlines = cpu["outlines/s, one core, in batches", None]["value"]
    off_16 = cpu["levels of 255 off 16x16 samples a pixel, 1000 images at 64 px", None]
    off_64 = cpu["levels of 255 off 64x64 samples a pixel, 100 images at 64 px", None]
    off_gpu = gpu["levels of 255, GPU against CPU, 10000 images at 64 px", None]
    far = cpu["stream[10**9] to its first batch, against stream[0]", None]["value"]
    growth = cpu["memory growth over 10000 tasks, MB", None]["value"]
    imported = cpu["import everlearn, seconds", None]
    torch = "with torch" if imported["loads_torch"] else "no torch"
    return table(
        ["what", "measured", "target"],
        ["images per second on one core against `idsprites`, grey, 64 / 128 / 256 pixels",
         f"{ratios} ({rounded([row['ours'] for row in core], -3)})", "25×"],
        ["two cores against one, 64 / 128 / 256 pixels",
         " / ".join(f"{value:.2f}×" for value in cores), "1.7×"],
        ["outlines per second, one core", rounded([outlines], -2), "20,000"],
        ["images per second on the H200, float, 64 / 128 / 224 pixels",
         " / ".join(f"{value / 1e6:.2g} M" for value in speeds), "10 M / 3 M / 1 M"],
        ["CPU against 16 × 16 samples per pixel, 1,000 images, levels of 255",
         f"mean {off_16['value']:.3f}, max {off_16['max']:.2f} (see below)", "0.5, 4"],
        ["CPU against 64 × 64 samples per pixel, 100 images",
         f"mean {off_64['value']:.3f}, max {off_64['max']:.2f}", ""],
        ["images with hard edges per second on the H200, float, 64 / 128 / 224 pixels",
         " / ".join(f"{value / 1e6:.2g} M" for value in hard), "10 M at 64 pixels"],
        ["pixels that differ on the GPU and on the CPU, hard edges, 10,000 images of each size",
         " / ".join(str(value) for value in differing), "0"],
        ["GPU against CPU, 10,000 images",
         f"mean {off_gpu['value']:.4f}, max {off_gpu['max']:.0f}", "0.1, 2"],
        ["`stream[10**9]` to its first batch against `stream[0]`", f"{far:.2f}×", "1.2×"],
        ["memory growth over 10,000 tasks", f"{growth:.0f} MB", "20 MB"],
        ["`import everlearn`", f"{imported['value']:.2f} s, {torch}", "0.2 s"],
    )  # fmt: skip


def _mean_scores(group: Group) -> dict[Protocol, float]:
    """Return the one-shot accuracies after 200 tasks, mean over seeds."""
    by_seed = scores_by_seed(group, 200)
    return {key: sum(values.values()) / len(values) for key, values in by_seed.items()}


def _lowest(rows: Committed, mode: str) -> list[float]:
    """Return the lowest one-shot accuracy over seeds, by number of classes."""
    scores = [one_shot_scores(run, 200) for run in rows.dcl_plus.runs]
    return [min(score[mode, "grid", n] for score in scores) for n in PUBLISHED[mode]]
