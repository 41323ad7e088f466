import pytest

from semcache.errors import ModelUnavailable
from semcache.events import EntryStored, Repaired
from semcache.ports import Completion, Message
from semcache.testing import FakeClock, HashEmbedder, RecordingObserver, ScriptedModel

ASK = (Message("user", "hello"),)


def test_a_fake_clock_stands_still_until_it_sleeps_or_is_advanced() -> None:
    clock = FakeClock(now=100.0)
    assert (clock.now(), clock.now(), clock.monotonic()) == (100.0, 100.0, 0.0)
    clock.sleep(1.5)
    clock.advance(2.0)
    assert (clock.now(), clock.monotonic(), clock.sleeps) == (103.5, 3.5, [1.5])


def test_texts_that_share_words_are_near_and_others_are_not() -> None:
    rows = HashEmbedder().embed(["total sales in 2024", "Total sales in 2023?", "cancel my order"])
    cosines = rows @ rows.T
    assert cosines[0, 1] > 0.6
    assert abs(cosines[0, 2]) < 0.4


def test_every_text_has_a_unit_vector_that_never_changes() -> None:
    texts = ["", "one", "one two", "\ud800", "word " * 500]
    rows = HashEmbedder(dim=32).embed(texts)
    assert rows.shape == (5, 32)
    assert rows.dtype == "float32"
    assert (rows**2).sum(axis=1) == pytest.approx(1.0, abs=1e-5)
    assert (rows == HashEmbedder(dim=32).embed(texts)).all()
    assert HashEmbedder().embed([]).shape == (0, 64)


def test_an_embedder_tells_which_texts_it_saw() -> None:
    embedder = HashEmbedder(dim=8)
    embedder.embed(["a", "b"])
    assert (embedder.texts, embedder.fingerprint) == (["a", "b"], "hash:8")


def test_a_scripted_model_answers_in_order_and_keeps_what_it_was_asked() -> None:
    model = ScriptedModel(["one", Completion("two", model="m")])
    assert [model.complete(ASK).text for _ in range(2)] == ["one", "two"]
    assert (model.calls, model.unused) == ([ASK, ASK], [])


def test_a_scripted_model_raises_an_exception_of_its_script() -> None:
    model = ScriptedModel()
    model.reply(ModelUnavailable("down"), "up")
    with pytest.raises(ModelUnavailable, match="down"):
        model.complete(ASK)
    assert model.unused == ["up"]


def test_a_scripted_model_that_is_asked_too_often_says_so() -> None:
    with pytest.raises(AssertionError, match=r"asked 1 times.*hello"):
        ScriptedModel().complete(ASK)


def test_an_observer_keeps_events_in_order_and_by_kind() -> None:
    seen = RecordingObserver()
    first = Repaired(what="index", details="")
    second = EntryStored(tenant="acme", entry="a", replaced=False, evicted=0)
    for event in (first, second, first):
        seen(event)
    assert (seen.events, seen.of(Repaired)) == ([first, second, first], [first, first])
