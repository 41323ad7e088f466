"""`vector_search` over one's own texts."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semcache import Catalog
from semcache.canonical import JsonObject
from semcache.errors import EmbeddingError, InvalidInput, OperationRefused
from semcache.execution.call import call
from semcache.execution.program import ProgramEngine
from semcache.models.minilm import MiniLMEmbedder
from semcache.plans.program import ProgramPlan
from semcache.ports import Limits, Vectors
from semcache.sources.retrieval import Graph, Texts, chunks
from semcache.stores.vectors.faiss_index import FaissIndex
from semcache.testing import FakeClock, HashEmbedder, RecordingObserver

MANUAL = {
    "backup": "Full backups are taken every night and kept for thirty days.",
    "index": "An index makes queries fast and writes slower.",
    "login": "Passwords have at least twelve characters.",
}


@pytest.fixture
def manual(minilm: MiniLMEmbedder) -> Texts:
    texts = Texts(minilm, FaissIndex())
    texts.add(MANUAL)
    return texts


def test_the_passages_nearest_in_meaning_come_first(manual: Texts) -> None:
    found = manual.search("How long do you keep copies of the data?", top_k=2)
    assert found[0].source == "backup"
    assert found[0].text == MANUAL["backup"]
    assert 1 >= found[0].score > found[1].score


def test_a_program_searches_the_texts(manual: Texts) -> None:
    plan = ProgramPlan.from_dict([
        {"seq_no": 0, "type": "vector_search",
         "parameters": {"vector_search": "speed up a slow query", "top_k": 1, "output_var": "c"}},
        {"seq_no": 1, "type": "assign",
         "parameters": {"value": {"var": "c"}, "var_name": "result"}},
    ])  # fmt: skip
    outcome = ProgramEngine().execute(
        plan,
        catalog=Catalog([manual.operation()]),
        limits=Limits(allow_writes=False),
        clock=FakeClock(),
        observer=RecordingObserver(),
    )
    (chunk,) = outcome.value if isinstance(outcome.value, list) else []
    assert isinstance(chunk, dict)
    assert (chunk["source"], chunk["part"]) == ("index", 0)


def test_a_text_can_be_replaced_and_removed() -> None:
    texts = Texts(HashEmbedder(), FaissIndex(), chunk_chars=20)
    assert texts.add({"a": "one two three. four five six. seven."}) == 3
    assert texts.add({"a": "eight"}) == 1
    assert [chunk.text for chunk in texts.search("one two three")] == ["eight"]
    assert texts.remove("a")
    assert not texts.remove("a")
    assert (texts.search("eight"), len(texts)) == ([], 0)


def test_an_embedder_that_fails_leaves_the_texts_as_they_were() -> None:
    class Failing(HashEmbedder):
        def embed(self, texts: object) -> Vectors:
            raise EmbeddingError("no weights")

    index = FaissIndex()
    with pytest.raises(EmbeddingError):
        Texts(Failing(), index).add({"a": "x"})
    assert len(index) == 0


@pytest.mark.parametrize("given", [{}, {"query": ""}, {"query": "x", "top_k": 0}, {"q": "x"}])
def test_a_query_that_makes_no_sense_is_refused(given: JsonObject) -> None:
    catalog = Catalog([Texts(HashEmbedder(), FaissIndex()).operation()])
    with pytest.raises(OperationRefused):
        call(
            catalog.get("vector_search"), given, catalog=catalog, limits=Limits(), timeout_s=5,
            node="0",
        )  # fmt: skip


def test_an_index_that_somebody_else_uses_is_refused() -> None:
    index = FaissIndex()
    Texts(HashEmbedder(), index).add({"a": "x"})
    for user in (Texts, Graph):
        with pytest.raises(InvalidInput, match="the index has 1 vectors"):
            user(HashEmbedder(), index)
    with pytest.raises(InvalidInput):
        Texts(HashEmbedder(), FaissIndex(), chunk_chars=0)


def test_a_long_text_is_cut_where_a_paragraph_a_sentence_or_a_word_ends() -> None:
    text = "First part. It goes on.\n\nSecond part with a very long sentence and no end"
    assert list(chunks(text, 30)) == [
        "First part. It goes on.",
        "Second part with a very long",
        "sentence and no end",
    ]


@given(st.text(alphabet="ab. \n", max_size=200), st.integers(1, 40))
@settings(max_examples=100)
def test_chunks_are_short_and_lose_nothing_but_white_space(text: str, size: int) -> None:
    parts = list(chunks(text, size))
    assert all(0 < len(part) <= size for part in parts)
    assert "".join("".join(parts).split()) == "".join(text.split())
