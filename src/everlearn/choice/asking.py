"""Ask questions, some at a time; an answer is kept before the next question is asked in its place."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from itertools import islice
from threading import Event, Lock

from everlearn.border import check_whole
from everlearn.choice.answers import play
from everlearn.choice.players import Answer
from everlearn.choice.questions import Question
from everlearn.metrics import Row

# Gives the row of a question; the event says that all is to stop, so that a wait can end.
Ask = Callable[[Question, Event], Row]
Keep = Callable[[Row], Row]


def without_waiting(answer: Answer) -> Ask:
    """Ask someone who is here, as `play` does."""
    return lambda question, stop: next(play([question], answer))


def ask_all(
    questions: Iterable[Question], ask: Ask, keep: Keep, parallel: int = 1
) -> Generator[Row]:
    """Ask questions in threads, each of which keeps its answer at once; rows come after that.

    At an error or a stop nothing more is asked, and answers under way are waited for and kept.
    """
    todo, stop, writing = iter(questions), Event(), Lock()

    # Written here and not by the main thread, which a stop by hand may interrupt at any line.
    def answer(question: Question) -> Row:
        row = ask(question, stop)
        with writing:
            return keep(row)

    with ThreadPoolExecutor(check_whole(parallel, "parallel", 1, 256)) as pool:
        try:
            asked = {pool.submit(answer, one) for one in islice(todo, parallel)}
            while asked:
                done, asked = wait(asked, return_when=FIRST_COMPLETED)
                for future in done:
                    yield future.result()
                    asked |= {pool.submit(answer, one) for one in islice(todo, 1)}
        finally:
            stop.set()
