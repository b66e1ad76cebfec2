"""Who answers questions: a table of players, each made of what was typed."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from everlearn.cli.say import printable

if TYPE_CHECKING:
    from everlearn.choice import Answer, Ask, QuestionFolder


class Typed(NamedTuple):
    """What was typed about a player; None where nothing was."""

    seed: int
    run: Path | None
    device: str
    base_url: str | None
    model: str | None
    key_env: str
    max_tokens: int
    also: str
    timeout: float
    retries: int
    wait: float
    parallel: int


class Entrant(NamedTuple):
    """A player who is ready.

    Attributes:
        name: of its folder, unless another is typed.
        settings: what its answers follow from; other settings are another player.
        parallel: how many questions it is asked at once.
    """

    name: str
    settings: dict[str, Any]
    ask: Ask
    parallel: int = 1
    gpu: str | None = None


def enter(player: str, kept: QuestionFolder, typed: Typed) -> Entrant:
    """Find a player by name and make it ready."""
    if player not in PLAYERS:
        raise ValueError(f"unknown player {printable(player)!r}; known: {', '.join(PLAYERS)}")
    _check_options(player, typed)
    entrant = PLAYERS[player](kept, typed)
    settings = {"player": player, **entrant.settings, "set_sha256": kept.digest}
    return entrant._replace(settings=settings)


def _random(kept: QuestionFolder, typed: Typed) -> Entrant:
    from everlearn.choice import guessing

    return _here("random", {"seed": typed.seed}, guessing(typed.seed))


def _pixels(kept: QuestionFolder, typed: Typed) -> Entrant:
    from everlearn.choice import Pixels, looking

    return _here("pixels", {}, looking(Pixels()))


def _search(kept: QuestionFolder, typed: Typed) -> Entrant:
    from dataclasses import asdict

    from everlearn.choice import Search, looking

    return _here("search", asdict(Search()), looking(Search()))


def _learner(kept: QuestionFolder, typed: Typed) -> Entrant:
    from everlearn.choice import Recall, looking
    from everlearn.exam.costs import gpu_of
    from everlearn.results import Run
    from everlearn.results.folder import CHECKPOINT
    from everlearn.runs import load_learner

    folder = _need(typed.run, "learner", "--run, the folder of a run")
    learner: Any = load_learner(folder, typed.device)
    method = Run.open(folder).settings["method"]
    _check_learner(learner, method, kept)
    settings = {"method": method, "checkpoint_sha256": _sum(folder / CHECKPOINT)}
    own = _here(folder.resolve().name, settings, looking(Recall(learner), learner.device))
    return own._replace(gpu=gpu_of(learner.device))


def _endpoint(kept: QuestionFolder, typed: Typed) -> Entrant:
    from everlearn.choice import Endpoint, Patience, asking

    endpoint = Endpoint(
        _need(typed.base_url, "endpoint", "--base-url, such as http://localhost:8000/v1"),
        _need(typed.model, "endpoint", "--model, a name that the server knows"),
        _fields(typed.max_tokens, typed.also),
        os.environ.get(typed.key_env, ""),
        typed.timeout,
        Patience(typed.retries, typed.wait),
    )
    settings = {
        "base_url": endpoint.base_url,
        "model": endpoint.model,
        "request": endpoint.fields,
        "prompt_sha256": kept.prompt_digest,
    }
    return Entrant(endpoint.model, settings, asking(endpoint, kept), typed.parallel)


PLAYERS: dict[str, Callable[[QuestionFolder, Typed], Entrant]] = {
    "random": _random,
    "pixels": _pixels,
    "search": _search,
    "learner": _learner,
    "endpoint": _endpoint,
}


def folder_name(name: str) -> str:
    """A name that a folder can have: a model may be called org/model:size."""
    found = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip(".-")
    if not found:
        raise ValueError(f"--name must hold letters or digits, found {printable(name)!r}")
    return found


def _here(name: str, settings: dict[str, Any], answer: Answer) -> Entrant:
    from everlearn.choice import without_waiting

    return Entrant(name, settings, without_waiting(answer))


def _check_options(player: str, typed: Typed) -> None:
    owners = {"run": "learner", "base_url": "endpoint", "model": "endpoint"}
    for option, owner in owners.items():
        if getattr(typed, option) is not None and player != owner:
            told = option.replace("_", "-")
            raise ValueError(f"--{told} is for the player {owner}, not {player}; leave it out")
    if typed.parallel != 1 and player != "endpoint":
        raise ValueError(f"--parallel is for the player endpoint, not {player}; leave it out")


def _need(value: Any, player: str, option: str) -> Any:
    if value is None:
        raise ValueError(f"the player {player} needs {option}")
    return value


def _check_learner(learner: Any, method: str, kept: QuestionFolder) -> None:
    from everlearn.learner import Remembers

    if not isinstance(learner, Remembers):
        raise ValueError(
            f"{method} has no exemplars to choose from; use a run of dcl, dcl-plus or contrastive"
        )
    found, asked = tuple(learner.memory.shape), kept.set.canvas.shape
    if found != asked:
        raise ValueError(
            f"the learner knows pictures of (channels, height, width) {found}, and the questions "
            f"have {asked}; make questions for it: everlearn ask make --size {found[1]} "
            f"--channels {found[0]}"
        )


def _fields(max_tokens: int, also: str) -> dict[str, Any]:
    """Fields of a request: ours, changed by those typed; null leaves one out."""
    try:
        typed = json.loads(also)
    except ValueError as error:
        raise ValueError(f"--also must be JSON, found {printable(also)!r}: {error}") from None
    if not isinstance(typed, dict):
        raise ValueError(f'--also must read like {{"temperature": 1}}, found {printable(also)!r}')
    fields = {"temperature": 0, "max_tokens": max_tokens, **typed}
    return {name: value for name, value in fields.items() if value is not None}


def _sum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
