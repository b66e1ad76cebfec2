"""How much of a batch is replayed: with real data more is better, with poor data less."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from everlearn.experiments.found import Found, runs_of
from everlearn.experiments.gnr import LABELS, NC, SHARED, SHARES, once, with_share
from everlearn.experiments.gnr_modes import FINAL
from everlearn.experiments.read import lines, mean, points
from everlearn.experiments.trial import PAPER, SMALL, Settings, Trial
from everlearn.experiments.verdicts import listed, statement
from everlearn.metrics import whole
from everlearn.report import Group
from everlearn.report.chapter import Chapter
from everlearn.report.lines import Line
from everlearn.report.verdict import Verdict

if TYPE_CHECKING:
    from everlearn.experiments.lab import Lab

TITLE, SOURCE = "How much to replay", "Graffieti et al. 2022"
CLAIM = "Real data serve best as half of a batch; poor data as 10 to 30 %, and more of them harms."


def _trials(scale: str) -> tuple[Trial, ...]:
    some = [with_share(scale, mode, share) for mode in SHARED[scale] for share in SHARES[scale]]
    return (once(NC[scale].trial("none")), *some)


SETTINGS = {scale: Settings(_trials(scale)) for scale in (SMALL, PAPER)}
COST = {SMALL: "1 minute", PAPER: "4 minutes, with the extractor"}
_POOR = 0.3
# Groups of one mode by their share of a batch; 0 is no replay.
Sweep = Mapping[float, Group]


def run(lab: Lab) -> None:
    """Let all learn."""
    lab.learn(lab.settings(SETTINGS).trials)


def figure(found: Found) -> Chapter:
    """Accuracy at the end against the share, a line a mode."""
    trials = found.settings(SETTINGS).trials
    modes = dict.fromkeys(trial.settings["mode"] for trial in trials[1:])
    sweeps = {mode: _sweep(found, trials, mode) for mode in modes}
    drawn = [_line(mode, sweep) for mode, sweep in sweeps.items() if len(sweep) > 1]
    caption = "Accuracy on all classes at the end, new classes, one seed; 0 is no replay."
    figures = lines(drawn, "gnr-share", "% of a batch", "accuracy", caption)
    verdicts = [_judge(mode, sweep) for mode, sweep in sweeps.items()]
    runs = runs_of(found.groups(trials))
    return Chapter(figures, [], [], verdicts, runs, found.missing(trials))


def _sweep(found: Found, trials: tuple[Trial, ...], mode: str) -> Sweep:
    of_mode = {trial.settings["share"]: trial for trial in trials if trial.settings["mode"] == mode}
    found_of = {
        share: group
        for share, trial in {0.0: trials[0], **of_mode}.items()
        for group in found.groups([trial])
    }
    return {share: group for share, group in found_of.items() if mean(group, FINAL) is not None}


def _line(mode: str, sweep: Sweep) -> Line:
    ends = [whole(group.runs[0].rows) for group in sweep.values()]
    counts = [(int(end.right[-1]), int(end.total[-1])) for end in ends]
    return points(LABELS[mode], f"gnr {mode}", [100 * share for share in sweep], counts)


def _judge(mode: str, sweep: Sweep) -> Verdict:
    """Where a mode is best, of the shares above 0, of which there must be two."""
    is_poor = not mode.endswith("od")
    words = f"{LABELS[mode]} is best {'at 30 % or less' if is_poor else 'above 30 %'}"
    ends = {share: mean(group, FINAL) or 0.0 for share, group in sweep.items() if share}
    ours = listed({f"{round(100 * share)} %": value for share, value in ends.items()})
    best = max(ends, key=lambda share: ends[share], default=0.0)
    holds = (best <= _POOR) == is_poor if len(ends) > 1 else None
    return statement(words, ours, holds, "accuracy on all classes at the end, one seed")
