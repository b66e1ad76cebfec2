"""A model behind an address that speaks chat completions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from threading import Event
from time import monotonic
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from everlearn.border import check_number
from everlearn.choice.answers import parse_answer, play
from everlearn.choice.asking import Ask
from everlearn.choice.chat import Reply, make_request, read_reply
from everlearn.choice.folder import QuestionFolder
from everlearn.choice.patience import Patience
from everlearn.choice.post import ServerError, post
from everlearn.choice.questions import Question
from everlearn.choice.sets import key as key_of
from everlearn.metrics import Row

_OURS = ("model", "messages", "stream", "n")


class Answered(NamedTuple):
    """A reply, how long it took and which try it was."""

    reply: Reply
    seconds: float
    tries: int


@dataclass(frozen=True)
class Endpoint:
    """A server and one of its models.

    Args:
        base_url: what comes before /chat/completions.
        fields: of a request besides model and messages.
        key: proves who asks; it is written nowhere.
        timeout: seconds without a byte from the server.
    """

    base_url: str
    model: str
    fields: Mapping[str, Any]
    key: str = field(default="", repr=False)
    timeout: float = 60.0
    patience: Patience = Patience()

    def __post_init__(self) -> None:
        """Check every field."""
        object.__setattr__(self, "base_url", check_url(self.base_url))
        object.__setattr__(self, "key", _check_key(self.key))
        check_number(self.timeout, "timeout, in seconds,", 0.001, 86_400)
        if not self.model:
            raise ValueError("model must be a name that the server knows, found none")
        wrong = sorted(set(self.fields) & set(_OURS))
        if wrong:
            raise ValueError(f"a request's {wrong[0]} is not yours to set; leave it out")

    def send(self, body: dict[str, Any], stop: Event) -> Answered:
        """Ask until there is a reply or no hope."""
        data = json.dumps(body).encode()
        (reply, seconds), tries = self.patience.insist(lambda: self._try(data), stop)
        return Answered(reply, seconds, tries)

    def _try(self, data: bytes) -> tuple[Reply, float]:
        began, url = monotonic(), f"{self.base_url}/chat/completions"
        answer = post(url, data, self.key, self.timeout)
        try:
            reply = read_reply(answer)
        except ValueError as error:
            words = f"{url}: {error}; check --base-url and --model"
            raise ServerError(words, False) from None
        return reply, round(monotonic() - began, 3)


def asking(endpoint: Endpoint, kept: QuestionFolder) -> Ask:
    """Answer questions by what a model says of their pictures."""

    def ask(question: Question, stop: Event) -> Row:
        said, pictures = kept.messages(question.n), kept.pictures(question)
        body = make_request(endpoint.model, said, pictures, endpoint.fields)
        try:
            answered = endpoint.send(body, stop)
        except ServerError as error:
            raise ConnectionError(f"question {key_of(question)}: {error}") from None
        return _row(question, answered)

    return ask


def _row(question: Question, answered: Answered) -> Row:
    reply, seconds, tries = answered
    [row] = play([question], lambda question: parse_answer(reply.text, question.n))
    return {**row, **reply._asdict(), "seconds": seconds, "tries": tries}


def check_url(url: str) -> str:
    """Return an address without its last slash, or say what is allowed."""
    if "@" in url.partition("//")[2].partition("/")[0]:
        # Not quoted: an address is kept on the disk, and what stands before @ is a secret.
        raise ValueError("base-url must hold no user and password; give a key by --key-env")
    try:
        parts = urlsplit(url)
        fits = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        fits = False
    if not fits or not _is_visible(url) or "?" in url or "#" in url:
        raise ValueError(f"base-url must read like http://localhost:8000/v1, found {url!r}")
    return url.rstrip("/")


def _check_key(key: str) -> str:
    """Return a key that a header can hold; it must not be quoted where it cannot."""
    if not _is_visible(key.strip()):
        raise ValueError("the key must be of visible ASCII characters; check what is in it")
    return key.strip()


def _is_visible(text: str) -> bool:
    """Whether a text is of ASCII letters, digits and signs alone."""
    return all("!" <= character <= "~" for character in text)
