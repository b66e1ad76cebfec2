"""Chat completions, the protocol that many servers of models speak: a request, and a reply read."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from everlearn.choice.prompt import Message

_SHOWN = 300  # characters of a server's words in a message


class Reply(NamedTuple):
    """What a model said.

    Attributes:
        ended: why it stopped, as the server tells it; "length": it may say no more.
        prompt_tokens: how many it read, None where the server does not tell.
        completion_tokens: how many it wrote, likewise.
    """

    text: str
    ended: str | None
    prompt_tokens: int | None
    completion_tokens: int | None


def make_request(
    model: str, said: Iterable[Message], pictures: Mapping[str, bytes], fields: Mapping[str, Any]
) -> dict[str, Any]:
    """The body of a request: all messages with their PNG pictures in them, and other fields."""
    return {"model": model, "messages": [_message(one, pictures) for one in said], **fields}


def read_reply(data: str) -> Reply:
    """Read the body of a reply, or say that it is none."""
    try:
        reply = json.loads(data)
        choice = reply["choices"][0]
        text, usage = choice["message"].get("content"), reply.get("usage") or {}
        counts = [_whole(usage.get(name)) for name in ("prompt_tokens", "completion_tokens")]
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        raise ValueError(f"the reply is no chat completion: {quote(data)}") from None
    if not isinstance(text, str | None):
        raise ValueError(f"the content of a reply must be a text, found {quote(data)}")
    ended = choice.get("finish_reason")
    return Reply(text or "", ended if isinstance(ended, str) else None, *counts)


def read_complaint(data: str) -> str:
    """What a server says is wrong: the message within its JSON, or the whole text."""
    try:
        found = json.loads(data)
        found = found.get("error", found)
        found = found if isinstance(found, str) else found["message"]
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return quote(data)
    return quote(str(found))


def quote(text: str) -> str:
    """The beginning of a text on one line."""
    words = " ".join(text.split())
    return words if len(words) <= _SHOWN else f"{words[:_SHOWN]} ..."


def _message(message: Message, pictures: Mapping[str, bytes]) -> dict[str, Any]:
    if not message.pictures:
        return {"role": message.role, "content": message.text}
    shown = [
        {"type": "image_url", "image_url": {"url": _data_url(pictures[name])}}
        for name in message.pictures
    ]
    return {"role": message.role, "content": [{"type": "text", "text": message.text}, *shown]}


def _data_url(png: bytes) -> str:
    return f"data:image/png;base64,{b64encode(png).decode()}"


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) else None
