"""What the paper says of VASE, beside what our rows show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from everlearn.experiments.found import runs_of
from everlearn.experiments.vase import ABLATIONS, PLAIN, VASE, label_of
from everlearn.experiments.vase_probes import shares_position
from everlearn.experiments.vase_read import average, exact, used
from everlearn.experiments.verdicts import listed, own, statement
from everlearn.report import Group
from everlearn.report.verdict import Verdict

OURS, BARE = label_of(VASE), label_of(PLAIN)
_MASKED = ("A", "SA", "DA")
_AHEAD, _WITHIN = 5.0, 3.0  # percent points
_LOWER = 0.8
_MOST_SEEDS, _TWO_OF_THREE = 0.8, 2 / 3
_MOST_USED = 16
_WHY = "accuracy of probes on codes, mean over environments before the last and over seeds"


def judge_ablations(changes: Mapping[str, float], best: Mapping[str, float]) -> list[Verdict]:
    """The orderings that the table of ablations rests on.

    Args:
        changes: of accuracy, percent points, by label.
        best: accuracies, percent, likewise.
    """
    pair, tops = _known(changes, (OURS, BARE)), _known(best, (OURS, BARE))
    masked = _known(changes, (*_MASKED, BARE))
    ahead = pair[OURS] - pair[BARE] >= _AHEAD if len(pair) == 2 else None
    near = abs(tops[OURS] - tops[BARE]) <= _WITHIN if len(tops) == 2 else None
    harm = all(masked[name] < masked[BARE] for name in _MASKED) if len(masked) == 4 else None
    return [
        _judge_first(changes, entangled=False),
        _judge_first(changes, entangled=True),
        statement("VASE loses 5 points less than CCI-VAE", listed(pair, 1), ahead, _WHY),
        statement("Their best accuracies are within 3 points", listed(tops, 1), near),
        statement("Masks without both others do harm", listed(masked, 1), harm, _WHY),
    ]


def tell_lowest(changes: Mapping[str, float]) -> Verdict:
    """How far accuracies had fallen at their lowest, whatever later environments gave back."""
    some = _known(changes, (BARE, "SD", OURS))
    return own("Change of accuracy, at its lowest", listed(some, 1))


def _judge_first(changes: Mapping[str, float], entangled: bool) -> Verdict:
    some = _known(changes, [label_of(name, entangled) for name in ABLATIONS])
    ours = label_of(VASE, entangled)
    others = [value for label, value in some.items() if label != ours]
    first = some[ours] > max(others) if len(some) == len(ABLATIONS) else None
    words = "entangled" if entangled else "disentangled"
    return statement(f"VASE forgets least, {words}", listed(some, 1), first, _WHY)


def _known(numbers: Mapping[str, float | None], labels: Sequence[str]) -> dict[str, float]:
    found = {label: numbers.get(label) for label in labels}
    return {label: value for label, value in found.items() if value is not None}


def judge_change(groups: Sequence[Group]) -> Verdict:
    """Whether VASE loses less than CCI-VAE, in percent points of accuracy."""
    changes = _known({group.label: average(group, "change") for group in groups}, (OURS, BARE))
    less = changes[OURS] > changes[BARE] if len(changes) == 2 else None
    words = "VASE loses less of past environments than CCI-VAE"
    return statement(words, listed(changes, 1), less, _WHY)


def judge_environments(groups: Sequence[Group]) -> Verdict:
    """Whether VASE finds environments, in four seeds of five at least."""
    right, total = exact([group for group in groups if group.label == OURS])
    words = "Environments are found exactly in 4 of 5 seeds"
    return statement(words, f"{right} of {total}", right >= _MOST_SEEDS * total if total else None)


def judge_errors(groups: Sequence[Group]) -> Verdict:
    """Whether the first environment is drawn better in the end, by a fifth at least."""
    ends = _known({group.label: average(group, "end") for group in groups}, (OURS, BARE))
    lower = ends[OURS] <= _LOWER * ends[BARE] if len(ends) == 2 else None
    words = "The error on the first environment ends a fifth lower with VASE than with CCI-VAE"
    return statement(words, listed(ends, 1), lower, "nats of an image")


def judge_latents(groups: Sequence[Group]) -> Verdict:
    """Whether VASE leaves latents to spare."""
    runs = runs_of([group for group in groups if group.label == OURS])
    counts = [count for run in runs if (count := used(run)) is not None]
    words = "16 latents of 24 at most are at work in the end"
    few = max(counts) <= _MOST_USED if counts else None
    return statement(words, ", ".join(map(str, counts)), few, "seed by seed")


def judge_sharing(groups: Sequence[Group]) -> Verdict:
    """Whether latents of position are shared, in two seeds of three at least."""
    runs = runs_of([group for group in groups if group.label == OURS])
    told = [shares for run in runs if (shares := shares_position(run)) is not None]
    words = "Two latents tell x and y wherever items move, and are masked where they stand still"
    enough = sum(told) >= _TWO_OF_THREE * len(told) if told else None
    return statement(words, f"in {sum(told)} of {len(told)} seeds", enough, "correlation over 0.8")
