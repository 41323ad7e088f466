"""What a request may bring, and what is answered to one that cannot be used."""

import json
import socket
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from semcache import SemCache
from semcache.errors import ModelUnavailable
from semcache.server.rest.problems import MAX_BODY_BYTES, MAX_HEADERS
from tests.server.rest.conftest import Door

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
BODIES = st.one_of(
    st.binary(max_size=200),
    JSON.map(lambda value: json.dumps(value).encode()),
    st.fixed_dictionaries(
        {"prompt": JSON}, optional={"params": JSON, "plan": JSON, "tools": JSON, "tags": JSON}
    ).map(lambda value: json.dumps(value).encode()),
)


@pytest.mark.parametrize("call", ["lookup", "explain", "store", "feedback", "invalidate", "answer"])
@given(body=BODIES)
@settings(
    max_examples=25,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_no_body_makes_the_server_fail(door: Door, call: str, body: bytes) -> None:
    headers = {"Content-Type": "application/json"}
    reply = door().post(f"/v1/{call}", content=body, headers=headers)
    assert reply.status_code in {200, 400, 422, 404}
    if reply.status_code != 200:
        told = reply.json()
        assert reply.headers["Content-Type"] == "application/problem+json"
        assert {"type", "title", "status", "detail"} <= set(told)
        assert told["status"] == reply.status_code


@pytest.mark.parametrize(
    "body",
    [
        b'{"prompt": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"prompt": "x", "params": {"a": ' + b'{"a":' * 500 + b"1" + b"}" * 500 + b"}}",
        b'{"prompt": "x", "params": {"a": ' + b"9" * 5_000 + b"}}",
        b'{"prompt": "x\\ud800"}',
        b'{"prompt": "x\\u0000"}',
        b'{"prompt": "x", "params": {"a": NaN}}',
    ],
)
def test_hostile_json_is_refused_in_words(door: Door, body: bytes) -> None:
    reply = door().post("/v1/lookup", content=body, headers={"Content-Type": "application/json"})
    assert reply.status_code in {400, 422}
    assert reply.json()["detail"]


def test_a_long_body_is_refused_by_what_it_says_and_by_what_comes(door: Door) -> None:
    reply = door().post("/v1/lookup", content=b"x" * (MAX_BODY_BYTES + 1))
    assert (reply.status_code, reply.json()["status"]) == (413, 413)

    def unending() -> Any:
        for _ in range(MAX_BODY_BYTES // 65536 + 2):
            yield b" " * 65536

    reply = door().post("/v1/lookup", content=unending())
    assert (reply.status_code, reply.json()["status"]) == (413, 413)


def test_many_headers_are_refused(door: Door) -> None:
    headers = {f"X-{number}": "1" for number in range(MAX_HEADERS + 1)}
    reply = door().get("/health", headers=headers)
    assert (reply.status_code, reply.json()["status"]) == (431, 431)


def test_an_error_is_told_in_its_own_words_without_secrets(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(*_: Any, **__: Any) -> Any:
        raise ModelUnavailable("no answer; the key sk-verysecret12345678 was sent")

    monkeypatch.setattr(SemCache, "run", run)
    reply = door().post("/v1/ask", json={"prompt": "yearly visits to Bergen"})
    assert reply.status_code == 503
    assert reply.headers["Retry-After"] == "1"
    assert reply.json() == {
        "type": "urn:semcache:ModelUnavailable",
        "title": "ModelUnavailable",
        "status": 503,
        "detail": "no answer; the key <redacted> was sent",
    }


def test_a_fault_of_the_server_tells_nothing_of_itself(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(*_: Any, **__: Any) -> Any:
        raise RuntimeError("password=hunter2")

    monkeypatch.setattr(SemCache, "run", run)
    reply = door().post("/v1/ask", json={"prompt": "yearly visits to Bergen"})
    assert reply.status_code == 500
    assert "hunter2" not in reply.text


def test_what_was_sent_is_not_sent_back(door: Door) -> None:
    reply = door().post("/v1/lookup", json={"prompt": 7, "password": "hunter2"})
    assert reply.status_code == 422
    assert "prompt" in reply.json()["detail"]
    assert "hunter2" not in reply.text


def test_every_answer_is_kept_by_nobody_and_is_no_script(door: Door) -> None:
    for path in ("/", "/health", "/v1/stats", "/nowhere"):
        reply = door().get(path)
        assert reply.headers["Cache-Control"] == "no-store"
        assert reply.headers["X-Content-Type-Options"] == "nosniff"
    assert door().get("/nowhere").headers["Content-Type"] == "application/problem+json"


def test_a_caller_that_hangs_up_is_no_fault(door: Door) -> None:
    client = door()
    url = httpx.URL(str(client.base_url))
    with socket.create_connection((url.host, url.port or 0), 30) as held:
        held.sendall(b"POST /v1/lookup HTTP/1.1\r\nHost: a\r\nContent-Length: 99\r\n\r\n{")
    assert client.get("/health").status_code == 200
