"""One HTTP request to a model server, and whether a failed one is worth retrying."""

from __future__ import annotations

import re
from email.utils import parsedate_to_datetime
from importlib.util import find_spec
from time import time
from typing import TYPE_CHECKING, Any

from everlearn.questions.chat import quote, read_error_message
from everlearn.questions.secret import hide, parse_json

if TYPE_CHECKING:
    import httpx

_MAX_BYTES = 2**24  # of a reply; a chat completion has a few thousand
_RETRY = (408, 429)  # request timeout, too many requests; and every 5xx
_MOVED = "give the address that it moved to"
_ADVICE = {
    301: _MOVED,
    302: _MOVED,
    307: _MOVED,
    308: _MOVED,
    400: "change --model, --max-tokens or --also so that the server accepts it",
    401: "put a valid key into the environment variable that --key-env names",
    403: "put a key that may do this into the environment variable that --key-env names",
    404: "check --base-url, which often ends in /v1, and --model",
    413: "make questions of smaller pictures or of fewer choices",
}
_DEFAULT_ADVICE = "check --base-url and --model"


class ServerError(OSError):
    """A server did not answer.

    Attributes:
        retry: whether another try may help.
        retry_after: seconds that the server asks to wait before it.
    """

    def __init__(self, message: str, retry: bool, retry_after: float = 0.0) -> None:
        """Keep what a retry needs to know beside the message."""
        super().__init__(message)
        self.retry = retry
        self.retry_after = retry_after


def check_httpx() -> None:
    """Raise if the packages of the extra `ask` are missing, before any question is asked."""
    if find_spec("httpx") is None or find_spec("tenacity") is None:
        raise ImportError(
            "asking a server needs httpx and tenacity, which are missing; "
            "run: pip install 'everlearn[ask]'"
        )


def post_json(url: str, body: bytes, key: str, timeout: float) -> Any:
    """Send JSON and return the JSON of the reply, with the key removed from it.

    Args:
        key: sent as a bearer token; empty for a server that needs none.
        timeout: seconds without a byte from the server.
    """
    text = _post(url, body, key, timeout)
    try:
        return parse_json(text, key)
    except ValueError:
        # A reply cut short, or the page of a server that is busy or starting: retrying costs no tokens.
        message = f"{url}: the reply is not JSON: {quote(hide(text, key))}; check --base-url"
        raise ServerError(message, retry=True) from None


def _post(url: str, body: bytes, key: str, timeout: float) -> str:
    import httpx

    headers = {"Content-Type": "application/json", "User-Agent": "everlearn"}
    if key:
        headers["Authorization"] = f"Bearer {key}"
    try:
        # Redirects are not followed: the key is for one server, and a redirected POST loses its body.
        with httpx.stream("POST", url, content=body, headers=headers, timeout=timeout) as reply:
            text = _read(reply)
    except (httpx.HTTPError, OSError) as error:
        cause = quote(hide(_describe(error, timeout), key))
        raise ServerError(f"{url} did not answer: {cause}", retry=True) from None
    if reply.is_success:
        return text
    raise _refusal(url, reply, text, key)


def _read(reply: httpx.Response) -> str:
    """Read the reply up to a limit, so that a runaway server cannot fill the memory."""
    data = b""
    for chunk in reply.iter_bytes():
        data += chunk
        if len(data) >= _MAX_BYTES:
            break
    return data[:_MAX_BYTES].decode("utf-8-sig", errors="replace")


def _refusal(url: str, reply: httpx.Response, text: str, key: str) -> ServerError:
    """Explain a status other than success."""
    reason = quote(hide(reply.reason_phrase, key))
    message = f"{url} answered {reply.status_code} ({reason}): {_error_message(text, key)}"
    if reply.status_code in _RETRY or reply.is_server_error:
        return ServerError(message, True, parse_retry_after(reply.headers.get("Retry-After")))
    return ServerError(f"{message}; {_ADVICE.get(reply.status_code, _DEFAULT_ADVICE)}", False)


def _error_message(text: str, key: str) -> str:
    try:
        return read_error_message(parse_json(text, key))
    except ValueError:
        return quote(hide(text, key)) or "no message"


def parse_retry_after(text: str | None) -> float:
    """Return the seconds of a Retry-After header, a number or a date; 0 for anything else."""
    value = text or ""
    try:
        is_number = re.fullmatch(r"[0-9]+([.][0-9]+)?", value) is not None
        seconds = float(value) if is_number else parsedate_to_datetime(value).timestamp() - time()
    except (ValueError, OverflowError):
        return 0.0
    return max(0.0, seconds)


def _describe(error: Exception, timeout: float) -> str:
    import httpx

    if isinstance(error, httpx.TimeoutException):
        return f"nothing came for {timeout:g} s"
    if isinstance(error, httpx.ProtocolError):
        # Behind the colon stands what the server sent, escaped so that `hide` could miss the key.
        return str(error).partition(":")[0]
    return str(error) or type(error).__name__
