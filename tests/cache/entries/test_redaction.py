import json
import logging
import re
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semcache import Catalog, Found, Hit, Miss, Operation, PlanCache, SemCache
from semcache.canonical import Json, JsonObject
from semcache.errors import ExecutionError, InvalidInput, PlanningError
from semcache.prompts.mentions import find_mentions
from semcache.prompts.redaction import hide
from semcache.testing import FakeClock, HashEmbedder, RecordingObserver, ScriptedModel
from tests.calling import calling

EMAIL = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
NAMES = re.compile(r"\b(?:zebulon quux|ottoline brakk|zebulon|ottoline)\b", re.IGNORECASE)


def redact(text: str) -> str:
    return NAMES.sub("[name]", EMAIL.sub("[email]", text))


plan = partial(calling, "mail")


def inputs(found: Found) -> Any:
    assert isinstance(found, Hit), found.explain()
    call: Any = found.plan.to_dict()["call"]
    return call["input"]


class Watched:
    """A cache on disk, and all that it said or wrote anywhere."""

    def __init__(self, directory: Path, caplog: pytest.LogCaptureFixture) -> None:
        self.directory = directory
        self.caplog = caplog
        self.observer = RecordingObserver()
        self.embedder = HashEmbedder()
        self.found: list[Found] = []

    def open(self, **more: Any) -> PlanCache:
        more.setdefault("redact", redact)
        return PlanCache.open(
            self.directory, embedder=self.embedder, observer=self.observer, **more
        )

    def places(self, *secrets: str) -> list[str]:
        """Return where one of `secrets` turned up that must not."""
        traces = [json.dumps(found.trace.to_dict()) + found.explain() for found in self.found]
        said = {"log": self.caplog.text, "events": repr(self.observer.events)}
        said |= {"embedded": repr(self.embedder.texts), "traces": "".join(traces)}
        places = [name for name, text in said.items() if _has(text, secrets)]
        files = [path for path in self.directory.rglob("*") if path.is_file()]
        written = [path for path in files if _has(path.read_bytes().decode("latin-1"), secrets)]
        return [*places, *(path.name for path in written)]


def _has(text: str, secrets: tuple[str, ...]) -> bool:
    return any(secret.casefold() in text.casefold() for secret in secrets)


@pytest.fixture
def watched(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> Watched:
    monkeypatch.setattr("semcache.cache.view.views.WORTHWHILE", 1)
    caplog.set_level(logging.DEBUG)
    return Watched(tmp_path, caplog)


def test_a_hidden_value_is_bound_at_every_hit_and_written_down_nowhere(watched: Watched) -> None:
    with watched.open() as cache:
        kept = cache.store(
            "mail the sales of 2024 to zeb@quux.example",
            plan(to="zeb@quux.example", year="2024"),
            params={"to": "zeb@quux.example", "year": "2024"},
        )
        assert (bool(kept), kept.reason) == (True, "")
        found = cache.lookup("mail the sales of 2023 to otto@brakk.example")
        watched.found.append(found)
        assert inputs(found) == {"to": "otto@brakk.example", "year": "2023"}
    with watched.open() as cache:
        found = cache.lookup("please mail the sales of 2022 to otto@brakk.example")
        watched.found.append(found)
        assert inputs(found) == {"to": "otto@brakk.example", "year": "2022"}
        assert cache.entries()[0].prompt == "mail the sales of 2024 to [email]"
    assert found.trace.prompt == "please mail the sales of 2022 to [email]"
    assert watched.places("zeb@quux", "otto@brakk", "quux.example", "brakk.example") == []


def test_without_the_hook_the_same_prompt_is_written_down(watched: Watched) -> None:
    with watched.open(redact=None) as cache:
        cache.store("mail the sales to zeb@quux.example", plan(to="zeb@quux.example"))
    assert "semcache.db" in watched.places("zeb@quux")


def test_what_only_the_hook_finds_is_a_value_like_any_other(watched: Watched) -> None:
    with watched.open() as cache:
        params = {"to": "Zebulon Quux"}
        assert cache.store("remind Zebulon Quux of the invoices", plan(**params), params=params)
        found = cache.lookup("remind Ottoline Brakk of the invoices")
        watched.found.append(found)
        assert inputs(found) == {"to": "Ottoline Brakk"}
        found = cache.lookup("remind Ottoline Brakk of the invoices", params={"to": "ob"})
        watched.found.append(found)
        assert inputs(found) == {"to": "ob"}
    assert watched.places("zebulon", "quux", "ottoline", "brakk") == []


@pytest.mark.parametrize(
    ("prompt", "values", "params", "why"),
    [
        ("remind Zebulon Quux of the invoices", {"to": "cust-17"}, {}, "depends on 'redacted"),
        ("remind the customer", {"to": "zeb@quux.example"}, {}, "redacted, at /call/input/to"),
        ("remind the customer", {"to": "c"}, {"to": "zeb@quux.example"}, "no words of the prompt"),
        (
            "remind Zebulon Quux of the invoices",
            {"to": "Zebulon Quux", "text": "Dear Zebulon Quux, pay!", "by": "zebulon quux ltd"},
            {"to": "Zebulon Quux"},
            "depends on 'to'",
        ),
        ("list what Zebulon Quux bought", {"what": "everything"}, {}, "depends on"),
    ],
)
def test_a_plan_that_would_write_down_or_mix_up_what_is_hidden_is_not_kept(
    prompt: str, values: JsonObject, params: JsonObject, why: str, watched: Watched
) -> None:
    with watched.open() as cache:
        kept = cache.store(prompt, plan(**values), params=params)
        assert not kept
        assert why in kept.reason
        assert not cache.lookup(prompt)
    assert watched.places("zebulon", "quux") == []


def test_two_prompts_that_differ_only_in_what_is_hidden_are_not_the_same(watched: Watched) -> None:
    prompt, name = "which open balance does Zebulon Quux owe", "Zebulon Quux"
    with watched.open() as cache:
        kept = cache.store(prompt, plan(customer="cust-17"))
        assert "depends on 'redacted1'" in kept.reason
        assert cache.store(prompt, plan(customer=name), params={"customer": name})
        found = cache.lookup("which open balance does Ottoline Brakk owe")
        assert inputs(found) == {"customer": "Ottoline Brakk"}


def test_a_value_inside_longer_text_is_bound_and_hidden(watched: Watched) -> None:
    with watched.open() as cache:
        text = "Dear {{params.to}}, {{params.n}} invoices are open."
        params = {"to": "zeb@quux.example", "n": 5}
        kept = cache.store(
            "tell zeb@quux.example of 5 open invoices", plan(text=text), params=params
        )
        assert kept, kept.reason
        found = cache.lookup("tell otto@brakk.example of 7 open invoices")
        assert inputs(found) == {"text": "Dear otto@brakk.example, 7 invoices are open."}
    assert watched.places("zeb@", "otto@") == []


def test_why_a_prompt_missed_is_told_without_what_is_hidden(watched: Watched) -> None:
    with watched.open() as cache:
        cache.store(
            "orders of ORD1 for zeb@quux.example",
            plan(order="x-9", to="zeb@quux.example"),
            params={"to": "zeb@quux.example", "order": "ORD1"},
        )
        for prompt in ("orders of ORD2 for otto@brakk.example", "otto@brakk.example?"):
            watched.found.append(cache.lookup(prompt, params={"to": "otto@brakk.example"}))
            watched.found.append(cache.lookup(prompt))
        assert not any(watched.found)
    assert watched.places("zeb@", "otto@") == []


def test_what_a_schema_has_against_a_hidden_value_is_told_without_it(watched: Watched) -> None:
    ours: JsonObject = {"type": "string", "pattern": "^zeb"}
    schema: JsonObject = {"type": "object", "properties": {"to": ours}}
    catalog = Catalog([Operation("mail", "Mail.", schema, effect="read")])
    with watched.open(catalog=catalog) as cache:
        params = {"to": "zeb@quux.example"}
        assert cache.store("mail the sales to zeb@quux.example", plan(**params), params=params)
        found = cache.lookup("mail the sales to otto@brakk.example")
        watched.found.append(found)
        assert isinstance(found, Miss)
        assert (found.reason, "[email]" in found.explain()) == ("check", True)
    assert watched.places("zeb@", "otto@") == []


def test_feedback_and_evidence_keep_nothing_of_what_is_hidden(watched: Watched) -> None:
    with watched.open(max_wrong=0.05) as cache:
        for n in range(4):
            who = f"zeb{n}@quux.example"
            prompt = f"mail the {'net ' * (n % 2)}sales to {who}"
            found = cache.lookup(prompt)
            watched.found.append(found)
            if found:
                cache.feedback(found, right=False)
            cache.store(prompt, plan(to=who, net=n % 2), params={"to": who})
    assert watched.places("quux.example") == []


def test_the_whole_way_of_a_run_tells_nobody(watched: Watched) -> None:
    def mail(given: JsonObject) -> Json:
        raise ValueError(f"no mailbox {given['to']}")

    schema: JsonObject = {"type": "object", "properties": {"to": {"type": "string"}}}
    catalog = Catalog([Operation("mail", "Mail.", schema, effect="read", call=mail)])
    model = ScriptedModel(["I cannot tell zeb@quux.example {"] * 12)
    with SemCache.open(
        watched.directory,
        catalog=catalog,
        model=model,
        embedder=watched.embedder,
        observer=watched.observer,
        redact=redact,
    ) as semcache:
        with pytest.raises(PlanningError):
            semcache.run("inform zeb@quux.example about everything")
        to = {"to": "zeb@quux.example"}
        semcache.cache.store("tell zeb@quux.example", plan(**to), params=to)
        for _ in range(2):
            with pytest.raises(ExecutionError, match="otto@brakk"):
                semcache.run("tell otto@brakk.example")
        trees = repr([run.to_dict() for run in semcache.runs.list()])
        assert "[email]" in trees
        assert "quux" not in trees
        assert "brakk" not in trees
    assert "zeb@quux.example" in repr(model.calls)  # a model needs the prompt as it is
    assert "was rejected" in watched.caplog.text
    assert watched.places("zeb@quux", "otto@brakk") == []


def test_a_hook_that_gives_no_text_is_told() -> None:
    silent: Any = {}.get
    with (
        PlanCache.open(redact=silent, embedder=HashEmbedder()) as cache,
        pytest.raises(InvalidInput, match="`redact` gave NoneType; expected text"),
    ):
        cache.lookup("sales")


def test_what_the_hook_raises_reaches_the_caller(tmp_path: Path) -> None:
    def broken(_: str) -> str:
        raise ZeroDivisionError

    with PlanCache.open(tmp_path, redact=broken, embedder=HashEmbedder()) as cache:
        with pytest.raises(ZeroDivisionError):
            cache.store("sales", plan())
        assert cache.entries() == ()


def test_a_hook_that_changes_nothing_changes_nothing() -> None:
    answers = []
    for hook in (None, str):
        with PlanCache.open(embedder=HashEmbedder(), clock=FakeClock(), redact=hook) as cache:
            cache.store("sales in 2024", plan(year="2024"), params={"year": "2024"})
            found = cache.lookup("sales in 2023")
            answers.append((found.to_dict(), [entry.to_json() for entry in cache.entries()]))
    assert answers[0] == answers[1]


words = st.lists(
    st.sampled_from("mail to/zebulon quux/ottoline/5/in 2024/a@b.example/,/and".split("/")),
    min_size=1,
    max_size=12,
)  # fmt: skip


@settings(max_examples=200)
@given(words)
def test_of_any_prompt_all_that_is_hidden_is_in_a_mention(pieces: list[str]) -> None:
    text = " ".join(pieces)
    mentions = find_mentions(text)
    shown, found, secrets = hide(text, mentions, plain=mentions, redact=redact)
    assert shown == redact(text)
    assert all(a.end <= b.start for a, b in pairwise(found))
    open_text, at = "", 0
    for mention in found:
        open_text += text[at : mention.start] + " "
        at = mention.end
    open_text += text[at:]
    assert redact(open_text) == open_text
    assert redact(secrets.clean(text)) == secrets.clean(text)
    for mention in found:
        assert secrets.hides(mention) or redact(mention.text) == mention.text
