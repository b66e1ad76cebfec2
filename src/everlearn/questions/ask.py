"""Ask questions in parallel; each answer is stored before its thread asks the next question."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from itertools import islice
from threading import Event, Lock

from everlearn.core.validate import check_int
from everlearn.questions.answers import answer_all
from everlearn.questions.players import Answer
from everlearn.questions.question import Question
from everlearn.rows import ChoiceRow

# Returns the row of a question; the event ends all waits.
Ask = Callable[[Question, Event], ChoiceRow]
Keep = Callable[[ChoiceRow], ChoiceRow]


def ask_locally(answer: Answer) -> Ask:
    """Wrap a player of this process, which never waits."""
    return lambda question, stop: next(answer_all([question], answer))


def ask_all(
    questions: Iterable[Question], ask: Ask, keep: Keep, parallel: int = 1
) -> Generator[ChoiceRow]:
    """Ask questions in threads that store their answers at once; yield the rows after that.

    After an error or an interrupt nothing more is pending; pending answers are awaited and stored.
    """
    remaining = iter(questions)
    stop = Event()
    writing = Lock()

    # Stored here and not by the main thread, which Ctrl-C may interrupt at any line.
    def answer(question: Question) -> ChoiceRow:
        row = ask(question, stop)
        with writing:
            return keep(row)

    with ThreadPoolExecutor(check_int(parallel, "parallel", 1, 256)) as pool:
        try:
            pending = {pool.submit(answer, one) for one in islice(remaining, parallel)}
            while pending:
                done, pending = wait(pending, return_when=FIRST_COMPLETED)
                for future in done:
                    yield future.result()
                    pending |= {pool.submit(answer, one) for one in islice(remaining, 1)}
        finally:
            stop.set()
