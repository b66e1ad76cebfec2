"""Ask questions, some at a time; an answer is kept before the next question is asked in its place."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import islice
from threading import Event

from everlearn.border import check_whole
from everlearn.choice.answers import play
from everlearn.choice.players import Answer
from everlearn.choice.questions import Question
from everlearn.metrics import Row

# A question's row; the event tells that no one will ask again, so that a wait can end.
Ask = Callable[[Question, Event], Row]
Keep = Callable[[Row], Row]


def without_waiting(answer: Answer) -> Ask:
    """Ask someone who is here, as `play` does."""
    return lambda question, stop: next(play([question], answer))


def ask_all(
    questions: Iterable[Question], ask: Ask, keep: Keep, parallel: int = 1
) -> Generator[Row]:
    """Ask questions in threads and keep the answers in this one; rows come once they are kept.

    At an error or a stop nothing more is asked, and answers under way are waited for and kept.
    """
    todo, stop, asked = iter(questions), Event(), set[Future[Row]]()
    with ThreadPoolExecutor(check_whole(parallel, "parallel", 1, 256)) as pool:
        try:
            asked |= {pool.submit(ask, one, stop) for one in islice(todo, parallel)}
            while asked:
                for future in wait(asked, return_when=FIRST_COMPLETED).done:
                    asked.remove(future)
                    yield keep(future.result())
                    asked |= {pool.submit(ask, one, stop) for one in islice(todo, 1)}
        finally:
            stop.set()
            _keep_rest(asked, keep)


def _keep_rest(asked: set[Future[Row]], keep: Keep) -> None:
    for future in wait(asked).done:
        if future.exception() is None:
            keep(future.result())
