"""Multiple choice: which canonical picture shows the shape of a query?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from everlearn.experiments.found import Found
from everlearn.experiments.learners import DCL_PLUS
from everlearn.experiments.read import points
from everlearn.experiments.trial import PAPER, SMALL, Settings, Trial
from everlearn.experiments.verdicts import listed, own
from everlearn.metrics import share
from everlearn.report.chapter import Chapter, Figure
from everlearn.report.chart import draw_lines
from everlearn.report.lines import Line
from everlearn.report.verdict import Verdict
from everlearn.results import Row

if TYPE_CHECKING:
    from everlearn.experiments.lab import Lab

TITLE, SOURCE = "Multiple choice", "Figure 6"
CLAIM = "GPT-4V is above chance for few choices only, and reliable for none."
# Enough to learn from; over 200 tasks it forgets, which is figure 7.
_CONTRASTIVE = Trial("contrastive-50", "contrastive", most=50)
SETTINGS = {
    SMALL: Settings((DCL_PLUS, _CONTRASTIVE), {"sizes": [2, 5, 10], "each": 20}),
    PAPER: Settings((DCL_PLUS, _CONTRASTIVE), {"sizes": list(range(2, 11)), "each": 100}),
}
COST = {SMALL: "1 minute", PAPER: "2 minutes, after the two runs"}
PLAYERS = {
    "random": "random",
    "pixels": "nearest pixels",
    "search": "affine search",
    "dcl-plus": "DCL+",
    "contrastive": "contrastive",
}


def run(lab: Lab) -> None:
    """Let every player answer the same questions."""
    settings = lab.settings(SETTINGS)
    lab.learn(settings.trials)
    for player in PLAYERS:
        numbers = {"player": player, **settings.numbers}
        lab.measure(_part(player), numbers, partial(_play, lab, player))


def figure(found: Found) -> Chapter:
    """Accuracy against the number of choices, a line a player."""
    tallies = {player: _tally(found.rows(_part(player))) for player in PLAYERS}
    known = {player: tally for player, tally in tallies.items() if tally}
    lines = [_line(player, tally) for player, tally in known.items()]
    words = "accuracy against the number of choices, by player"
    svg = [draw_lines(lines, "fig6", "choices", "accuracy", words)] if lines else []
    most = {PLAYERS[player]: _hardest(tally) for player, tally in known.items()}
    verdicts = [
        Verdict(
            CLAIM, "a hosted model", "not asked", "not comparable",
            "none can be reached from the machine that made these rows; `everlearn ask` asks any",
        ),
        own("Right among the most choices", listed(most)),
    ]  # fmt: skip
    missing = [_part(player) for player in PLAYERS if player not in known]
    figures = [
        Figure(one, "All players answered the same questions. Bands: Wilson's 95 % interval.")
        for one in svg
    ]
    origins = found.origins(*map(_part, PLAYERS))
    return Chapter(figures, [], [], verdicts, [], missing, "", origins)


def _part(player: str) -> str:
    return f"fig6-{player}"


def _play(lab: Lab, player: str) -> Iterator[Row]:
    from everlearn.choice import play, questions

    settings = lab.settings(SETTINGS)
    asked = questions(0, settings.numbers["sizes"], settings.numbers["each"], lab.base.canvas)
    return play(asked, _answer(lab, player))


def _answer(lab: Lab, player: str) -> Callable[[Any], int]:
    from everlearn.choice import Pixels, Recall, Search, guessing, looking

    if player == "random":
        return guessing(seed=0)
    rules = {"pixels": Pixels, "search": Search}
    if player in rules:
        return looking(rules[player]())
    names = {"dcl-plus": DCL_PLUS, "contrastive": _CONTRASTIVE}
    return looking(Recall(lab.learner(names[player])), lab.device)


def _tally(rows: Iterable[Row]) -> dict[int, tuple[int, int]]:
    """Right answers and all of them, for each number of choices."""
    found: dict[int, tuple[int, int]] = {}
    for row in rows:
        right, total = found.get(row["n"], (0, 0))
        found[row["n"]] = (right + (row["chosen"] == row["answer"]), total + 1)
    return dict(sorted(found.items()))


def _line(player: str, tally: dict[int, tuple[int, int]]) -> Line:
    return points(PLAYERS[player], player, list(tally), list(tally.values()))


def _hardest(tally: dict[int, tuple[int, int]]) -> float:
    return float(share(*tally[max(tally)]))
