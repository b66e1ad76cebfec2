"""The chat-completions protocol: build a request and read a reply."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from everlearn.questions.prompt import Message

_MAX_QUOTED = 300  # characters of a server's reply in an error message


class Reply(NamedTuple):
    """What a model replied.

    Attributes:
        instead: what the reply held in place of text, such as a refusal.
        ended: the finish reason that the server gives; "length": the token limit was reached.
        prompt_tokens: tokens read; None if the server does not say.
        completion_tokens: tokens written; None if the server does not say.
    """

    text: str
    instead: str | None
    ended: str | None
    prompt_tokens: int | None
    completion_tokens: int | None


def make_request(
    model: str, prompt: Iterable[Message], pictures: Mapping[str, bytes], fields: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the body of a request: all messages with their PNG pictures, and other fields."""
    return {"model": model, "messages": [_message(one, pictures) for one in prompt], **fields}


def read_reply(reply: Any) -> Reply:
    """Read the JSON of a reply, or raise if it is not a chat completion; a retry would not help."""
    try:
        # Content filters of servers reply without a choice, or with a choice of null.
        choice = reply["choices"][0] if reply["choices"] != [] else {"message": None}
        text = _text((choice["message"] or {}).get("content"))
    except (LookupError, TypeError, AttributeError):
        raise ValueError(
            f"the reply is not a chat completion: {read_error_message(reply)}"
        ) from None
    counts = [_count(reply, name) for name in ("prompt_tokens", "completion_tokens")]
    ended = choice.get("finish_reason")
    instead = None if text else _instead(choice["message"] or reply)
    return Reply(text, instead, ended if isinstance(ended, str) else None, *counts)


def read_error_message(reply: Any) -> str:
    """Return the error message within the JSON of a reply, or all of it."""
    found = reply.get("error", reply) if isinstance(reply, dict) else reply
    found = found.get("message") if isinstance(found, dict) else found
    return quote(found if isinstance(found, str) else _dump(reply))


def quote(text: str) -> str:
    """Return the beginning of a text as one line."""
    line = " ".join(text.split())
    return line if len(line) <= _MAX_QUOTED else f"{line[:_MAX_QUOTED]} ..."


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
    """Return the text of a message: its content, the texts among its parts, or nothing."""
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
