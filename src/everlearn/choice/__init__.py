"""Multiple choice: which canonical picture shows the shape of a query, and players that answer."""

from everlearn.choice.answers import NO_ANSWER, parse_answer, play
from everlearn.choice.asking import Ask, ask_all, without_waiting
from everlearn.choice.endpoint import Endpoint, asking
from everlearn.choice.folder import QuestionFolder
from everlearn.choice.making import write_questions
from everlearn.choice.patience import Patience
from everlearn.choice.players import Answer, Pixels, Player, Recall, guessing, looking
from everlearn.choice.prompt import Message, messages, picture_names
from everlearn.choice.questions import Drawn, Question, questions
from everlearn.choice.record import Record, recording
from everlearn.choice.search import Search
from everlearn.choice.sets import QuestionSet
from everlearn.metrics import Tally, tally

__all__ = [
    "NO_ANSWER",
    "Answer",
    "Ask",
    "Drawn",
    "Endpoint",
    "Message",
    "Patience",
    "Pixels",
    "Player",
    "Question",
    "QuestionFolder",
    "QuestionSet",
    "Recall",
    "Record",
    "Search",
    "Tally",
    "ask_all",
    "asking",
    "guessing",
    "looking",
    "messages",
    "parse_answer",
    "picture_names",
    "play",
    "questions",
    "recording",
    "tally",
    "without_waiting",
    "write_questions",
]
