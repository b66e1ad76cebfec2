"""A small set of questions, and a server that speaks chat completions and fails as it is told to."""

from __future__ import annotations

import base64
import json
import shutil
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from everlearn import Canvas
from everlearn.questions import Question, QuestionFolder, QuestionSet, write_questions

from ..conftest import call as call_line

SMALL = QuestionSet(seed=3, sizes=(2, 4), each=3, canvas=Canvas(size=16))
KEY = "sk-very-secret-0123456789"
FAST = ("--wait", "0.001", "--timeout", "10")
Act = Callable[["Handler"], None]


class Handler(BaseHTTPRequestHandler):
    """Answers one request."""

    server: Hall

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        question = self.server.find(body)
        self.server.requests.append((self.path, dict(self.headers), body))
        self.server.asked[question.n, question.number] += 1
        self.server.act(question, self.server.asked[question.n, question.number])(self)

    def send(self, status: int, data: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(data)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *words: Any) -> None:
        """Say nothing."""


class Hall(ThreadingHTTPServer):
    """A server that knows the questions.

    Attributes:
        act: what to do at a question and the number of times that it was asked, this one included.
        asked: how often each question was asked.
    """

    daemon_threads = True

    def __init__(self, kept: QuestionFolder) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.key = KEY
        self.url = f"http://127.0.0.1:{self.server_port}/v1"
        self.kept = kept
        self.asked: Counter[tuple[int, int]] = Counter()
        self.requests: list[tuple[str, dict[str, str], Any]] = []
        self.act: Callable[[Question, int], Act] = lambda question, times: say(question.answer)
        self.gate = threading.Event()
        self._by_query = {kept.pictures(q)["query"]: q for q in kept.set}

    def words(self, *more: object) -> list[str]:
        """Let the model of this server answer."""
        own = ("ask", "play", self.kept.folder, "endpoint", "--base-url", self.url, "--model", "m")
        return [str(word) for word in (*own, *FAST, *more)]

    def play(self, *more: object) -> tuple[int, str, str]:
        """Exit code, stdout and stderr of that."""
        return call_line(*self.words(*more))

    def rows(self) -> list[dict[str, Any]]:
        """The answers that are kept."""
        return read_answers(self.kept.folder, "m")

    def find(self, body: Any) -> Question:
        url = body["messages"][1]["content"][1]["image_url"]["url"]
        return self._by_query[base64.b64decode(url.partition(",")[2])]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Let a client go away, as one does that is killed or has no time."""


def say(text: object, **more: Any) -> Act:
    """Reply as a model that says this."""
    content = None if text is None else str(text)
    choice = {"message": {"role": "assistant", "content": content}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 100, "completion_tokens": 2}
    return raw(200, {"choices": [choice], "usage": usage, **more})


def raw(status: int, body: Any, **headers: str) -> Act:
    """Reply with a status and a body: JSON, or bytes as they are."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return lambda handler: handler.send(status, data, **headers)


def hang(handler: Handler) -> None:
    """Say nothing until the test is over."""
    handler.server.gate.wait(30)


def cut(handler: Handler) -> None:
    """Promise a body and close the connection in the middle of it."""
    handler.send(200, b'{"choices": [{"mess', Content_Length="1000")
    handler.close_connection = True


def drop(handler: Handler) -> None:
    """Close the connection without a word."""
    handler.close_connection = True


def read_answers(folder: Path, name: str) -> list[dict[str, Any]]:
    """The answers of a player; a line that is being written is none."""
    path = folder / "players" / name / "rows.jsonl"
    whole = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
    return [json.loads(line) for line in whole]


def babble(handler: Handler) -> None:
    """Say something that is not HTTP."""
    handler.wfile.write(b"hello\r\n\r\n")
    handler.close_connection = True


@pytest.fixture
def call() -> Any:
    """Run a command in this process."""
    return call_line


@pytest.fixture
def answers() -> Any:
    """Read the answers of a player."""
    return read_answers


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made") / "set"
    list(write_questions(folder, SMALL))
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    """A copy of the set of a test's own."""
    return Path(shutil.copytree(made, tmp_path / "set"))


@pytest.fixture
def hall(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hall]:
    """A server that answers every question right, unless told otherwise."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with Hall(QuestionFolder(folder)) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.gate.set()
        server.shutdown()
        thread.join()


@pytest.fixture
def acts() -> Any:
    """What a server can do."""
    return Acts


class Acts:
    """By name, as tests cannot import from here."""

    say, raw, hang, cut, drop = map(staticmethod, (say, raw, hang, cut, drop))
    babble = staticmethod(babble)
