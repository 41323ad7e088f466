import logging
import math
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from semcache.canonical import Json
from semcache.errors import InvalidInput, InvalidJson, InvalidSettings, StoreUnavailable
from semcache.events import ResponseLookedUp, TierFailed
from semcache.ports import Room
from semcache.responses.cache import ABSENT, Metrics, Response, Responses
from semcache.stores.memory_responses import MemoryResponses
from semcache.testing import FakeClock, RecordingObserver
from semcache.testing.fakes import together


@pytest.fixture(params=["memory", "disk"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> Path | None:
    return tmp_path / "responses" if request.param == "disk" else None


@pytest.fixture
def responses(
    where: Path | None, clock: FakeClock, observer: RecordingObserver
) -> Iterator[Responses]:
    with Responses.open(where, clock=clock, observer=observer) as responses:
        yield responses


class Down(MemoryResponses):
    """A store that nothing can be done with."""

    def get(self, key: str, *, now_s: float) -> str | None:
        raise StoreUnavailable("it is locked")

    def set(
        self, key: str, text: str, *, group: str, ttl_s: float | None, now_s: float, limit: Room
    ) -> int:
        raise StoreUnavailable("it is locked")


# specs: B-4
@pytest.mark.parametrize(("used", "gone"), [([], "k1"), (["k1"], "k2")])
def test_the_fourth_of_three_replaces_the_one_used_longest_ago(
    where: Path | None, clock: FakeClock, used: list[str], gone: str
) -> None:
    with Responses.open(where, max_entries=3, clock=clock) as responses:
        for key in ("k1", "k2", "k3"):
            responses.set(key, key)
        for key in used:
            assert responses.get(key) == key
        responses.set("k4", "k4")
        assert sorted({"k1", "k2", "k3", "k4"} - set(responses.keys())) == [gone]


# specs: B-5
def test_a_response_expires_an_hour_after_its_last_use_or_as_it_was_set(
    responses: Responses, clock: FakeClock
) -> None:
    responses.set("a", 1)
    responses.set("short", 1, ttl_s=3599)
    for _ in range(3):
        clock.advance(3599)
        assert responses.get("a") == 1
        assert responses.get("short") is ABSENT
    clock.advance(3600)
    assert not responses.has("a")
    assert responses.get("a") is ABSENT


# specs: B-5
def test_bytes_are_those_of_json_in_utf_8(where: Path | None, clock: FakeClock) -> None:
    with Responses.open(where, max_bytes=20, clock=clock) as responses:
        assert responses.set("a", "é" * 4)
        assert responses.metrics().bytes == 10
        assert responses.set("b", "é" * 4)
        assert responses.set("c", 1)
        assert responses.keys() == ["b", "c"]
        assert not responses.set("d", "é" * 10)
        assert responses.keys() == ["b", "c"]


# specs: B-6
def test_metrics_count_hits_and_misses_and_what_is_kept(responses: Responses) -> None:
    assert responses.metrics() == Metrics(0, 0, 0, 0, 1000, 52_428_800)
    assert responses.metrics().hit_rate == 0
    responses.set("a", [1])
    assert (responses.has("a"), responses.has("b")) == (True, False)  # to look is no use
    for key in ("a", "b", "a"):
        responses.get(key)
    assert responses.metrics() == Metrics(2, 1, 1, 3, 1000, 52_428_800)
    assert responses.metrics().hit_rate == pytest.approx(66.67, abs=0.01)


# specs: B-6
def test_busting_takes_one_a_prefix_or_a_group_and_a_missing_one_is_fine(
    responses: Responses,
) -> None:
    for key, group in (("abc1", "g"), ("abc2", ""), ("abd1", "g"), ("b", "g")):
        responses.set(key, key, group=group)
    assert responses.keys(prefix="abc") == ["abc1", "abc2"]
    assert responses.bust_prefix("abc") == 2
    assert responses.keys() == ["abd1", "b"]
    assert (responses.bust("b"), responses.bust("b"), responses.bust_prefix("zz")) == (
        True,
        False,
        0,
    )
    responses.set("c", 1)
    assert responses.bust_group("g") == 1
    assert responses.keys() == ["c"]


# specs: B-6
def test_clearing_forgets_responses_and_counts(responses: Responses) -> None:
    responses.set("a", 1)
    responses.get("a")
    assert responses.clear() == 1
    assert responses.metrics() == Metrics(0, 0, 0, 0, 1000, 52_428_800)


@pytest.mark.parametrize("value", [None, False, 0, 0.0, "", [], {}])
def test_a_falsy_value_is_a_response(responses: Responses, value: Json) -> None:
    responses.set("a", value)
    assert responses.get("a") == value
    assert responses.get("a") is not ABSENT
    assert responses.answer("a", lambda: "made").cached
    assert not ABSENT


# specs: B-7
def test_what_goes_in_and_comes_out_are_copies(responses: Responses) -> None:
    value: dict[str, Any] = {"list": [1]}
    responses.set("a", value)
    value["list"].append(2)
    first: Any = responses.get("a")
    assert first == {"list": [1]}
    first["list"].clear()
    assert responses.get("a") == {"list": [1]}


# specs: B-7
def test_an_answer_is_made_once_and_each_lookup_is_told(
    responses: Responses, observer: RecordingObserver
) -> None:
    assert responses.answer("a", lambda: 1, group="g") == Response(1, cached=False)
    assert responses.answer("a", lambda: 2, group="g") == Response(1, cached=True)
    assert observer.of(ResponseLookedUp) == [
        ResponseLookedUp(key="a", group="g", hit=False),
        ResponseLookedUp(key="a", group="g", hit=True),
    ]
    assert responses.bust_group("g") == 1


# specs: B-7
def test_an_error_is_not_kept(responses: Responses) -> None:
    def fail() -> Json:
        raise ConnectionError("down")

    with pytest.raises(ConnectionError):
        responses.answer("a", fail)
    assert responses.answer("a", lambda: 1) == Response(1, cached=False)


# specs: B-7, B-10
def test_a_bypass_takes_nothing_and_replaces_what_is_there(responses: Responses) -> None:
    responses.set("a", "bad")
    assert responses.answer("a", lambda: "good", bypass=True) == Response("good", cached=False)
    assert responses.get("a") == "good"


def test_an_answer_may_be_refused_a_place(responses: Responses) -> None:
    assert responses.answer("a", lambda: None, keep=bool) == Response(None, cached=False)
    assert not responses.has("a")


def test_threads_that_ask_the_same_at_once_make_it_once(responses: Responses) -> None:
    made: list[int] = []
    waiting = threading.Event()

    def make() -> Json:
        made.append(1)
        waiting.wait(timeout=0.05)
        return "answer"

    results = together(8, lambda _: responses.answer("a", make))
    assert len(made) == 1
    assert sorted(r.cached for r in results) == [False] + [True] * 7
    assert {str(r.value) for r in results} == {"answer"}
    assert (responses.metrics().hits, responses.metrics().misses) == (7, 1)


def test_who_waits_for_an_answer_that_fails_hears_of_it_and_the_next_tries(
    responses: Responses,
) -> None:
    inside, go = threading.Event(), threading.Event()
    failed: list[Exception] = []

    def fail() -> Json:
        inside.set()
        go.wait(timeout=30)
        raise ConnectionError("down")

    def first() -> None:
        try:
            responses.answer("a", fail)
        except ConnectionError as error:
            failed.append(error)

    thread = threading.Thread(target=first)
    thread.start()
    assert inside.wait(timeout=30)
    threading.Timer(0.01, go.set).start()
    with pytest.raises(ConnectionError):
        responses.answer("a", lambda: "never asked for")
    thread.join(timeout=30)
    assert len(failed) == 1
    assert responses.answer("a", lambda: "made") == Response("made", cached=False)


def test_a_store_that_fails_is_a_miss_an_event_and_one_warning(
    clock: FakeClock, observer: RecordingObserver, caplog: pytest.LogCaptureFixture
) -> None:
    responses = Responses(Down(), clock, observer=observer)
    with caplog.at_level(logging.WARNING, "semcache"):
        for _ in range(2):
            assert responses.answer("a", lambda: 1) == Response(1, cached=False)
    assert responses.recall("a") is ABSENT
    assert len(caplog.records) == 1
    assert {event.part for event in observer.of(TierFailed)} == {"responses"}
    with pytest.raises(StoreUnavailable):
        responses.get("a")


def test_an_answer_that_is_not_json_is_handed_on_and_not_kept(responses: Responses) -> None:
    assert responses.answer("a", lambda: "\ud800").value == "\ud800"
    assert not responses.has("a")


@pytest.mark.parametrize("value", [math.nan, {1}, b"x", object()])
def test_a_value_that_is_not_json_is_refused_and_the_old_one_stays(
    responses: Responses, value: object
) -> None:
    responses.set("a", 1)
    with pytest.raises(InvalidJson, match="the response"):
        responses.set("a", value)
    assert responses.get("a") == 1


@pytest.mark.parametrize("key", ["", "\ud800", 7])
def test_a_key_that_cannot_be_kept_is_a_typed_error(responses: Responses, key: Any) -> None:
    for call in (responses.get, responses.has, responses.bust, responses.recall):
        with pytest.raises(InvalidInput, match="key"):
            call(key)
    with pytest.raises(InvalidInput, match="key"):
        responses.set(key, 1)


@pytest.mark.parametrize(
    "bad", [{"max_entries": 0}, {"max_bytes": 0}, {"ttl_s": 0}, {"ttl_s": math.nan}]
)
def test_bounds_that_make_no_sense_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(InvalidSettings):
        Responses.open(**bad)
    with pytest.raises(InvalidInput, match="ttl_s"):
        Responses.open().set("a", 1, ttl_s=0)


def test_a_store_that_hands_out_what_is_not_json_is_a_miss(clock: FakeClock) -> None:
    store = MemoryResponses()
    store.set("a", "{", group="", ttl_s=None, now_s=0, limit=Room(9, 99))
    responses = Responses(store, clock)
    assert responses.get("a") is ABSENT
    assert responses.keys() == []
