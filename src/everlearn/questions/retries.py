"""Retries of a failed request: exponential backoff, and the waits that a server asks for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from threading import Event
from typing import TYPE_CHECKING, TypeVar

from everlearn.core.validate import check_int, check_number
from everlearn.questions.http import ServerError

if TYPE_CHECKING:
    from tenacity import RetryCallState

_MAX_WAIT = 60.0  # seconds between two tries, unless the server asks for more
_MAX_RETRY_AFTER = 600.0  # seconds that a server may ask for; beyond that the user should know

T = TypeVar("T")


@dataclass(frozen=True)
class RetryPolicy:
    """How often to retry, and when.

    Args:
        retries: tries after the first.
        wait: seconds before the second try; each wait is twice the last. There is no jitter.
    """

    retries: int = 6
    wait: float = 1.0

    def __post_init__(self) -> None:
        """Check the numbers."""
        check_int(self.retries, "retries", 0, 1000)
        check_number(self.wait, "wait, in seconds,", 0, _MAX_WAIT)

    def backoff(self, tries: int, retry_after: float = 0.0) -> float:
        """Return the seconds to wait after a number of tries, at least what the server asks for."""
        # Beyond 2**20 every wait is the longest one, and 2**1000 would overflow a float.
        return max(retry_after, min(_MAX_WAIT, self.wait * 2.0 ** min(tries - 1, 20)))

    def call(self, attempt: Callable[[], T], stop: Event) -> tuple[T, int]:
        """Call until it succeeds; return the result and the number of tries.

        Args:
            stop: ends a wait at once, and with it the retries.
        """
        import tenacity

        failures: list[ServerError] = []

        def try_once() -> T:
            # tenacity tries once more when the event ends a wait; a stopped run sends no request.
            if failures and stop.is_set():
                raise failures[-1]
            try:
                return attempt()
            except ServerError as error:
                failures.append(error)
                raise

        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception(_is_worth_retrying),
            wait=self._wait,
            stop=tenacity.stop_any(
                tenacity.stop_after_attempt(self.retries + 1), tenacity.stop_when_event_set(stop)
            ),
            sleep=tenacity.sleep_using_event(stop),
            reraise=True,
        )
        try:
            return retrying(try_once), len(failures) + 1
        except ServerError as error:
            raise ServerError(_describe(error, len(failures)), retry=False) from None

    def _wait(self, state: RetryCallState) -> float:
        failure = state.outcome.exception() if state.outcome else None
        retry_after = failure.retry_after if isinstance(failure, ServerError) else 0.0
        return self.backoff(state.attempt_number, retry_after)


def _is_worth_retrying(error: BaseException) -> bool:
    return isinstance(error, ServerError) and error.retry and error.retry_after <= _MAX_RETRY_AFTER


def _describe(failure: ServerError, tries: int) -> str:
    if failure.retry_after > _MAX_RETRY_AFTER:
        return f"{failure}; it asks to wait {failure.retry_after:.0f} s"
    return f"no answer after {tries} tries: {failure}" if failure.retry else str(failure)
