"""What a prompt says is not lost on the way to a plan, however near its vector is to another."""

from collections.abc import Iterator, Sequence

import numpy as np
import pytest

from semcache import Miss, Parameter, PlanCache, PromptSchema
from semcache.ports import Vectors
from tests.calling import calling, given_input, missed


class BlindEmbedder:
    """Finds all texts equal, as MiniLM finds those that differ in signs that it does not know."""

    fingerprint = "blind:2"

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return the same vector for every text."""
        return np.tile(np.array([1, 0], dtype=np.float32), (len(texts), 1))


@pytest.fixture
def cache() -> Iterator[PlanCache]:
    with PlanCache.open(embedder=BlindEmbedder()) as cache:
        yield cache


SIGNS = [
    ("donors of blood type AB+", "donors of blood type AB-"),
    ("donors of blood type B", "donors of blood type B-"),
    ("rooms colder than 7 degrees", "rooms colder than \u20137 degrees"),
    ("rooms colder than 7 degrees", "rooms colder than \u22127 degrees"),
    ("rooms colder than 7 degrees", "rooms colder than -7 degrees"),
    ("rooms colder than 7 degrees", "rooms colder than - 7 degrees"),
    ("rooms colder than 7 degrees", "rooms colder than \uff0d7 degrees"),
    ("rooms colder than 7 degrees", "rooms colder than \ufe637 degrees"),
    ("movies with 4 stars", "movies with 4+ stars"),
    ("movies with 4 stars", "movies with ~4 stars"),
    ("movies with 4 stars", "movies with 4* stars"),
    ("tracks ordered by length", "tracks ordered by -length"),
    ("tracks ordered by length", "tracks ordered by +length"),
    ("list archived jobs", "list !archived jobs"),
    ("list archived jobs", "list \u00acarchived jobs"),
    ("list archived jobs", "list ~archived jobs"),
    ("delete var/cache", "delete var/cache/*"),
    ("delete cache entries", "delete *cache entries"),
    ("delete cache entries", "delete cache* entries"),
    ("tasks marked \u2714", "tasks marked \u2718"),
    ("reviews with \U0001f600", "reviews with \U0001f621"),
    ("reviews with \U0001f44b\U0001f3fb", "reviews with \U0001f44b\U0001f3ff"),
    ("reviews with \u2764", "reviews with \u2764\ufe0f"),
    (
        "photos of a \U0001f468\u200d\U0001f469\u200d\U0001f467",
        "photos of a \U0001f468\u200d\U0001f469\u200d\U0001f466",
    ),
    ("trend \u2191 shares", "trend \u2193 shares"),
    ("moves north \u21d2 south", "moves north \u21d0 south"),
    ("levels \u2a7e the norm", "levels \u2a7d the norm"),
    ("levels \u2273 the norm", "levels \u2272 the norm"),
    ("jobs for F developers", "jobs for F# developers"),
    ("students graded B", "students graded B+"),
    ("send it to channel ops", "send it to @channel ops"),
    ("price of gold in \u20ac", "price of gold in \u00a3"),
    ("angle in \u2032", "angle in \u2033"),
    ("show (paid or late) and open bills", "show paid or (late and open) bills"),
    ("list tabs & windows", "list tabs | windows"),
]
PREFIXES = [
    ("list verified accounts", "list un-verified accounts"),
    ("list complete forms", "list in-complete forms"),
    ("list legal moves", "list il-legal moves"),
    ("decrease the limit", "de-crease the limit"),
    ("show smoking rooms", "show non-smoking rooms"),
    ("open the account", "re-open the account"),
    ("list the check times", "list the check-in times"),
    ("tax deductions", "pre-tax deductions"),
]
SCRIPTS = [
    (
        "\u0926\u093e\u0928 \u0926\u093f\u0916\u093e\u0913",
        "\u0926\u093f\u0928 \u0926\u093f\u0916\u093e\u0913",
    ),
    ("\u0e02\u0e49\u0e32\u0e27", "\u0e02\u0e48\u0e32\u0e27"),
    ("\u05e9\u05c1\u05dc", "\u05e9\u05c2\u05dc"),
    ("\u0643\u064e\u062a\u064e\u0628", "\u0643\u064f\u062a\u0650\u0628"),
    (
        "\u0448\u0442\u0430\u0431\u044b \u043f\u043e \u0433\u043e\u0440\u043e\u0434\u0430\u043c",
        "\u0448\u0442\u0430\u0431\u0438 \u043f\u043e \u0433\u043e\u0440\u043e\u0434\u0430\u043c",
    ),
    ("\u58f2\u4e0a\u3092\u898b\u305b\u3066", "\u58f2\u4e0b\u3092\u898b\u305b\u3066"),
    ("el a\u00f1o fiscal", "el ano fiscal"),
    ("orders from K\u00f6ln", "orders from Koln"),
    ("orders from \u0421anada", "orders from Canada"),
    ("sales by state", "sales by\u200b state"),
    ("sales by state", "sales by \u202estate"),
    ("sales by state", "sales by state\u0336"),
    ("sales by state", "s\u00adales by state"),
    ("\uff33ales by state", "sales by state"),
    ("list 5 files", "list \uff15 files"),
    ("list \u0665 files", "list \u0666 files"),
    ("x\u00b2 of the sample", "x\u00b3 of the sample"),
]
WORDS_IN_CAPITALS = [
    ("count visitors of us", "count visitors of US"),
    ("reports about it", "reports about IT"),
    ("list vitamin levels", "list vitamin A levels"),
    ("files over 5 MB", "files over 5 Mb"),
    ("open Makefile.am", "open makefile.am"),
]
PAIRS = SIGNS + PREFIXES + SCRIPTS + WORDS_IN_CAPITALS


@pytest.mark.parametrize(("stored", "asked"), PAIRS + [(b, a) for a, b in PAIRS])
def test_a_plan_serves_no_prompt_with_another_sign(
    cache: PlanCache, stored: str, asked: str
) -> None:
    cache.store(stored, calling("do", what="this"))
    assert isinstance(cache.lookup(asked), Miss)
    again = cache.lookup(stored)
    assert not isinstance(again, Miss)


def test_a_sign_is_not_cleared_by_benign_learning(cache: PlanCache) -> None:
    for noun in ("bills", "trips", "claims", "notes"):
        for prompt in (f"last <10 {noun}", f"last 10 {noun}", f"approve {noun} under <=10"):
            cache.store(prompt, calling("take", of=noun), tenant="taught")
    cache.store("last 10 calls", calling("take", of="calls"), tenant="taught")
    assert isinstance(cache.lookup("last <10 calls", tenant="taught"), Miss)
    assert isinstance(cache.lookup("last >10 calls", tenant="taught"), Miss)


@pytest.mark.parametrize(
    "typed", ["<number>", "<<number>>", "<\\number>", "\u2039number>", "<:past>"]
)
def test_a_prompt_that_spells_a_slot_is_no_template(cache: PlanCache, typed: str) -> None:
    cache.store("close the 7 oldest files", calling("close", count=7))
    assert isinstance(cache.lookup(f"close the {typed} oldest files"), Miss)


@pytest.mark.parametrize("prompt", ["???", "\u2705", "-", "+ + +", "\u200d\u0301", "?", "."])
def test_a_prompt_of_signs_is_served_only_for_itself(cache: PlanCache, prompt: str) -> None:
    cache.store(prompt, calling("do", what="this"))
    assert cache.lookup(prompt)
    assert isinstance(cache.lookup(f"{prompt}!"), Miss)
    assert isinstance(cache.lookup("??" if prompt == "?" else "? ?"), Miss)


def test_equal_schemas_do_not_outweigh_a_sign_that_they_leave_out(cache: PlanCache) -> None:
    schema = PromptSchema("list", ("job",), params={"owner": "J\u00f6rg"})
    params = [Parameter("owner", "J\u00f6rg", mention="J\u00f6rg")]
    cache.store(
        "unpaid overtime jobs of J\u00f6rg",
        calling("jobs", owner="J\u00f6rg"),
        params=params,
        schema=schema,
    )
    other = PromptSchema("list", ("job",), params={"owner": "Zo\u00eb"})
    assert given_input(cache.lookup("what unpaid overtime jobs has Zo\u00eb", schema=other)) == {
        "owner": "Zo\u00eb"
    }
    assert (
        missed(cache.lookup("what unpaid overtime jobs has Zo\u00eb \u274c", schema=other)).reason
        == "signs"
    )
