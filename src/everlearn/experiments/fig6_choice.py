"""Multiple choice: which canonical picture shows the shape of a query?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from everlearn.experiments.found import Found, runs_of
from everlearn.experiments.learners import DCL_PLUS
from everlearn.experiments.read import lines, points
from everlearn.experiments.trial import PAPER, SMALL, Settings, Trial
from everlearn.experiments.verdicts import listed, own
from everlearn.metrics import Tally, tally
from everlearn.report.chapter import Chapter
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


PARTS = tuple(f"fig6-{player}" for player in PLAYERS)
_LEARNERS = {"dcl-plus": DCL_PLUS, "contrastive": _CONTRASTIVE}


def run(lab: Lab) -> None:
    """Let every player answer the same questions."""
    settings = lab.settings(SETTINGS)
    lab.learn(settings.trials)
    for player, part in zip(PLAYERS, PARTS, strict=True):
        numbers = {"player": player, **settings.numbers}
        trials = [_LEARNERS[player]] if player in _LEARNERS else []
        lab.measure(part, numbers, partial(_play, lab, player), trials)


def figure(found: Found) -> Chapter:
    """Accuracy against the number of choices, a line a player, also of those that `everlearn ask` asked."""
    parts = list(dict.fromkeys([*PARTS, *found.parts("fig6-")]))
    tallies = {part.removeprefix("fig6-"): tally(found.rows(part)) for part in parts}
    known = {player: counts for player, counts in tallies.items() if counts}
    figures = lines(
        [_line(player, counts) for player, counts in known.items()], "fig6", "choices", "accuracy",
        "All players answered the same questions. Bands: Wilson's 95 % interval.",
    )  # fmt: skip
    most = {_name(player): counts[max(counts)].accuracy for player, counts in known.items()}
    guests = {name: share for name, share in most.items() if name not in PLAYERS.values()}
    why = _ANOTHER if guests else _NONE_ASKED
    verdicts = [
        Verdict(CLAIM, "GPT-4V", listed(guests) or "not asked", "not comparable", why),
        own("Right among the most choices", listed(most)),
    ]
    trials = found.settings(SETTINGS).trials
    missing = [*found.missing(trials), *(part for part in PARTS if not found.rows(part))]
    runs = runs_of(found.groups(trials))
    return Chapter(figures, [], [], verdicts, runs, missing, _NOTE, found.origins(*parts))


_NONE_ASKED = "none can be reached from the machine that made these rows; `everlearn ask` asks any"
_ANOTHER = "another model, asked by `everlearn ask`; right among the most choices"
_NOTE = (
    "The answers of a model join the figure as parts/fig6-NAME.jsonl: the rows.jsonl that `everlearn ask "
    "play` wrote."
)


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
    return looking(Recall(lab.learner(_LEARNERS[player])), lab.device)


def _name(player: str) -> str:
    return PLAYERS.get(player, player)


def _line(player: str, counts: dict[int, Tally]) -> Line:
    return points(_name(player), player, list(counts), list(counts.values()))
