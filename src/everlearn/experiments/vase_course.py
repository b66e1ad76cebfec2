"""VASE beside CCI-VAE through several environments: what figures 2 and 3 share, and traversals."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from everlearn.experiments.found import Found, runs_of
from everlearn.experiments.pictures import picture_row, pictures
from everlearn.experiments.trial import Settings, Trial
from everlearn.experiments.vase import note_data
from everlearn.experiments.vase_probes import mark_figures, probe_figures
from everlearn.report import Group, Table
from everlearn.report.chapter import Chapter
from everlearn.report.verdict import Verdict
from everlearn.results import Row

if TYPE_CHECKING:
    from everlearn.experiments.lab import Lab

# Of pictures of latents: images that an environment is found by, latents at most, and steps of each.
TRAVERSED = {"images": 256, "latents": 10, "steps": 7}
_REACH = 2.0
_PART = "-latents"


def learn_and_traverse(lab: Lab, trials: Sequence[Trial], part: str) -> None:
    """Let trials learn, where their data are, and draw what latents of the first do."""
    if not lab.lacks_data(trials):
        lab.learn(trials)
        lab.measure(part, TRAVERSED, lambda: traverse(lab, trials[0], **TRAVERSED), trials[:1])


def draw_chapter(
    found: Found,
    settings: dict[str, Settings],
    part: str,
    judges: Sequence[Callable[[Sequence[Group]], Verdict]],
    tabled: Callable[[Sequence[Group]], Table] | None = None,
) -> Chapter:
    """Curves, latents by environment, and traversals.

    Args:
        part: the measurement of latents, whose name figures begin with.
        judges: of the runs of every trial.
        tabled: a table of the runs of VASE.
    """
    trials, rows, name = found.settings(settings).trials, found.rows(part), part.removesuffix(_PART)
    groups = found.groups(trials)
    ours = [group for group in groups if group.method == "vase"]
    figures = probe_figures(groups, name) if groups else []
    figures += mark_figures(ours[0].runs[0], f"{name}-masks") if ours else []
    missing = [*found.missing(trials), *([] if rows else [part])]
    tables = [tabled(ours)] if tabled and ours else []
    verdicts = [judge(groups) for judge in judges]
    return Chapter(
        figures, tables, pictures(rows), verdicts, runs_of(groups), missing,
        note_data(missing, found.scale), found.origins(part),
    )  # fmt: skip


def traverse(lab: Lab, trial: Trial, images: int, latents: int, steps: int) -> Iterator[Row]:
    """A picture an environment: what is drawn as each latent that is used there goes from -2 to 2."""
    learner, stream = lab.learner(trial), lab.stream(trial)
    for task, name in zip(stream, stream.sequence, strict=False):
        shown = task.test.batch(slice(0, images), lab.device).images
        yield _traversal(learner, shown, name, latents, steps)


def _traversal(learner: Any, images: Any, name: str, latents: int, steps: int) -> Row:
    import torch

    from everlearn.exam.latents import divergence
    from everlearn.experiments.vase_sheets import draw_sheet

    place = learner.environment(images)
    mean, deviation = (part.detach() for part in learner.codes(images))
    nats = divergence(mean, deviation)
    some = learner.used(images).nonzero().flatten()
    chosen = some[nats[some].argsort(descending=True)][:latents].tolist()
    values = torch.linspace(-_REACH, _REACH, steps, device=mean.device)
    rows = {"image": images[:steps]}
    for latent in chosen:
        z = mean[:1].repeat(steps, 1)
        z[:, latent] = values
        rows[f"latent {latent}, {nats[latent]:.1f} nats"] = (
            learner.draw(z, place).sigmoid().detach()
        )
    sheet = draw_sheet({words: part.cpu().numpy() for words, part in rows.items()})
    return picture_row(_caption(name, int(place)), sheet)


def _caption(name: str, place: int) -> str:
    return (
        f"{name}, taken for environment {place + 1}: some images, and the first one as each latent that is "
        "used here goes from −2 to 2."
    )
