"""Every published number is recomputed from committed rows: README.md, docs/results.md and the report."""

from __future__ import annotations

import gzip
import json
import re
import shutil
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from everlearn.experiments.framework.pages import (
    summary_groups,
    write_drawn_report,
    write_scale,
)
from everlearn.experiments.framework.results_folder import ResultsFolder
from everlearn.report import LoadedRun

from ..conftest import import_script

ROOT = Path(__file__).parents[2]
PUBLISHED = import_script("published")
REDRAW = "run everlearn report results/paper --out docs/report"
FIRST_REPORTED_SEED = 10  # smaller ones were looked at during development


@pytest.mark.parametrize("page", PUBLISHED.ALL_PAGES)
def test_a_page_has_the_numbers_of_the_rows(published: ModuleType, rows: Any, page: str) -> None:
    text = (ROOT / page).read_text()
    assert published.update(page, text, rows) == text, "run python docs/published.py"


@pytest.mark.parametrize("page", PUBLISHED.PAGES)
def test_every_number_of_a_page_is_a_result_with_rows_or_listed_as_none(
    published: ModuleType, page: str
) -> None:
    advice = "name its rows, or list it, in docs/sentences.py"
    assert not published.unexplained(page, (ROOT / page).read_text()), advice


def test_the_report_is_the_one_of_the_rows(
    committed: ResultsFolder, drawn: Any, tmp_path: Path
) -> None:
    write_drawn_report(committed, drawn, tmp_path)
    found = read_report(ROOT / "docs" / "report")
    expected = read_report(tmp_path)
    assert found.keys() == expected.keys(), REDRAW
    assert [name for name in expected if found[name] != expected[name]] == [], REDRAW


def read_report(folder: Path) -> dict[str, bytes]:
    """Return the files of a report by name, with the folders of runs as a checkout names them."""
    here = f"{ROOT}/".encode()
    return {
        str(path.relative_to(folder)): path.read_bytes().replace(here, b"")
        for path in folder.rglob("*.*")
    }


def test_the_readme_calls_undecided_what_is(rows: Any) -> None:
    readme = " ".join((ROOT / "README.md").read_text().split())
    (verdict,) = rows.result("overview").verdicts
    assert ("three seeds do not decide" in readme) == (verdict.verdict == "undecided")


@pytest.mark.parametrize(
    ("start", "new"),
    [
        (r"\| ER, 20,000 \| \d \| ", "0.123"),  # of the summary
        (r"\| fraction of a step spent rendering \| ", "17.3"),
        ("from its run of ", "17.3"),
    ],
)
def test_a_wrong_number_is_replaced(published: ModuleType, rows: Any, start: str, new: str) -> None:
    text = (ROOT / "docs/results.md").read_text()
    wrong, places = re.subn(rf"({start})[\d.]+", rf"\g<1>{new}", text)
    assert places == 1
    assert wrong != text
    assert published.update("docs/results.md", wrong, rows) == text


def test_the_summary_names_methods_with_fewer_seeds_and_those_that_did_not_learn(
    published: ModuleType, tmp_path: Path
) -> None:
    for name in ("er-5k-seed11", "lwf-seed11"):
        shutil.copytree(ROOT / "results" / "paper" / name, tmp_path / "paper" / name)
    unlearned = tmp_path / "paper" / "lwf-seed11"
    content = gzip.decompress((unlearned / "rows.jsonl.gz").read_bytes())
    (unlearned / "rows.jsonl.gz").write_bytes(
        gzip.compress(re.sub(rb'"correct": ?\d+', b'"correct":1', content))
    )
    write_scale(tmp_path / "paper", "paper")
    found = published.blocks.BLOCKS["summary"](published.Committed(tmp_path), ["method;", "seeds"])
    assert [line for line in found.splitlines() if line.startswith("| ")][2:] == [
        "| ER, 5,000 | 1 |"
    ]
    text = " ".join(found.split("\n\n")[1].split())
    assert "Seed 11 so far: ER, 5,000; LwF. No run so far: joint; DCL+; DCL; ER, 20,000;" in text
    assert "Learning accuracy below 0.9: LwF, 0.010 (1 seed); its accuracy is 0." in text


@pytest.mark.parametrize(
    ("block", "name", "change"),
    [
        ("edges", "edges", {"tasks": 100}),
        ("edges", "edges", {"seed": 11}),
        ("costs", "task_seconds", {"preset": "toy"}),
    ],
)
def test_rows_of_other_conditions_are_left_out_and_repeated_ones_refused(
    published: ModuleType, tmp_path: Path, block: str, name: str, change: dict[str, Any]
) -> None:
    shutil.copytree(ROOT / "results/paper/er-20k-seed0", tmp_path / "paper" / "er-20k-seed0")
    write_scale(tmp_path / "paper", "paper")
    lines = (ROOT / f"results/{name}.jsonl").read_text().splitlines()
    table = published.blocks.BLOCKS[block]

    def tabulate(*more: dict[str, Any]) -> str:
        text = "".join(f"{line}\n" for line in [*lines, *map(json.dumps, more)])
        (tmp_path / f"{name}.jsonl").write_text(text)
        return table(published.Committed(tmp_path), [])

    first = json.loads(lines[0])
    assert tabulate({**first, **change, "correct": 1, "seconds_per_task": 17.0}) == tabulate()
    with pytest.raises(ValueError, match=f"{name}.jsonl has several rows of "):
        tabulate(first)


def test_only_nets_that_learned_hard_edges_with_the_named_seeds_are_pooled(
    published: ModuleType, tmp_path: Path
) -> None:
    def row(correct: int, seed: int = 13, trained_on: str = "hard") -> dict[str, Any]:
        return {
            "learner": "dcl-plus", "trained_on": trained_on, "seed": seed, "edges": "soft",
            "factors": "grid", "correct": correct, "true_map_fitted": 10, "total": 10,
        }  # fmt: skip

    kept = [row(9), row(6), row(1, seed=12), row(1, trained_on="soft")]
    (tmp_path / "edges.jsonl").write_text("".join(json.dumps(each) + "\n" for each in kept))
    write_scale(tmp_path / "paper", "paper")
    table = published.blocks.BLOCKS["edges-by-learner"]
    lines = table(published.Committed(tmp_path), ["edges", "13"]).splitlines()
    assert lines[2:] == ["| `dcl-plus` | 0.750 |", "| true maps, fitted | 1.000 |"]
    with pytest.raises(ValueError, match=r"unknown seed of edges: 14; known: 12, 13"):
        table(published.Committed(tmp_path), ["edges", "14"])


@pytest.mark.parametrize(
    ("block", "name"),
    [
        ("learning", "train_gpu"),
        ("rendering", "render_cpu"),
        ("rendering", "render_gpu"),
        ("fit", "fit"),
    ],
)
def test_a_repeated_row_of_a_benchmark_is_refused(
    published: ModuleType, tmp_path: Path, block: str, name: str
) -> None:
    for path in (ROOT / "results").glob("*.jsonl"):
        shutil.copy(path, tmp_path)
    write_scale(tmp_path / "paper", "paper")
    path = tmp_path / f"{name}.jsonl"
    with path.open("a") as file:
        file.write(f"{path.read_text().splitlines()[0]}\n")
    with pytest.raises(ValueError, match=f"{name}.jsonl has several rows of "):
        published.blocks.BLOCKS[block](published.Committed(tmp_path), [])


@pytest.mark.parametrize(
    "line",
    [
        "Ours is 3 times as fast.",
        "| ER | 0.123 |",
        "It takes\n17 seconds.",
        "−0.5 % less",
        "after 20 tasks",  # a setup that no page has
        "on all 1,500 tasks",
        "the target is 1.12",
    ],
)
def test_a_number_without_rows_is_found(published: ModuleType, line: str) -> None:
    found = published.unexplained("docs/results.md", f"Text on all 500 tasks.\n\n{line}\n")
    assert found == [re.sub(r"(?s).*\n", "", line)]


def test_a_sentence_that_is_gone_is_named(published: ModuleType, rows: Any) -> None:
    with pytest.raises(ValueError, match="must hold this once, found 0 times: '"):
        published.update("docs/results.md", "Another page.", rows)


def readme_runs(published: ModuleType, committed: ResultsFolder) -> list[LoadedRun]:
    """Return the runs behind the table of the README."""
    (table,) = re.findall(r"<!-- summary.*?<!-- end", (ROOT / "README.md").read_text(), re.DOTALL)
    groups = {group.label.replace("*", r"\*"): group for group in summary_groups(committed)}
    methods = re.findall(r"^\| (?!method|---)([^|]+?) \|", table, re.MULTILINE)
    assert methods
    return [run for method in methods for run in groups[method].runs]


def test_rows_of_the_readme_name_a_clean_commit_machine_command_and_a_fresh_seed(
    published: ModuleType, committed: ResultsFolder
) -> None:
    for run in readme_runs(published, committed):
        assert run.sessions, run.folder
        assert run.seed >= FIRST_REPORTED_SEED, run.folder
        for session in run.sessions:
            assert re.fullmatch("[0-9a-f]{40}", session["commit"] or ""), run.folder
            assert session["dirty"] is False, run.folder
            assert session["gpu"] or session["cpu"], run.folder
            assert session["command"], run.folder
