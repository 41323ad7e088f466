import json
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from semcache.errors import WeightsUnavailable
from semcache.models.weights import shipped_weights
from semcache.models.wordpiece import WordPiece

# Python and `tokenizers` know different versions of Unicode; of these characters all say the same.
SETTLED = st.characters(exclude_categories=["Cs"]).filter(
    lambda c: unicodedata.category(c) == unicodedata.ucd_3_2_0.category(c)
)
PROMPTS = Path(__file__).parents[1] / "data" / "small.jsonl"


@pytest.fixture(scope="module")
def file() -> Path:
    weights = shipped_weights()
    assert weights is not None
    return weights / "tokenizer.json"


@pytest.fixture(scope="module")
def ours(file: Path) -> WordPiece:
    return WordPiece.read(file)


@pytest.fixture(scope="module")
def theirs(file: Path) -> Tokenizer:
    tokenizer = Tokenizer.from_file(str(file))
    tokenizer.enable_padding()
    tokenizer.no_truncation()
    return tokenizer


def check(ours: WordPiece, theirs: Tokenizer, texts: list[str]) -> None:
    numbers, mask = ours.encode(texts, 10_000)
    expected = theirs.encode_batch(texts)
    assert numbers.tolist() == [each.ids for each in expected]
    assert mask.tolist() == [each.attention_mask for each in expected]


@given(
    st.lists(
        st.text(SETTLED, max_size=40)
        | st.text("aAbz9éÉİßΣς#-'_ ½漢字\t\n\0\u200b\ufffd\u0301🙂", max_size=40)
        | st.lists(
            st.sampled_from(
                ["[SEP]", "[CLS]", "[MASK]", "[UNK]", "[sep]", "##s", "sales", "a" * 101]
            )
        ).map("".join),
        min_size=1,
        max_size=4,
    )
)
def test_a_text_has_the_numbers_that_tokenizers_gives_it(
    ours: WordPiece, theirs: Tokenizer, texts: list[str]
) -> None:
    check(ours, theirs, texts)


def test_prompts_have_the_numbers_that_tokenizers_gives_them(
    ours: WordPiece, theirs: Tokenizer
) -> None:
    lines = PROMPTS.read_text(encoding="utf-8").splitlines()
    check(ours, theirs, [json.loads(line)["text"] for line in lines])


def test_every_character_is_read_as_tokenizers_reads_it(ours: WordPiece, theirs: Tokenizer) -> None:
    settled = [
        f"ab{chr(code)}cd"
        for code in [*range(0xD800), *range(0xE000, 0x3_0000)]
        if unicodedata.category(chr(code)) == unicodedata.ucd_3_2_0.category(chr(code))
    ]
    check(ours, theirs, settled)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda said: said["model"].pop("vocab"), "KeyError: 'vocab'"),
        (lambda said: said["model"].update(type="BPE"), "expected that of an uncased BERT model"),
    ],
)
def test_a_tokenizer_of_another_kind_is_refused(
    file: Path, tmp_path: Path, change: Any, message: str
) -> None:
    said = json.loads(file.read_text(encoding="utf-8"))
    change(said)
    other = tmp_path / "tokenizer.json"
    other.write_text(json.dumps(said), encoding="utf-8")
    with pytest.raises(WeightsUnavailable, match=message):
        WordPiece.read(other)
