"""What DCL sees, and where it is wrong: shapes that are too much alike."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from everlearn.experiments.found import Found, runs_of
from everlearn.experiments.learners import DCL_PLUS
from everlearn.experiments.pictures import picture_row, pictures
from everlearn.experiments.trial import PAPER, SMALL, Settings
from everlearn.experiments.verdicts import own, statement
from everlearn.report.chapter import Chapter
from everlearn.results import Row

if TYPE_CHECKING:
    from everlearn.experiments.lab import Lab

TITLE, SOURCE = "Matches and mistakes", "Figure 10"
CLAIM = "Open-set mistakes are made between shapes that look alike."
SETTINGS = {
    SMALL: Settings((DCL_PLUS,), {"shown": 8, "classes": 20}),
    PAPER: Settings((DCL_PLUS,), {"shown": 12, "classes": 1000}),
}
COST = {SMALL: "seconds after the run", PAPER: "seconds after the run"}
PART = "fig10-mistakes"
PARTS = (PART,)
_CAPTIONS = {
    "right": "Test images of known shapes, normalised, and the exemplars found.",
    "taken": "Unseen shapes that look most like a known one: most surely taken for it.",
    "refused": "Known shapes that seem new: the two nearest exemplars are almost as near.",
    "wrong": "Known shapes taken for another.",
}


def run(lab: Lab) -> None:
    """Ask the learner of a run about known and new shapes, and keep the most telling images."""
    settings = lab.settings(SETTINGS)
    lab.learn(settings.trials)
    lab.measure(
        PART, dict(settings.numbers), lambda: _look(lab, **settings.numbers), settings.trials
    )


def figure(found: Found) -> Chapter:
    """The galleries."""
    rows = found.rows(PART)
    told = {row["what"]: row for row in rows if row["kind"] == "likeness"}
    ours = ", ".join(f"{what}: {row['mean']:.3f}" for what, row in told.items())
    nearer = told["mistaken"]["mean"] < told["any"]["mean"] if len(told) == 2 else None
    counts = [row for row in rows if row["kind"] == "count"]
    words = "; ".join(f"{row['wrong']} of {row['total']} images of known shapes" for row in counts)
    verdicts = [
        statement(
            "Mistaken shapes look alike", ours, nearer,
            "mean of 1 - intersection over union of two shapes",
        ),
        own("Known shapes taken for another", words),
    ]  # fmt: skip
    trials = found.settings(SETTINGS).trials
    missing = [*found.missing(trials), *([] if rows else [PART])]
    runs = runs_of(found.groups(trials))
    return Chapter([], [], pictures(rows), verdicts, runs, missing, "", found.origins(PART))


def _look(lab: Lab, shown: int, classes: int) -> Iterator[Row]:
    import torch

    from everlearn.exam.one_shot import new_classes, questions_of
    from everlearn.exam.open_set import known_questions
    from everlearn.exam.plan import spread

    trial = lab.settings(SETTINGS).trials[0]
    learner, stream = lab.learner(trial), lab.stream(trial)
    labels = learner.memory.labels
    chosen = [labels[place] for place in spread(len(labels), classes)]
    memory = learner.memory.part(chosen)
    known = _together(known_questions(stream, chosen, 2, lab.device))
    new = _together(
        questions_of(new_classes(stream, learner), len(chosen), 2 * len(chosen), lab.device)
    )
    sure, unsure = learner.match(known.images, memory, 2), learner.match(new.images, memory, 2)
    first, doubt = sure.labels[:, 0], sure.novelty
    wrong = (first != known.labels).nonzero().flatten()
    yield {"kind": "count", "wrong": len(wrong), "total": len(first)}
    right = (first == known.labels).nonzero().flatten()
    strange = right[doubt[right].argsort(descending=True)]
    taken = unsure.novelty.argsort()
    every = torch.tensor(spread(len(right), shown), device=right.device)
    yield from _gallery("right", learner, memory, known, right[every], first)
    yield from _gallery("taken", learner, memory, new, taken[:shown], unsure.labels[:, 0])
    yield from _gallery("refused", learner, memory, known, strange[:shown], first)
    yield from _gallery("wrong", learner, memory, known, wrong[:shown], first)
    yield from _likeness(
        stream, new.labels[taken[: 5 * shown]], unsure.labels[taken[: 5 * shown], 0]
    )


def _together(parts: Any) -> Any:
    from everlearn.exam.one_shot import join

    return join(list(parts))


def _gallery(
    what: str, learner: Any, memory: Any, asked: Any, rows: Any, found: Any
) -> Iterator[Row]:
    """A picture of some questions, where there are any."""
    from everlearn.report import gallery

    if not len(rows):
        return
    images, labels, names = asked.images[rows], asked.labels[rows].tolist(), found[rows].tolist()
    seen = (images, learner.normalise(images), memory.images(names))
    shown = [
        part.float().cpu().numpy() if part.is_floating_point() else part.cpu().numpy()
        for part in seen
    ]
    yield picture_row(_CAPTIONS[what], gallery(shown[0], shown[1], shown[2], labels, names))


def _likeness(stream: Any, new: Any, known: Any) -> Iterator[Row]:
    """How far apart shapes are that were taken for one another, and any two."""
    import numpy as np

    from everlearn.likeness import distances_to, masks
    from everlearn.shapes import outlines

    drawn = [
        masks(outlines(stream.seed, side.cpu().numpy(), stream.style).coefficients)
        for side in (new, known)
    ]
    pairs = np.array([distances_to(a, drawn[1]) for a in drawn[0]])
    yield {"kind": "likeness", "what": "mistaken", "mean": float(pairs.diagonal().mean())}
    yield {"kind": "likeness", "what": "any", "mean": float(pairs.mean())}
