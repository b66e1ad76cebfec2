"""Tables of accuracies in README.md and docs/results.md: functions of committed rows."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from cells import by_method, join, name_seeds, table
from committed import Committed

from everlearn.experiments.beyond import overview
from everlearn.experiments.dcl.ablations import open_set_ceilings
from everlearn.experiments.dcl.table1_one_shot import (
    PUBLISHED,
    Protocol,
    scores_by_seed,
)
from everlearn.experiments.framework.grids import GRIDS
from everlearn.experiments.framework.groups import format_number
from everlearn.experiments.framework.pages import summary_groups
from everlearn.experiments.framework.results_folder import ResultsFolder
from everlearn.experiments.framework.shared_trials import SEEDS, TABLE_TASKS
from everlearn.experiments.framework.trial import PAPER
from everlearn.experiments.framework.tuning import choose, describe_settings, scores
from everlearn.metrics import LEARNED
from everlearn.report import Group, Table, summary_table
from everlearn.report.tables.formats import to_markdown_rows
from everlearn.report.tables.protocol import did_not_learn, format_over_seeds

# Which rows of benchmarks/edges.py the page describes.
EDGES = {
    "what": "one shot by edges", "learner": "dcl-plus", "tasks": 150, "seed": 10, "size": 64,
    "classes": 1000, "total": 10_000,
}  # fmt: skip


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
        f"{group.label}, {format_over_seeds(group, 'learning_accuracy')}; its accuracy is "
        f"{format_over_seeds(group, 'average_accuracy')} after {TABLE_TASKS} tasks"
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
    names = ("correct", "ceiling", "true_map_fitted")
    lines = [
        [*key, *(f"{row[name] / row['total']:.3f}" for name in names)] for key, row in found.items()
    ]
    head = ("trained on", "tested on", "poses", "accuracy", "true map", "true map, fitted")
    return table(head, *lines)


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
        [
            "open set, area under the published curve",
            "0.92",
            *(format_number(area, 4) for area in areas),
        ],
        ["the same with true maps, images of 64 / 128 pixels", "", join(limits.values()), ""],
    )


def _mean_scores(group: Group) -> dict[Protocol, float]:
    """Return the one-shot accuracies after 200 tasks, mean over seeds."""
    by_seed = scores_by_seed(group, 200)
    return {key: sum(values.values()) / len(values) for key, values in by_seed.items()}
