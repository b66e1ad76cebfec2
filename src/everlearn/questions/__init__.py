"""Multiple choice: which canonical picture shows the shape of a query, and players that answer."""

from everlearn.metrics import Tally, tally
from everlearn.questions.answers import NO_ANSWER, answer_all, parse_answer
from everlearn.questions.ask import Ask, ask_all, ask_locally
from everlearn.questions.endpoint import Endpoint, ask_endpoint
from everlearn.questions.folder import QuestionFolder
from everlearn.questions.players import (
    Answer,
    LearnerPlayer,
    NearestPixels,
    Player,
    at_random,
    by_pictures,
)
from everlearn.questions.prompt import Message, messages, picture_names
from everlearn.questions.question import DrawnQuestion, Question, questions
from everlearn.questions.question_set import QuestionSet
from everlearn.questions.record import Record, open_record
from everlearn.questions.retries import RetryPolicy
from everlearn.questions.search import AffineSearch
from everlearn.questions.write import write_questions

__all__ = [
    "NO_ANSWER",
    "AffineSearch",
    "Answer",
    "Ask",
    "DrawnQuestion",
    "Endpoint",
    "LearnerPlayer",
    "Message",
    "NearestPixels",
    "Player",
    "Question",
    "QuestionFolder",
    "QuestionSet",
    "Record",
    "RetryPolicy",
    "Tally",
    "answer_all",
    "ask_all",
    "ask_endpoint",
    "ask_locally",
    "at_random",
    "by_pictures",
    "messages",
    "open_record",
    "parse_answer",
    "picture_names",
    "questions",
    "tally",
    "write_questions",
]
