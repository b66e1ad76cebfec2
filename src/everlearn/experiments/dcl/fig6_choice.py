"""Figure 6: multiple choice. Which canonical picture shows the shape of a query?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING

from everlearn.experiments.framework.groups import line_figures, wilson_line
from everlearn.experiments.framework.results_folder import ResultsFolder, runs_of
from everlearn.experiments.framework.shared_trials import CONTRASTIVE, MEASURED
from everlearn.experiments.framework.trial import PAPER, SMALL, Settings
from everlearn.experiments.framework.verdicts import format_values, unpublished
from everlearn.metrics import Tally, tally
from everlearn.report.charts.accuracy_lines import Line
from everlearn.report.experiment import ExperimentResult
from everlearn.report.verdict import Verdict
from everlearn.rows import ChoiceRow, of_kind

if TYPE_CHECKING:
    from everlearn.experiments.framework.runner import Runner
    from everlearn.questions.question import Question

TITLE = "Multiple choice"
SOURCE = "Figure 6"
CLAIM = "GPT-4V is above chance only for few choices, and never reliable."
# 50 tasks are enough to learn from; over 200 tasks it forgets, which figure 7 shows.
_FIFTY = CONTRASTIVE._replace(name="contrastive-50", max_tasks=50, seeds=MEASURED[PAPER].seeds)
SETTINGS = {
    SMALL: Settings((MEASURED[SMALL], CONTRASTIVE), {"sizes": [2, 5, 10], "each": 20}),
    PAPER: Settings((MEASURED[PAPER], _FIFTY), {"sizes": list(range(2, 11)), "each": 100}),
}
COST = {SMALL: "1 minute", PAPER: "2 minutes, after the two runs"}
PLAYERS = {
    "random": "random",
    "pixels": "nearest pixels",
    "search": "affine search",
    "dcl-plus": "DCL+",
    "contrastive": "contrastive",
}
MEASUREMENTS = tuple(f"fig6-{player}" for player in PLAYERS)


def run(runner: Runner) -> None:
    """Let every player answer the same questions."""
    settings = runner.settings(SETTINGS)
    runner.run_trials(settings.trials)
    for player, measurement in zip(PLAYERS, MEASUREMENTS, strict=True):
        options = {"player": player, **settings.options}
        trials = [trial for trial in settings.trials if trial.method == player]
        runner.measure(measurement, options, partial(_play, runner, player), trials)


def figure(results: ResultsFolder) -> ExperimentResult:
    """Draw accuracy against the number of choices, also of the models that `everlearn ask` asked."""
    names = list(dict.fromkeys([*MEASUREMENTS, *results.measurements("fig6-")]))
    tallies = {
        name.removeprefix("fig6-"): tally(of_kind(results.rows(name), ChoiceRow)) for name in names
    }
    known = {player: counts for player, counts in tallies.items() if counts}
    figures = line_figures(
        [_line(player, counts) for player, counts in known.items()], "fig6", "choices", "accuracy",
        "All players answered the same questions. Bands: Wilson's 95 % interval.",
    )  # fmt: skip
    hardest = {_name(player): counts[max(counts)].accuracy for player, counts in known.items()}
    models = {name: value for name, value in hardest.items() if name not in PLAYERS.values()}
    verdicts = [
        _report_models(models),
        unpublished("Accuracy with the most choices", format_values(hardest)),
    ]
    trials = results.settings(SETTINGS).trials
    return ExperimentResult(
        figures,
        verdicts=verdicts,
        runs=runs_of(results.groups(trials)),
        missing=[*results.missing(trials), *results.unmeasured(*MEASUREMENTS)],
        note=_NOTE,
        measurements=results.origins(*names),
    )


def _report_models(accuracies: Mapping[str, float]) -> Verdict:
    """Report the accuracies of the models that were asked."""
    ours = format_values(accuracies) or "not asked"
    why = _OTHER_MODEL if accuracies else _NO_MODEL
    return Verdict(CLAIM, "GPT-4V", ours, "not comparable", why, measured=bool(accuracies))


_NO_MODEL = "the machine that made these rows reaches no model; `everlearn ask` asks any"
_OTHER_MODEL = "another model, asked by `everlearn ask`; accuracy with the most choices"
_NOTE = (
    "To add a model to the figure, copy the rows.jsonl that `everlearn ask answer_all` wrote to "
    "parts/fig6-NAME.jsonl."
)


def _play(runner: Runner, player: str) -> Iterator[ChoiceRow]:
    from everlearn.questions import answer_all, questions

    options = runner.settings(SETTINGS).options
    drawn = questions(0, options["sizes"], options["each"], runner.base.canvas)
    return answer_all(drawn, _answer(runner, player))


def _answer(runner: Runner, player: str) -> Callable[[Question], int]:
    from everlearn.learner import HasMemory
    from everlearn.questions import (
        AffineSearch,
        LearnerPlayer,
        NearestPixels,
        at_random,
        by_pictures,
    )

    if player == "random":
        return at_random(seed=0)
    searches = {"pixels": NearestPixels, "search": AffineSearch}
    if player in searches:
        return by_pictures(searches[player]())
    trials = runner.settings(SETTINGS).trials
    learner = runner.learner(next(trial for trial in trials if trial.method == player))
    assert isinstance(learner, HasMemory)
    return by_pictures(LearnerPlayer(learner), runner.device)


def _name(player: str) -> str:
    return PLAYERS.get(player, player)


def _line(player: str, counts: dict[int, Tally]) -> Line:
    return wilson_line(_name(player), player, list(counts), list(counts.values()))
