"""Verdicts on the published claims about VASE, which several experiments share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from everlearn.experiments.framework.results_folder import runs_of
from everlearn.experiments.framework.verdicts import format_values, judge_claim, unpublished
from everlearn.experiments.vase.probe_figures import shares_position
from everlearn.experiments.vase.scores import count_exact, latents_used, mean_score
from everlearn.experiments.vase.trials import ABLATIONS, CCI_VAE, VASE, ablation_label
from everlearn.report import Group
from everlearn.report.verdict import Verdict

_VASE = ablation_label(VASE)
_CCI_VAE = ablation_label(CCI_VAE)
_MASKS_ONLY = ("A", "SA", "DA")
_MIN_LEAD = 5.0  # percent points
_MAX_DIFFERENCE = 3.0  # percent points
_MAX_ERROR_RATIO = 0.8
_MIN_EXACT = 0.8  # fraction of seeds
_MIN_SHARING = 2 / 3  # fraction of seeds
_MAX_LATENTS = 16
_WHY = "accuracy of probes on codes, mean over environments before the last and over seeds"


def judge_ablations(changes: Mapping[str, float], best: Mapping[str, float]) -> list[Verdict]:
    """Judge the orderings in the table of ablations.

    Args:
        changes: changes of accuracy in percent points, by label.
        best: best accuracies in percent, by label.
    """
    pair = _known(changes, (_VASE, _CCI_VAE))
    best_pair = _known(best, (_VASE, _CCI_VAE))
    masked = _known(changes, (*_MASKS_ONLY, _CCI_VAE))
    leads = pair[_VASE] - pair[_CCI_VAE] >= _MIN_LEAD if len(pair) == 2 else None
    similar = (
        abs(best_pair[_VASE] - best_pair[_CCI_VAE]) <= _MAX_DIFFERENCE
        if len(best_pair) == 2
        else None
    )
    harmful = (
        all(masked[name] < masked[_CCI_VAE] for name in _MASKS_ONLY) if len(masked) == 4 else None
    )
    return [
        _judge_least_forgetting(changes, entangled=False),
        _judge_least_forgetting(changes, entangled=True),
        judge_claim("VASE loses 5 points less than CCI-VAE", format_values(pair, 1), leads, _WHY),
        judge_claim(
            "Their best accuracies are within 3 points", format_values(best_pair, 1), similar
        ),
        judge_claim(
            "Masks without both other components do harm", format_values(masked, 1), harmful, _WHY
        ),
    ]


def report_lowest(changes: Mapping[str, float]) -> Verdict:
    """Report the change of accuracy at its lowest, whatever later environments restore."""
    selected = _known(changes, (_CCI_VAE, "SD", _VASE))
    return unpublished("Change of accuracy at its lowest", format_values(selected, 1))


def _judge_least_forgetting(changes: Mapping[str, float], entangled: bool) -> Verdict:
    known = _known(changes, [ablation_label(name, entangled) for name in ABLATIONS])
    vase = ablation_label(VASE, entangled)
    others = [value for label, value in known.items() if label != vase]
    least = known[vase] > max(others) if len(known) == len(ABLATIONS) else None
    kind = "entangled" if entangled else "disentangled"
    return judge_claim(f"VASE forgets least, {kind}", format_values(known, 1), least, _WHY)


def _known(values: Mapping[str, float | None], labels: Sequence[str]) -> dict[str, float]:
    selected = {label: values.get(label) for label in labels}
    return {label: value for label, value in selected.items() if value is not None}


def _known_scores(groups: Sequence[Group], name: str) -> dict[str, float]:
    return _known({group.label: mean_score(group, name) for group in groups}, (_VASE, _CCI_VAE))


def judge_change(groups: Sequence[Group]) -> Verdict:
    """Judge whether VASE loses less accuracy than CCI-VAE."""
    changes = _known_scores(groups, "accuracy_change")
    less = changes[_VASE] > changes[_CCI_VAE] if len(changes) == 2 else None
    claim = "VASE loses less of past environments than CCI-VAE"
    return judge_claim(claim, format_values(changes, 1), less, _WHY)


def judge_environments(groups: Sequence[Group]) -> Verdict:
    """Judge whether VASE infers the environments exactly in at least four of five seeds."""
    exact, total = count_exact([group for group in groups if group.label == _VASE])
    claim = "Environments are inferred exactly in 4 of 5 seeds"
    holds = exact >= _MIN_EXACT * total if total else None
    return judge_claim(claim, f"{exact} of {total}", holds)


def judge_errors(groups: Sequence[Group]) -> Verdict:
    """Judge whether VASE reconstructs the first environment better at the end, by at least 20 %."""
    errors = _known_scores(groups, "final_error")
    lower = errors[_VASE] <= _MAX_ERROR_RATIO * errors[_CCI_VAE] if len(errors) == 2 else None
    claim = "The final error on the first environment is 20 % lower with VASE than with CCI-VAE"
    return judge_claim(claim, format_values(errors, 1), lower, "nats per image")


def judge_latents(groups: Sequence[Group]) -> Verdict:
    """Judge whether VASE leaves latents unused."""
    runs = runs_of([group for group in groups if group.label == _VASE])
    counts = [count for run in runs if (count := latents_used(run)) is not None]
    claim = "At most 16 of 24 latents are used at the end"
    holds = max(counts) <= _MAX_LATENTS if counts else None
    return judge_claim(claim, ", ".join(map(str, counts)), holds, "by seed")


def judge_sharing(groups: Sequence[Group]) -> Verdict:
    """Judge whether environments share latents of position in at least two of three seeds."""
    runs = runs_of([group for group in groups if group.label == _VASE])
    sharing = [shares for run in runs if (shares := shares_position(run)) is not None]
    claim = "Two latents encode x and y wherever items move, and are masked where items do not"
    holds = sum(sharing) >= _MIN_SHARING * len(sharing) if sharing else None
    return judge_claim(
        claim, f"in {sum(sharing)} of {len(sharing)} seeds", holds, "correlation above 0.8"
    )
