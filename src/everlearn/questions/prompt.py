"""The prompt: three messages as plain data that any transport can send."""

from __future__ import annotations

from typing import NamedTuple

from everlearn.questions.question import check_choices

_INSTRUCTION = (
    "You play a game about shapes. First you get a query: a picture of one shape. Then you get {n} "
    "numbered pictures, each of one shape, upright and in the middle. Exactly one of them shows the "
    "shape of the query. In the query that shape may be smaller, turned and elsewhere in the picture, "
    "but it is neither mirrored nor bent. Find that picture. Reply with its number, a whole number from "
    "0 to {last}, and write nothing else."
)
_QUERY = "This is the query."
_CHOICES = "These are the {n} pictures to choose from, in the order of their numbers, 0 to {last}."


class Message(NamedTuple):
    """One message.

    Attributes:
        role: "system" for the rules, "user" for the question.
        text: the text before the pictures.
        pictures: the names of the pictures to show, in order.
    """

    role: str
    text: str
    pictures: tuple[str, ...]


def picture_names(n: int) -> tuple[str, ...]:
    """Return the names of the query and the choices: "query", "choice-0", "choice-1", ..."""
    return ("query", *(f"choice-{place}" for place in range(check_choices(n))))


def messages(n: int) -> tuple[Message, Message, Message]:
    """Return instruction, query and choices of a question of n choices."""
    query, *choices = picture_names(n)
    return (
        Message("system", _INSTRUCTION.format(n=n, last=n - 1), ()),
        Message("user", _QUERY, (query,)),
        Message("user", _CHOICES.format(n=n, last=n - 1), tuple(choices)),
    )
