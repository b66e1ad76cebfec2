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
        instead: what came where there is no text, such as a refusal.
        ended: why it stopped, as the server tells it; "length": it may say no more.
        prompt_tokens: how many it read, None where the server does not tell.
        completion_tokens: how many it wrote, likewise.
    """

    text: str
    instead: str | None
    ended: str | None
    prompt_tokens: int | None
    completion_tokens: int | None


def make_request(
    model: str, said: Iterable[Message], pictures: Mapping[str, bytes], fields: Mapping[str, Any]
) -> dict[str, Any]:
    """The body of a request: all messages with their PNG pictures in them, and other fields."""
    return {"model": model, "messages": [_message(one, pictures) for one in said], **fields}


def read_reply(reply: Any) -> Reply:
    """Read the JSON of a reply, or say that it is none: another try would bring the same."""
    try:
        # Without a choice, or with one of null, nothing was said: filters of servers do that.
        choice = reply["choices"][0] if reply["choices"] != [] else {"message": None}
        text = _text((choice["message"] or {}).get("content"))
    except (LookupError, TypeError, AttributeError):
        raise ValueError(f"the reply is no chat completion: {read_complaint(reply)}") from None
    counts = [_count(reply, name) for name in ("prompt_tokens", "completion_tokens")]
    ended = choice.get("finish_reason")
    instead = None if text else _instead(choice["message"] or reply)
    return Reply(text, instead, ended if isinstance(ended, str) else None, *counts)


def read_complaint(reply: Any) -> str:
    """What a server says is wrong: the message within its JSON, or all of it."""
    found = reply.get("error", reply) if isinstance(reply, dict) else reply
    found = found.get("message") if isinstance(found, dict) else found
    return quote(found if isinstance(found, str) else _dump(reply))


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


def _text(content: Any) -> str:
    """What a message says: a text, the texts among its parts, or nothing."""
    if isinstance(content, list):
        # On lines of their own, so that the answers 0 and 1 are not read as 01.
        return "\n".join(part["text"] for part in content if part["type"] == "text")
    if not isinstance(content, str | None):
        raise TypeError(f"the content of a message must be a text, found {type(content)}")
    return content or ""


def _instead(found: dict[str, Any]) -> str:
    refusal = found.get("refusal")
    return f"refusal: {quote(refusal)}" if isinstance(refusal, str) else quote(_dump(found))


def _count(reply: dict[str, Any], name: str) -> int | None:
    usage = reply.get("usage")
    found = usage.get(name) if isinstance(usage, dict) else None
    return found if isinstance(found, int) else None


def _dump(found: Any) -> str:
    return json.dumps(found, ensure_ascii=False)
