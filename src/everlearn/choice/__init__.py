"""Multiple choice: which canonical picture shows the shape of a query, and players that answer."""

from everlearn.choice.answers import NO_ANSWER, Tally, parse_answer, play, tally
from everlearn.choice.players import Answer, Pixels, Player, Recall, guessing, looking
from everlearn.choice.prompt import Message, messages, picture_names
from everlearn.choice.questions import Drawn, Question, questions
from everlearn.choice.search import Search

__all__ = [
    "NO_ANSWER",
    "Answer",
    "Drawn",
    "Message",
    "Pixels",
    "Player",
    "Question",
    "Recall",
    "Search",
    "Tally",
    "guessing",
    "looking",
    "messages",
    "parse_answer",
    "picture_names",
    "play",
    "questions",
    "tally",
]
