"""Who answers questions: a table of players, each made of what was typed."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from everlearn.cli.messages import one_line

if TYPE_CHECKING:
    from everlearn.learner import HasMemory, Learner
    from everlearn.questions import Answer, Ask, QuestionFolder


class PlayerOptions(NamedTuple):
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


class Player(NamedTuple):
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


def make_player(player: str, kept: QuestionFolder, typed: PlayerOptions) -> Player:
    """Find a player by name and make it ready."""
    if player not in PLAYERS:
        raise ValueError(f"unknown player {one_line(player)!r}; known: {', '.join(PLAYERS)}")
    _check_options(player, typed)
    player_ready = PLAYERS[player](kept, typed)
    settings = {"player": player, **player_ready.settings, "set_sha256": kept.digest}
    return player_ready._replace(settings=settings)


def _random(kept: QuestionFolder, typed: PlayerOptions) -> Player:
    from everlearn.questions import at_random

    return _local_player("random", {"seed": typed.seed}, at_random(typed.seed))


def _pixels(kept: QuestionFolder, typed: PlayerOptions) -> Player:
    from everlearn.questions import NearestPixels, by_pictures

    return _local_player("pixels", {}, by_pictures(NearestPixels()))


def _search(kept: QuestionFolder, typed: PlayerOptions) -> Player:
    from dataclasses import asdict

    from everlearn.questions import AffineSearch, by_pictures

    return _local_player("search", asdict(AffineSearch()), by_pictures(AffineSearch()))


def _learner(kept: QuestionFolder, typed: PlayerOptions) -> Player:
    from everlearn.questions import LearnerPlayer, by_pictures
    from everlearn.runs import Run
    from everlearn.runs.folder import CHECKPOINT
    from everlearn.runs.launch import load_learner
    from everlearn.training.device import gpu_name

    folder = _need(typed.run, "learner", "--run, the folder of a run")
    learner = load_learner(folder, typed.device)
    method = Run.open(folder).settings["method"]
    memory_learner = _check_learner(learner, method, kept)
    settings = {"method": method, "checkpoint_sha256": _sum(folder / CHECKPOINT)}
    player = _local_player(
        folder.resolve().name, settings, by_pictures(LearnerPlayer(memory_learner), learner.device)
    )
    return player._replace(gpu=gpu_name(learner.device))


def _endpoint(kept: QuestionFolder, typed: PlayerOptions) -> Player:
    from everlearn.questions import Endpoint, RetryPolicy, ask_endpoint
    from everlearn.questions.http import check_httpx

    check_httpx()

    endpoint = Endpoint(
        _need(typed.base_url, "endpoint", "--base-url, such as http://localhost:8000/v1"),
        _need(typed.model, "endpoint", "--model, a name that the server knows"),
        _fields(typed.max_tokens, typed.also),
        os.environ.get(typed.key_env, ""),
        typed.timeout,
        RetryPolicy(typed.retries, typed.wait),
    )
    settings = {
        "base_url": endpoint.base_url,
        "model": endpoint.model,
        "request": endpoint.fields,
        "prompt_sha256": kept.prompt_digest,
    }
    return Player(endpoint.model, settings, ask_endpoint(endpoint, kept), typed.parallel)


PLAYERS: dict[str, Callable[[QuestionFolder, PlayerOptions], Player]] = {
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
        raise ValueError(f"--name must hold letters or digits, found {one_line(name)!r}")
    return found


def _local_player(name: str, settings: dict[str, Any], answer: Answer) -> Player:
    from everlearn.questions import ask_locally

    return Player(name, settings, ask_locally(answer))


def _check_options(player: str, typed: PlayerOptions) -> None:
    owners = {"run": "learner", "base_url": "endpoint", "model": "endpoint"}
    for option, owner in owners.items():
        if getattr(typed, option) is not None and player != owner:
            name = option.replace("_", "-")
            raise ValueError(f"--{name} is for the player {owner}, not {player}; leave it out")
    if typed.parallel != 1 and player != "endpoint":
        raise ValueError(f"--parallel is for the player endpoint, not {player}; leave it out")


def _need(value: Any, player: str, option: str) -> Any:
    if value is None:
        raise ValueError(f"the player {player} needs {option}")
    return value


def _check_learner(learner: Learner, method: str, kept: QuestionFolder) -> HasMemory:
    """Return a learner whose exemplars fit the questions, or raise."""
    from everlearn.learner import HasMemory

    if not isinstance(learner, HasMemory):
        raise ValueError(
            f"{method} has no exemplars to choose from; use a run of dcl, dcl-plus or contrastive"
        )
    found = tuple(learner.memory.shape)
    expected = kept.set.canvas.shape
    if found != expected:
        raise ValueError(
            f"the learner knows pictures of (channels, height, width) {found}, and the questions "
            f"have {expected}; make questions for it: everlearn ask make --size {found[1]} "
            f"--channels {found[0]}"
        )
    return learner


def _fields(max_tokens: int, also: str) -> dict[str, Any]:
    """Fields of a request: ours, changed by those typed; null leaves one out."""
    try:
        typed = json.loads(also)
    except ValueError as error:
        raise ValueError(f"--also must be JSON, found {one_line(also)!r}: {error}") from None
    if not isinstance(typed, dict):
        raise ValueError(f'--also must read like {{"temperature": 1}}, found {one_line(also)!r}')
    fields = {"temperature": 0, "max_tokens": max_tokens, **typed}
    return {name: value for name, value in fields.items() if value is not None}


def _sum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
