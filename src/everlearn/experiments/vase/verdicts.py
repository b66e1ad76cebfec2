"""Verdicts on the published claims about VASE, which several experiments share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from everlearn.experiments.framework.results_folder import runs_of
from everlearn.experiments.framework.rule import (
    Values,
    lead_below,
    lead_of_share,
    lead_over,
    seeds_to_show,
)
from everlearn.experiments.framework.verdicts import format_means, judge_statement, unpublished
from everlearn.experiments.vase.probe_figures import shares_position
from everlearn.experiments.vase.scores import count_exact, latents_used, scores_by_seed
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


def judge_ablations(changes: Mapping[str, Values], best: Mapping[str, Values]) -> list[Verdict]:
    """Judge the orderings in the table of ablations.

    Args:
        changes: changes of accuracy in percent points, by label and seed.
        best: best accuracies in percent, by label and seed.
    """
    vase = changes.get(_VASE, {})
    cci_vae = changes.get(_CCI_VAE, {})
    best_vase = best.get(_VASE, {})
    best_cci_vae = best.get(_CCI_VAE, {})
    similar = [
        lead_over(best_vase, best_cci_vae, -_MAX_DIFFERENCE),
        lead_over(best_cci_vae, best_vase, -_MAX_DIFFERENCE),
    ]
    harmful = [lead_over(cci_vae, changes.get(name, {})) for name in _MASKS_ONLY]
    return [
        _judge_least_forgetting(changes, entangled=False),
        _judge_least_forgetting(changes, entangled=True),
        judge_statement(
            "VASE loses 5 points less than CCI-VAE",
            _format(changes, (_VASE, _CCI_VAE)),
            [lead_over(vase, cci_vae, _MIN_LEAD)],
            _WHY,
        ),
        judge_statement(
            "Their best accuracies are within 3 points", _format(best, (_VASE, _CCI_VAE)), similar
        ),
        judge_statement(
            "Masks without both other components do harm",
            _format(changes, (*_MASKS_ONLY, _CCI_VAE)),
            harmful,
            _WHY,
            _MASKS_ONLY,
        ),
    ]


def report_lowest(changes: Mapping[str, Values]) -> Verdict:
    """Report the change of accuracy at its lowest, whatever later environments restore."""
    selected = _format(changes, (_CCI_VAE, "SD", _VASE))
    return unpublished("Change of accuracy at its lowest", selected)


def _judge_least_forgetting(changes: Mapping[str, Values], entangled: bool) -> Verdict:
    labels = [ablation_label(name, entangled) for name in ABLATIONS]
    vase = changes.get(ablation_label(VASE, entangled), {})
    others = [label for label in labels if label != ablation_label(VASE, entangled)]
    leads = [lead_over(vase, changes.get(label, {})) for label in others]
    kind = "entangled" if entangled else "disentangled"
    claim = f"VASE forgets least, {kind}"
    return judge_statement(claim, _format(changes, labels), leads, _WHY, others)


def _format(values: Mapping[str, Values], labels: Sequence[str]) -> str:
    """Format means over seeds, in the order of the labels."""
    return format_means({label: values.get(label, {}) for label in labels}, 1)


def _scores(groups: Sequence[Group], name: str) -> dict[str, Values]:
    """Return one score of VASE and CCI-VAE by seed."""
    found = {group.label: scores_by_seed(group, name) for group in groups}
    return {label: found.get(label, {}) for label in (_VASE, _CCI_VAE)}


def judge_change(groups: Sequence[Group]) -> Verdict:
    """Judge whether VASE loses less accuracy than CCI-VAE."""
    changes = _scores(groups, "accuracy_change")
    claim = "VASE loses less of past environments than CCI-VAE"
    lead = lead_over(changes[_VASE], changes[_CCI_VAE])
    return judge_statement(claim, _format(changes, list(changes)), [lead], _WHY)


def judge_environments(groups: Sequence[Group]) -> Verdict:
    """Judge whether VASE infers the environments exactly in at least four of five seeds, our bound."""
    exact, total = count_exact([group for group in groups if group.label == _VASE])
    claim = "Environments are inferred exactly in 4 of 5 seeds"
    lead = lead_of_share(exact, total, _MIN_EXACT)
    why = _describe_share(_MIN_EXACT, total)
    return judge_statement(claim, f"{exact} of {total}", [lead], why)


def judge_errors(groups: Sequence[Group]) -> Verdict:
    """Judge whether VASE reconstructs the first environment better at the end, by at least 20 %."""
    errors = _scores(groups, "final_error")
    bound = {seed: _MAX_ERROR_RATIO * error for seed, error in errors[_CCI_VAE].items()}
    claim = "The final error on the first environment is 20 % lower with VASE than with CCI-VAE"
    lead = lead_over(bound, errors[_VASE])
    return judge_statement(claim, _format(errors, list(errors)), [lead], "nats per image")


def judge_latents(groups: Sequence[Group]) -> Verdict:
    """Judge whether VASE leaves latents unused."""
    runs = runs_of([group for group in groups if group.label == _VASE])
    counts = {run.seed: count for run in runs if (count := latents_used(run)) is not None}
    claim = "At most 16 of 24 latents are used at the end"
    ours = ", ".join(map(str, counts.values()))
    return judge_statement(claim, ours, [lead_below(counts, _MAX_LATENTS)], "by seed")


def judge_sharing(groups: Sequence[Group]) -> Verdict:
    """Judge whether environments share latents of position in at least two of three seeds, our bound."""
    runs = runs_of([group for group in groups if group.label == _VASE])
    sharing = [shares for run in runs if (shares := shares_position(run)) is not None]
    claim = "Two latents encode x and y wherever items move, and are masked where items do not"
    ours = f"in {sum(sharing)} of {len(sharing)} seeds"
    lead = lead_of_share(sum(sharing), len(sharing), _MIN_SHARING)
    why = f"correlation above 0.8, in two of three seeds; {_describe_share(_MIN_SHARING, len(sharing))}"
    return judge_statement(claim, ours, [lead], why)


def _describe_share(share: float, seeds: int) -> str:
    """Name the interval of a share of seeds, and how many seeds could show the share, if these cannot."""
    needed = seeds_to_show(share)
    interval = "Wilson's interval of the share of seeds"
    return interval if seeds >= needed else f"{interval}; fewer than {needed} seeds cannot show it"
