"""Rows: the form in which all results are kept, one TypedDict for each kind of row.

A row is a plain dict that fits one line of JSON. It holds counts and sums; metrics divide them.
"""

from collections.abc import Iterable, Mapping
from functools import cache
from typing import (
    Annotated,
    Any,
    Literal,
    NotRequired,
    TypedDict,
    TypeVar,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

Kind = TypeVar("Kind", bound=Mapping[str, Any])
Tested = Annotated[int, "index of the task that the test images are from"]
Correct = Annotated[int, "images classified correctly"]
Total = Annotated[int, "images tested"]
Seed = Annotated[int, "seed of the stream and the learner"]
Numbers = list[float | None]


class _RunRow(TypedDict):
    step: Annotated[int, "optimizer steps since the start of the stream"]
    learned: Annotated[
        int, "index of the last task learned or being learned; -1 before any learning"
    ]
    split: NotRequired[
        Annotated[str, "val where validation images are evaluated instead of test images"]
    ]


class _CountRow(_RunRow):
    tested: Tested
    correct: Correct
    total: Total


class TestRow(_CountRow):
    """Test images of one task after learning another, among all classes seen."""

    kind: Literal["test"]


class WithinTaskRow(_CountRow):
    """The same, with the answers restricted to the classes of the tested task."""

    kind: Literal["within_task"]


class DiagonalRow(_CountRow):
    """A task right after it is learned, or the next one right before, on a small fixed subset."""

    kind: Literal["diagonal"]
    classes: NotRequired[
        Annotated[int, "of the next task: its classes, which the answers are restricted to"]
    ]
    answered: NotRequired[
        Annotated[int, "of the next task: images for which the learner named one of them"]
    ]


class ProbeRow(_CountRow):
    """The same as a test on a small fixed subset, while task `learned` is being learned."""

    kind: Literal["probe"]


class AllClassesRow(_RunRow):
    """Test images of all classes of the stream, seen or not."""

    kind: Literal["all_classes"]
    correct: Correct
    total: Total
    seen_correct: Annotated[int, "of the classes seen so far, images classified correctly"]
    seen_total: Annotated[int, "images of the classes seen so far"]


class ThetaRow(_RunRow):
    """Errors of the predicted affine maps."""

    kind: Literal["theta"]
    tested: Annotated[
        int, "index of the tested task; beyond the last one, a task that is never learned"
    ]
    squared_errors: Annotated[
        list[float], "sums of the squared errors of the six entries, row-major"
    ]
    total: Total


class OneShotRow(_RunRow):
    """Classification of new classes known from one exemplar each."""

    kind: Literal["one-shot"]
    mode: Annotated[
        str, "standard (among the new classes) or generalised (also among those stored)"
    ]
    factors: Annotated[str, "grid (as in training) or continuous (anywhere in the ranges)"]
    classes: Annotated[int, "number of new classes"]
    correct: Correct
    total: Total


class OpenSetRow(_RunRow):
    """Novelty scores of images of known and of unknown classes, from 0 to 1 (new)."""

    kind: Literal["open-set"]
    known: Annotated[list[float], "scores of images of known classes"]
    unknown: Annotated[list[float], "scores of images of unknown classes"]
    correct: Annotated[list[int], "for each known image, 1 if it was classified correctly"]


class CodesRow(_RunRow):
    """What probes that were trained on the learner's codes of a task read from codes of test images."""

    kind: Literal["codes"]
    tested: Tested
    correct: Correct
    total: Total
    squared_errors: Annotated[
        list[float] | None, "sums of the squared errors of x and of y; None where they do not vary"
    ]
    reconstruction_error: Annotated[
        float | None, "sum over images in nats; None for a learner that does not reconstruct"
    ]


class LatentsRow(_RunRow):
    """Every latent of the codes of a task's test images."""

    kind: Literal["latents"]
    tested: Tested
    environment: Annotated[
        int | None, "the environment that the learner inferred, if it infers any"
    ]
    kl: Annotated[Numbers, "mean KL from N(0, 1) in nats of each latent"]
    used: Annotated[list[int] | None, "1 for latents that the learner uses in that environment"]
    mask: Annotated[list[int] | None, "1 for latents that apply in that environment"]
    x: Annotated[
        Numbers | None, "correlation of each latent's mean with x; None where x does not vary"
    ]
    y: Annotated[
        Numbers | None, "correlation of each latent's mean with y; None where y does not vary"
    ]


class DisentanglementRow(_RunRow):
    """Disentanglement metrics of the codes of a task's test images, over all varying factors."""

    kind: Literal["disentanglement"]
    tested: Tested
    factors: Annotated[list[str], "names of the factors that vary"]
    mig: Annotated[float, "mutual information gap"]
    sap: Annotated[float, "separated attribute predictability"]
    modularity: Annotated[float, "modularity of Ridgeway and Mozer"]
    explicitness: Annotated[float, "explicitness of Ridgeway and Mozer"]
    disentanglement: Annotated[float, "DCI's disentanglement"]
    completeness: Annotated[float, "DCI's completeness"]
    informativeness: Annotated[float, "DCI's informativeness"]
    factor_vae: Annotated[float, "FactorVAE score"]
    beta_vae: Annotated[float, "β-VAE score"]


class TaskRow(_RunRow):
    """What a task cost; the last row of each task. Times differ from run to run."""

    kind: Literal["task"]
    images: Annotated[int, "training images, each as often as it was used"]
    seconds: Annotated[float, "time spent learning"]
    evaluation_seconds: Annotated[float, "time spent evaluating"]
    loss: Annotated[float | None, "mean training loss; None without steps"]
    host_memory: Annotated[int, "bytes in use by the process"]
    memory: Annotated[int, "bytes in use on the device"]
    peak_memory: Annotated[int, "most bytes in use on the device so far"]
    bytes: NotRequired[
        Annotated[dict[str, int], "after a test: bytes of each part of the learner's state"]
    ]
    parameters: NotRequired[Annotated[int, "after a test: numbers in the state of the net"]]
    diagnostics: NotRequired[
        Annotated[dict[str, float | None], "what a learner with `diagnostics()` reports, by name"]
    ]


class OriginRow(TypedDict):
    """Where the rows of a measurement come from; the first row of its file."""

    kind: Literal["origin"]
    settings: Annotated[Any, "what the measurement was made with"]
    runs: Annotated[dict[str, str], "SHA-256 of the done.json of each run it used, by folder"]
    commit: Annotated[str | None, "commit of the source"]
    dirty: Annotated[bool | None, "whether the source differed from that commit"]
    source_digest: NotRequired[Annotated[str, "SHA-256 of the package's source"]]
    command: Annotated[str, "command line"]
    date: Annotated[str, "UTC"]
    python: Annotated[str, "version"]
    everlearn: Annotated[str, "version"]
    numpy: Annotated[str | None, "version"]
    torch: Annotated[str | None, "version"]
    numba: Annotated[str | None, "version"]
    triton: Annotated[str | None, "version"]
    cpu: Annotated[str, "name"]
    cores: Annotated[int | None, "number of CPU cores"]
    gpu: Annotated[str | None, "name"]
    platform: Annotated[str, "operating system"]


class ChoiceRow(TypedDict):
    """One answer to a multiple-choice question."""

    kind: Literal["choice"]
    n: Annotated[int, "number of choices"]
    number: Annotated[int, "index of the question among those with n choices"]
    answer: Annotated[int, "index of the correct choice"]
    chosen: Annotated[int, "index of the choice made; -1 for none"]
    player: NotRequired[Annotated[str, "who answered"]]
    text: NotRequired[Annotated[str, "a model's reply"]]
    instead: NotRequired[Annotated[str | None, "what came instead of text, such as a refusal"]]
    ended: NotRequired[Annotated[str | None, "why a model stopped, as its server says"]]
    prompt_tokens: NotRequired[Annotated[int | None, "tokens read"]]
    completion_tokens: NotRequired[Annotated[int | None, "tokens written"]]
    seconds: NotRequired[Annotated[float, "time until the reply"]]
    tries: NotRequired[Annotated[int, "requests until the reply"]]


class PictureRow(TypedDict):
    """A picture for a report."""

    kind: Literal["picture"]
    caption: Annotated[str, "text below the picture"]
    png: Annotated[str, "base64 of the PNG file"]


class DigestRow(TypedDict):
    """A hash of the labels and factors of a task far down the stream."""

    kind: Literal["digest"]
    task: Annotated[int, "index of the task"]
    tables: Annotated[str, "SHA-256"]
    repeatable: Annotated[
        bool, "whether a second stream, read in another order, gave the same hash"
    ]


class CountRow(TypedDict):
    """Images of known classes taken for another class."""

    kind: Literal["count"]
    wrong: Annotated[int, "images classified wrongly"]
    total: Total


class OverlapRow(TypedDict):
    """How far apart pairs of shapes are."""

    kind: Literal["overlap"]
    what: Annotated[str, "mistaken (pairs taken for each other) or any"]
    mean: Annotated[float, "mean of 1 - intersection over union"]


class SeparabilityRow(TypedDict):
    """Classification by the nearest exemplar through the true affine map."""

    kind: Literal["separability"]
    classes: Annotated[int, "number of classes"]
    correct: Correct
    images: Annotated[int, "images tested"]
    alike: Annotated[
        list[float], "fractions of classes that overlap another by more than each limit"
    ]


class EqualImagesRow(TypedDict):
    """Test images that equal an exemplar in every pixel."""

    kind: Literal["equal_images"]
    seed: Seed
    equal: Annotated[int, "test images that equal an exemplar of their class"]
    other: Annotated[int, "test images that equal an exemplar of another class"]
    total: Total


class OneShotCeilingRow(TypedDict):
    """Classification as of a one-shot row, of images in canonical pose by their true maps."""

    kind: Literal["one-shot-ceiling"]
    seed: Seed
    size: Annotated[int, "side of the images, in pixels"]
    mode: Annotated[
        str, "standard (among the new classes) or generalised (also among those of the stream)"
    ]
    factors: Annotated[str, "grid (as in training) or continuous (anywhere in the ranges)"]
    classes: Annotated[int, "number of new classes"]
    correct: Correct
    total: Total


class OpenSetCeilingRow(TypedDict):
    """Novelty scores as of an open-set row, of images in canonical pose by their true maps."""

    kind: Literal["open-set-ceiling"]
    seed: Seed
    size: Annotated[int, "side of the images, in pixels"]
    known: Annotated[list[float], "scores of images of known classes"]
    unknown: Annotated[list[float], "scores of images of unknown classes"]


class MillionRow(TypedDict):
    """One-shot classification with a memory of a million classes."""

    kind: Literal["million"]
    classes: Annotated[int, "number of new classes"]
    memory_bytes: Annotated[int, "bytes of the exemplar memory"]
    factors: Annotated[str, "grid or continuous"]
    correct: Correct
    nearest: Annotated[int, "images classified correctly through the true affine map"]
    total: Total
    seconds: Annotated[float, "time to classify all images"]


class EditRow(TypedDict):
    """Accuracy before and after exemplars of the last task are deleted and restored."""

    kind: Literal["edit"]
    state: Annotated[str, "before, deleted or put back"]
    seconds: Annotated[float, "time of the edit"]
    exemplars: Annotated[int, "exemplars in memory"]
    forgotten: Annotated[list[int], "correct and total, of the deleted classes"]
    others: Annotated[list[int], "correct and total, of the other classes"]
    weights: Annotated[str, "hash of the learner's weights"]


class CrossingRow(TypedDict):
    """Where items are drawn when codes of one environment are decoded in another."""

    kind: Literal["crossing"]
    seed: Seed
    source: Annotated[str, "environment that the images are from"]
    target: Annotated[str, "environment that they are decoded in"]
    within: Annotated[float, "sum of squared distances to where items were, decoded in the source"]
    across: Annotated[float, "the same, decoded in the target"]
    any: Annotated[float, "the same, to where the items of other images were"]
    total: Total


class MixtureRow(TypedDict):
    """How likely each of two environments is for mixtures of their images."""

    kind: Literal["mixture"]
    seed: Seed
    by: Annotated[str, "errors (of reconstruction) or classifier"]
    context: Annotated[
        float, "fraction of the batch that is from the first (> 0) or second environment"
    ]
    weights: Annotated[list[float], "weights of the first environment's image in the mixture"]
    first: Annotated[list[float], "probability of the first environment at each weight"]
    second: Annotated[list[float], "probability of the second environment at each weight"]


class TrainingSetRow(TypedDict):
    """A probe trained on real or imagined codes, tested on moving items."""

    kind: Literal["training_set"]
    seed: Seed
    training_set: Annotated[str, "what the probe was trained on"]
    correct: Correct
    total: Total


class VariedLatentsRow(TypedDict):
    """The latents that imagination varies: used in another environment and masked in this one."""

    kind: Literal["varied_latents"]
    seed: Seed
    latents: Annotated[list[int], "their indices"]


# The rows of a run.
Row = (
    TestRow
    | WithinTaskRow
    | DiagonalRow
    | ProbeRow
    | AllClassesRow
    | ThetaRow
    | OneShotRow
    | OpenSetRow
    | CodesRow
    | LatentsRow
    | DisentanglementRow
    | TaskRow
)
# The rows of an experiment's measurements, which are no runs.
MeasurementRow = (
    OriginRow
    | ChoiceRow
    | PictureRow
    | DigestRow
    | CountRow
    | OverlapRow
    | SeparabilityRow
    | EqualImagesRow
    | OneShotCeilingRow
    | OpenSetCeilingRow
    | MillionRow
    | EditRow
    | CrossingRow
    | MixtureRow
    | TrainingSetRow
    | VariedLatentsRow
)

# Keys and kinds of rows as they were called before.
RENAMED_KEYS = {
    "right": "correct",
    "met_right": "seen_correct",
    "met_total": "seen_total",
    "squares": "squared_errors",
    "nats": "reconstruction_error",
    "notes": "diagnostics",
    "lesson": "training_set",
    "again": "repeatable",
}
RENAMED_KINDS = {
    "whole": "all_classes",
    "within": "within_task",
    "lesson": "training_set",
    "likeness": "overlap",
}


@cache
def kind_of(row_type: type[Any]) -> str:
    """Return the kind of a type of rows, as its rows say it: `kind_of(TestRow) == "test"`."""
    return str(get_args(get_type_hints(row_type)["kind"])[0])


def of_kind(rows: Iterable[Mapping[str, object]], row_type: type[Kind]) -> list[Kind]:
    """Keep the rows of one kind, in their order: `of_kind(rows, TestRow)`."""
    kind = kind_of(row_type)
    return cast("list[Kind]", [row for row in rows if row["kind"] == kind])


def split_of(rows: Iterable[Mapping[str, object]], place: str) -> str:
    """Return the split that rows were made from: test or val; raise where they are mixed."""
    found = sorted({str(row.get("split", "test")) for row in rows if row["kind"] != "task"})
    if len(found) > 1:
        raise ValueError(
            f"{place} has rows of test images and of validation images; keep them apart"
        )
    return found[0] if found else "test"


def check_names(rows: Iterable[Mapping[str, object]], place: object) -> None:
    """Raise where rows that were read from a file have no kind, or names that are no longer used."""
    for row in rows:
        kind = row.get("kind")
        if not isinstance(kind, str):
            raise ValueError(f"{place} has a row without a kind; put back a copy of the file")
        old = [(kind, RENAMED_KINDS[kind])] if kind in RENAMED_KINDS else []
        old += [(key, RENAMED_KEYS[key]) for key in row.keys() & RENAMED_KEYS.keys()]
        if old:
            raise ValueError(
                f"{place} has rows with {old[0][0]!r}, which is now called {old[0][1]!r}; rename it with "
                "benchmarks/migrate_results.py"
            )


def describe_rows(row_types: Any) -> str:
    """Return a Markdown table of every kind and key of a union of row types."""
    shared = get_type_hints(_RunRow, include_extras=True)
    lines = ["| kind | key | type | meaning |", "|---|---|---|---|"]
    if row_types == Row:
        lines.append("| all kinds | | | |")
        lines += [_describe_key(key, hint) for key, hint in shared.items()]
    for row_type in get_args(row_types):
        lines.append(f"| `{kind_of(row_type)}` | | | {row_type.__doc__} |")
        hints = get_type_hints(row_type, include_extras=True)
        lines += [_describe_key(k, hint) for k, hint in hints.items() if k not in {"kind", *shared}]
    return "\n".join(lines) + "\n"


def _describe_key(key: str, hint: Any) -> str:
    optional = get_origin(hint) is NotRequired
    value, meaning = get_args(get_args(hint)[0] if optional else hint)
    name = _name_type(value).replace("|", "\\|")
    return f"| | `{key}`{', optional' if optional else ''} | `{name}` | {meaning} |"


def _name_type(value: Any) -> str:
    return value.__name__ if isinstance(value, type) and not get_args(value) else str(value)
