"""A model behind an address: what it is sent, what is kept of its replies."""

from __future__ import annotations

import base64
import json
import threading
from collections import Counter
from typing import Any

import pytest

from everlearn.questions import messages

pytestmark = pytest.mark.integration

ALL = Counter({(n, number): 1 for n in (2, 4) for number in range(3)})


def places(rows: list[dict[str, Any]]) -> Counter[tuple[int, int]]:
    return Counter((row["n"], row["number"]) for row in rows)


def test_a_request_is_a_chat_completion_with_the_pictures_of_the_folder(hall: Any) -> None:
    assert hall.play()[0] == 0
    path, headers, body = hall.requests[-1]
    assert path == "/v1/chat/completions"
    assert headers["Authorization"] == f"Bearer {hall.key}"
    assert headers["Content-Type"] == "application/json"
    assert {k: v for k, v in body.items() if k != "messages"} == {
        "model": "m",
        "temperature": 0,
        "max_tokens": 16,
    }
    told = messages(4)
    assert body["messages"][0] == {"role": "system", "content": told[0].text}
    for sent, said in zip(body["messages"][1:], told[1:], strict=True):
        assert (sent["role"], sent["content"][0]) == ("user", {"type": "text", "text": said.text})
        kinds = {part["type"] for part in sent["content"][1:]}
        assert (kinds, len(sent["content"]) - 1) == ({"image_url"}, len(said.pictures))
    assert shown(body) == list(hall.kept.pictures(hall.find(body)).values())


def shown(body: Any) -> list[bytes]:
    head = "data:image/png;base64,"
    parts = [part for message in body["messages"][1:] for part in message["content"][1:]]
    urls = [part["image_url"]["url"] for part in parts]
    assert all(url.startswith(head) for url in urls)
    return [base64.b64decode(url[len(head) :]) for url in urls]


def test_every_question_is_asked_once_and_its_answer_kept(hall: Any) -> None:
    code, out, _ = hall.play()
    rows = hall.rows()
    assert (code, hall.asked, places(rows)) == (0, ALL, ALL)
    assert all(row["chosen"] == row["answer"] for row in rows)
    first = rows[0]
    assert (first["kind"], first["player"], first["tries"]) == ("choice", "m", 1)
    assert (first["text"], first["prompt_tokens"], first["ended"]) == (
        str(first["answer"]), 100, "stop",
    )  # fmt: skip
    assert 0 <= first["seconds"] < 5
    assert "600 tokens read and 12 written" in out
    assert "cost" not in out


def test_played_again_nothing_is_asked_and_the_table_is_shown(hall: Any) -> None:
    first, again = hall.play(), hall.play()
    assert hall.asked == ALL
    assert (again[0], again[1]) == (0, first[1])
    sessions = (hall.kept.folder / "players" / "m" / "provenance.jsonl").read_text().splitlines()
    assert len(sessions) == 1
    assert json.loads(sessions[0])["everlearn"]


def test_prices_make_a_cost(hall: Any) -> None:
    out = hall.play("--price-in", "2.5", "--price-out", "10")[1]
    assert "they cost 0.0016 at 2.5 and 10 a million" in " ".join(out.split())  # 600, 12 tokens


def test_servers_that_tell_no_tokens_are_no_trouble(hall: Any, acts: Any) -> None:
    hall.act = lambda question, times: acts.say(0, usage=None)
    code, out, _ = hall.play()
    assert (code, "(6 of 6 replies did not say)" in out) == (0, True)


def test_without_a_key_none_is_sent(hall: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    assert hall.play()[0] == 0
    assert "Authorization" not in hall.requests[0][1]


def test_fields_can_be_added_changed_and_left_out(hall: Any) -> None:
    also = '{"temperature": null, "max_tokens": null, "max_completion_tokens": 50}'
    assert hall.play("--also", also)[0] == 0
    body = hall.requests[0][2]
    assert set(body) == {"model", "messages", "max_completion_tokens"}


def test_several_questions_are_under_way_at_once(hall: Any, acts: Any) -> None:
    together = threading.Barrier(3, timeout=5)

    def act(question: Any, times: int) -> Any:
        together.wait()  # passes only where three are asked at the same time
        return acts.say(question.answer)

    hall.act = act
    code, _, errors = hall.play("--parallel", "3")
    assert (code, hall.asked) == (0, ALL), errors
    assert places(hall.rows()) == ALL


@pytest.mark.parametrize("text", ["I cannot tell.", "0 or 1", "", None, "7", "🤷\ud800"])
def test_garbage_is_kept_counts_as_wrong_and_is_not_asked_again(
    hall: Any, acts: Any, text: str | None
) -> None:
    hall.act = lambda question, times: acts.say(text)
    code, out, _ = hall.play()
    rows = hall.rows()
    assert (code, hall.asked) == (0, ALL)
    assert {(row["chosen"], row["text"]) for row in rows} == {(-1, text or "")}
    assert [line.split()[-1] for line in out.splitlines() if line.split()[:2] == ["2", "0"]] == [
        "3"
    ]


def test_a_missing_package_is_reported_with_its_extra(
    hall: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("everlearn.questions.http.find_spec", lambda name: None)
    code, _, errors = hall.play()
    assert (code, "pip install 'everlearn[ask]'" in errors) == (2, True)
    assert not hall.asked
