"""A model behind a server that speaks the chat-completions protocol."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from threading import Event
from time import monotonic
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from everlearn.core.validate import check_number
from everlearn.questions.answers import answer_all, parse_answer
from everlearn.questions.ask import Ask
from everlearn.questions.chat import Reply, make_request, read_reply
from everlearn.questions.folder import QuestionFolder
from everlearn.questions.http import ServerError, post_json
from everlearn.questions.question import Question
from everlearn.questions.question_set import question_key
from everlearn.questions.retries import RetryPolicy
from everlearn.rows import ChoiceRow

_RESERVED = ("model", "messages", "stream", "n")


class Answered(NamedTuple):
    """A reply, its seconds and the number of tries."""

    reply: Reply
    seconds: float
    tries: int


@dataclass(frozen=True)
class Endpoint:
    """A server and one of its models.

    Args:
        base_url: the address before /chat/completions.
        fields: further fields of a request.
        key: the API key; it is stored nowhere.
        timeout: seconds without a byte from the server.
    """

    base_url: str
    model: str
    fields: Mapping[str, Any]
    key: str = field(default="", repr=False)
    timeout: float = 60.0
    retry_policy: RetryPolicy = RetryPolicy()

    def __post_init__(self) -> None:
        """Check every field."""
        object.__setattr__(self, "base_url", check_url(self.base_url))
        object.__setattr__(self, "key", _check_key(self.key))
        check_number(self.timeout, "timeout, in seconds,", 0.001, 86_400)
        if not self.model:
            raise ValueError("model must be a name that the server knows, found none")
        wrong = sorted(set(self.fields) & set(_RESERVED))
        if wrong:
            raise ValueError(f"a request's {wrong[0]} is not yours to set; leave it out")

    def send(self, body: dict[str, Any], stop: Event) -> Answered:
        """Send a request, with retries."""
        data = json.dumps(body).encode()
        (reply, seconds), tries = self.retry_policy.call(lambda: self._try(data), stop)
        return Answered(reply, seconds, tries)

    def _try(self, data: bytes) -> tuple[Reply, float]:
        began = monotonic()
        url = f"{self.base_url}/chat/completions"
        answer = post_json(url, data, self.key, self.timeout)
        try:
            reply = read_reply(answer)
        except ValueError as error:
            message = f"{url}: {error}; check --base-url and --model"
            raise ServerError(message, retry=False) from None
        return reply, round(monotonic() - began, 3)


def ask_endpoint(endpoint: Endpoint, kept: QuestionFolder) -> Ask:
    """Return a function that asks a model about the pictures of a question."""

    def ask(question: Question, stop: Event) -> ChoiceRow:
        prompt = kept.messages(question.n)
        body = make_request(endpoint.model, prompt, kept.pictures(question), endpoint.fields)
        try:
            answered = endpoint.send(body, stop)
        except ServerError as error:
            raise ConnectionError(f"question {question_key(question)}: {error}") from None
        return _row(question, answered)

    return ask


def _row(question: Question, answered: Answered) -> ChoiceRow:
    reply, seconds, tries = answered
    [row] = answer_all([question], lambda question: parse_answer(reply.text, question.n))
    return {
        **row,
        "text": reply.text,
        "instead": reply.instead,
        "ended": reply.ended,
        "prompt_tokens": reply.prompt_tokens,
        "completion_tokens": reply.completion_tokens,
        "seconds": seconds,
        "tries": tries,
    }


def check_url(url: str) -> str:
    """Return an address without its last slash, or raise with what is allowed."""
    if "@" in url.partition("//")[2].partition("/")[0]:
        # Not quoted: an address is stored, and what stands before @ is a secret.
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
    """Return a key that a header can hold; an invalid one is not quoted."""
    if not _is_visible(key.strip()):
        raise ValueError("the key must be of visible ASCII characters; check what is in it")
    return key.strip()


def _is_visible(text: str) -> bool:
    """Return whether a text holds visible ASCII characters only."""
    return all("!" <= character <= "~" for character in text)
