"""One request to a server, and whether another try is worth it when it fails."""

from __future__ import annotations

import re
from email.utils import parsedate_to_datetime
from http.client import HTTPException
from time import time
from typing import IO, Any
from urllib.error import HTTPError, URLError
from urllib.request import HTTPRedirectHandler, Request, build_opener

from everlearn.choice.chat import quote, read_complaint
from everlearn.choice.secret import decode, hide

_LONGEST = 2**24  # bytes of a reply; a chat completion has a few thousand
_TIMEOUT, _TOO_MANY = 408, 429
_ADVICE = {
    301: "give the address that it moved to",
    302: "give the address that it moved to",
    307: "give the address that it moved to",
    308: "give the address that it moved to",
    400: "change --model, --max-tokens or --also so that the server takes it",
    401: "put a valid key into the environment variable that --key-env names",
    403: "put a key that may do this into the environment variable that --key-env names",
    404: "check --base-url, which often ends in /v1, and --model",
    413: "make questions of smaller pictures or of fewer choices",
}
_OTHERWISE = "check --base-url and --model"


class ServerError(OSError):
    """A server did not answer.

    Attributes:
        again: whether another try may help.
        after: seconds that the server asks to wait before it.
    """

    def __init__(self, words: str, again: bool, after: float = 0.0) -> None:
        """Say what happened."""
        super().__init__(words)
        self.again, self.after = again, after


class _Stay(HTTPRedirectHandler):
    """Follows no redirection: the key is for one server, and a redirected POST loses its body."""

    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: Any, newurl: str
    ) -> None:
        """Go nowhere."""
        return None


def post(url: str, body: bytes, key: str, timeout: float) -> Any:
    """Send JSON and return that of the reply; the key stands neither there nor in an error.

    Args:
        key: sent as a bearer token; none for a server that asks for none.
        timeout: seconds without a byte from the server.
    """
    text = _fetch(url, body, key, timeout)
    try:
        return decode(text, key)
    except ValueError:
        # What is cut off, or a page of a server that is busy or starts: neither costs tokens.
        words = f"{url}: the reply is no JSON: {quote(hide(text, key))}; check --base-url"
        raise ServerError(words, True) from None


def _fetch(url: str, body: bytes, key: str, timeout: float) -> str:
    """Send JSON and return the reply as it came, the key in it."""
    headers = {"Content-Type": "application/json", "User-Agent": "everlearn"}
    if key:
        headers["Authorization"] = f"Bearer {key}"
    try:
        with build_opener(_Stay).open(Request(url, body, headers), timeout=timeout) as reply:
            return _read(reply)
    except HTTPError as error:
        raise _refusal(url, error, key) from None
    except (OSError, HTTPException) as error:
        cause = error.reason if isinstance(error, URLError) else error
        words = quote(hide(_words(cause, timeout), key))
        raise ServerError(f"{url} did not answer: {words}", True) from None


def _refusal(url: str, error: HTTPError, key: str) -> ServerError:
    """Tell what a status other than success means."""
    reason = quote(hide(str(error.reason), key))
    words = f"{url} answered {error.code} ({reason}): {_complaint(error, key)}"
    if error.code in (_TIMEOUT, _TOO_MANY) or error.code >= 500:
        return ServerError(words, True, read_wait(error.headers.get("Retry-After")))
    return ServerError(f"{words}; {_ADVICE.get(error.code, _OTHERWISE)}", False)


def _complaint(error: HTTPError, key: str) -> str:
    try:
        text = _read(error)
    except (OSError, HTTPException):
        return "no more words"
    try:
        return read_complaint(decode(text, key))
    except ValueError:
        return quote(hide(text, key))


def _read(reply: IO[bytes]) -> str:
    return reply.read(_LONGEST).decode("utf-8-sig", errors="replace")


def read_wait(text: str | None) -> float:
    """Seconds to wait, from a Retry-After header: a number or a date; 0 for anything else."""
    told = text or ""
    try:
        date = re.fullmatch(r"[0-9]+([.][0-9]+)?", told) is None
        seconds = parsedate_to_datetime(told).timestamp() - time() if date else float(told)
    except (ValueError, OverflowError):
        return 0.0
    return max(0.0, seconds)


def _words(cause: object, timeout: float) -> str:
    if isinstance(cause, TimeoutError):
        return f"nothing came for {timeout:g} s"
    return str(cause) or type(cause).__name__
