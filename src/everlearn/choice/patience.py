"""Another try after a failure: waits that double, and those that a server asks for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from threading import Event
from typing import TypeVar

from everlearn.border import check_number, check_whole
from everlearn.choice.post import ServerError

_LONGEST = 60.0  # seconds between two tries, unless the server asks for more
_TOO_LONG = 600.0  # what a server may ask for; its user should know of more

T = TypeVar("T")


@dataclass(frozen=True)
class Patience:
    """How often to try again, and when.

    Args:
        retries: tries after the first.
        wait: seconds before the second try; each wait is twice the last. Nothing is random.
    """

    retries: int = 6
    wait: float = 1.0

    def __post_init__(self) -> None:
        """Check the numbers."""
        check_whole(self.retries, "retries", 0, 1000)
        check_number(self.wait, "wait, in seconds,", 0, _LONGEST)

    def pause(self, tries: int, after: float = 0.0) -> float:
        """Seconds to wait after so many tries, when the server asks for some."""
        # Beyond 2**20 every wait is the longest one, and 2**1000 would be no float.
        return max(after, min(_LONGEST, self.wait * 2.0 ** min(tries - 1, 20)))

    def insist(self, attempt: Callable[[], T], stop: Event) -> tuple[T, int]:
        """Try until it works; return what came of it and the number of tries."""
        for tries in count(1):
            try:
                return attempt(), tries
            except ServerError as error:
                failure = error
            if not self._wait(failure, tries, stop):
                break
        raise ServerError(_words(failure, tries), False)

    def _wait(self, failure: ServerError, tries: int, stop: Event) -> bool:
        """Wait for the next try, if there is to be one."""
        seconds = self.pause(tries, failure.after)
        if not failure.again or tries > self.retries or seconds > _TOO_LONG:
            return False
        return not stop.wait(seconds)


def _words(failure: ServerError, tries: int) -> str:
    if failure.after > _TOO_LONG:
        return f"{failure}; it asks to wait {failure.after:.0f} s"
    return f"no answer after {tries} tries: {failure}" if failure.again else str(failure)
