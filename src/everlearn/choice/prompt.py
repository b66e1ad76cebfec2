"""What a model is told: three messages, plain data that any transport can send."""

from __future__ import annotations

from typing import NamedTuple

from everlearn.choice.questions import check_choices

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
        role: who speaks: "system" sets the rules, "user" asks.
        text: what is said, before the pictures.
        pictures: the names of the pictures to show, in order.
    """

    role: str
    text: str
    pictures: tuple[str, ...]


def picture_names(n: int) -> tuple[str, ...]:
    """The query and the choices by name: "query", "choice-0", "choice-1", ..."""
    return ("query", *(f"choice-{place}" for place in range(check_choices(n))))


def messages(n: int) -> tuple[Message, Message, Message]:
    """Instruction, query and choices of a question of n choices."""
    query, *choices = picture_names(n)
    return (
        Message("system", _INSTRUCTION.format(n=n, last=n - 1), ()),
        Message("user", _QUERY, (query,)),
        Message("user", _CHOICES.format(n=n, last=n - 1), tuple(choices)),
    )
