"""The numbers of the tables match hand calculations."""

from __future__ import annotations

import re

import pytest

from everlearn.metrics import aggregate, compare
from everlearn.report import Table, group_runs, make_tables, to_latex, to_markdown
from everlearn.report.page import render
from everlearn.runs.load import load_runs

ONE_SHOT = {
    "kind": "one-shot", "step": 15, "learned": 2, "mode": "standard", "factors": "grid",
    "classes": 10, "correct": 3, "total": 4,
}  # fmt: skip
OPEN_SET = {
    "kind": "open-set", "step": 15, "learned": 2, "known": [0.1, 0.2], "unknown": [0.8, 0.9],
    "correct": [1, 1],
}  # fmt: skip


@pytest.fixture
def tables(tmp_path):
    def make():
        return {table.title: table for table in make_tables(group_runs(load_runs(tmp_path)))}

    return make


def _cell(table: Table, column: str, row: int = 0) -> str:
    return table.rows[row][table.head.index(column)]


def test_the_summary_of_one_seed_matches_a_hand_calculation(write_run, tables):
    write_run("a")
    table = tables()["Summary"]
    assert _cell(table, "method") == "dcl"
    assert _cell(table, "seeds") == "1"
    # last row 6, 7, 10 of 10; best before: 9 and 8; right after learning: 9, 8, 10
    assert _cell(table, "average accuracy") == "0.767"
    assert _cell(table, "forgetting") == "0.200"  # (0.3 + 0.1) / 2
    assert _cell(table, "backward transfer") == "−0.200"
    assert _cell(table, "learning accuracy") == "0.900"
    # Wilson, 23 of 30, z = 1.96: (0.7667 + 0.0640) / 1.1280 -+ 0.1468
    assert _cell(table, "interval") == "0.591 to 0.882"


def test_costs_match_a_hand_calculation(write_run, tables):
    write_run("a")
    table = tables()["Cost"]
    assert _cell(tables()["Summary"], "stored") == "1.0 MB"
    assert _cell(table, "parameters") == "250,000"
    assert _cell(table, "steps") == "15"
    assert _cell(table, "images/s") == "200"  # 300 images in 1.5 s
    assert _cell(tables()["Summary"], "training") == "1.5 s"
    assert _cell(table, "evaluation") == "0.8 s"
    assert _cell(table, "peak memory") == "2.0 MB"


def test_the_interval_of_two_seeds_is_their_range(write_run, tables):
    write_run("a", seed=0, matrix=[[4]])
    write_run("b", seed=1, matrix=[[8]])
    table = tables()["Summary"]
    assert _cell(table, "average accuracy") == "0.600"
    assert _cell(table, "interval") == "0.400 to 0.800"
    assert "two seeds" in table.note
    assert "Wilson" not in table.note


def test_three_seeds_have_students_interval(write_run, tables):
    for seed, right in enumerate((4, 6, 8)):
        write_run(f"{seed}", seed=seed, matrix=[[right]])
    spread = aggregate([0.4, 0.6, 0.8])
    # by hand: 0.6 -+ 4.303 * 0.2 / sqrt(3); no accuracy exceeds 1
    assert spread.low == pytest.approx(0.6 - 4.3027 * 0.2 / 3**0.5, abs=1e-4)
    assert _cell(tables()["Summary"], "interval") == f"{spread.low:.3f} to 1.000"


def test_columns_without_a_number_are_left_out(write_run, tables):
    write_run("a")
    found = tables()
    assert set(found) == {"Summary", "Cost"}
    assert "stability gap" not in found["Summary"].head


def test_no_column_occurs_in_two_tables(write_run, tables):
    write_run("a", more=[ONE_SHOT, OPEN_SET])
    heads = [head for table in tables().values() for head in table.head[2:]]
    assert len(heads) == len(set(heads))


def test_one_shot_and_open_set_appear_where_measured(write_run, tables):
    write_run("a", more=[ONE_SHOT, OPEN_SET])
    write_run("b", "joint", more=[OPEN_SET])
    write_run("c", "ewc")
    table = tables()["One shot and open set"]
    assert sorted(row[0] for row in table.rows) == ["dcl", "joint"]
    rows = {row[0]: row[table.head.index("10 new, standard, grid")] for row in table.rows}
    assert rows == {"dcl": "0.750", "joint": "–"}
    assert _cell(table, "open-set AUROC") == "1.000"


def test_pairs_are_compared_over_shared_seeds(write_run, tables):
    for seed, (mine, other) in enumerate([(9, 5), (8, 6), (7, 1)]):
        write_run(f"a{seed}", seed=seed, matrix=[[mine]])
        write_run(f"b{seed}", "joint", seed=seed, matrix=[[other]])
    write_run("a9", seed=9, matrix=[[0]])
    (row,) = tables()["Paired differences"].rows
    found = compare({0: 0.9, 1: 0.8, 2: 0.7}, {0: 0.5, 1: 0.6, 2: 0.1})
    assert row[:3] == ["dcl − joint", "3", "+0.400"]
    assert row[3] == f"{found.spread.low:+.3f} to {found.spread.high:+.3f}".replace("-", "−")
    assert row[4:] == [f"{found.t_test:.3f}", "0.250"]  # 2 of 8 signs are as far from 0


def test_one_shared_seed_is_not_enough_for_a_comparison(write_run, tables):
    write_run("a")
    write_run("b", "joint")
    assert "Paired differences" not in tables()


def test_streams_of_other_lengths_are_not_compared(write_run, tables):
    for seed in (0, 1):
        write_run(f"a{seed}", seed=seed, scenario={"name": "class"})
        write_run(f"b{seed}", "joint", seed=seed, scenario={"name": "class"}, tasks=9)
    assert "Paired differences" not in tables()


def test_unfinished_runs_are_not_compared(write_run, tables):
    for seed in (0, 1):
        write_run(f"a{seed}", seed=seed)
        write_run(f"b{seed}", "joint", seed=seed, matrix=[[9]], finish=False)
    assert "Paired differences" not in tables()


HOSTILE = Table("T", ["method", "x_1"], [["a|b <i> & _c_ `d` $e$ \\ 100%\n~^#{}", "−1"]], "note")


def test_markdown_escapes_its_cells():
    lines = to_markdown(HOSTILE).splitlines()
    head, rule, row = lines[2:5]
    bare = [re.sub(r"\\.", "", line) for line in (head, rule, row)]
    assert [line.count("|") for line in bare] == [3, 3, 3]
    assert "<i>" not in row
    assert r"\_c\_ \`d\`" in row


def test_html_escapes_its_cells():
    text = render("tables.html.jinja", {"tables": [HOSTILE]})
    assert "<i>" not in text
    assert "a|b &lt;i&gt; &amp; _c_" in text


def test_latex_escapes_every_special_sign():
    row = to_latex(HOSTILE).splitlines()[5]
    assert row == (
        r"a$|$b $<$i$>$ \& \_c\_ `d` \$e\$ \textbackslash{} 100\% "
        r"\textasciitilde{}\textasciicircum{}\#\{\} & $-$1 \\"
    )


def test_latex_names_unknown_letters_by_code_point():
    words = to_latex(Table("T", ["é ≤ σ"], [["☃ ’"]], ""))
    assert r"é $\le$ $\sigma$ \\" in words
    assert "U+2603 ' " in words


def test_a_title_stays_inside_its_latex_comment():
    title = "a\r\n\x85\\input{x}"
    first, second = to_latex(HOSTILE._replace(title=title)).splitlines()[:2]
    assert first.startswith("% a ")
    assert second == r"\begin{tabular}{lr}"


@pytest.mark.parametrize("sign", ["[", "*"])
def test_a_latex_row_does_not_start_with_an_optional_argument(sign):
    assert f"\n{{{sign}}}2]" in to_latex(HOSTILE._replace(rows=[["a", "b"], [f"{sign}2]", "c"]]))


SENTENCES = HOSTILE._replace(text=True)


def test_sentences_wrap_and_are_left_aligned():
    assert r"\begin{tabular}{lp{0.80\textwidth}}" in to_latex(SENTENCES)
    assert to_markdown(SENTENCES).splitlines()[3] == "| --- | --- |"
    html = render("tables.html.jinja", {"tables": [SENTENCES]})
    assert '<table class="text stack">' in html
