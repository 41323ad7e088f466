from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from semcache.errors import InvalidInput
from semcache.ports import Record
from semcache.stores.records import check_text, checksum, decode, encode, seal, unseal
from semcache.testing import make_record, same_records, unit

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
FINITE = st.floats(allow_nan=False, allow_infinity=False)
VECTORS = st.lists(st.floats(-1, 1, width=32), min_size=1, max_size=8)
RECORDS = st.builds(
    Record,
    tenant=TEXT,
    id=TEXT,
    keys=st.lists(TEXT, max_size=3).map(tuple),
    labels=st.lists(TEXT, max_size=3).map(tuple),
    body=TEXT,
    vector=st.none() | VECTORS.map(lambda row: np.array(row, np.float32)),
    embedder=TEXT,
    created_s=FINITE,
    expires_s=st.none() | FINITE,
    change=st.integers(0, 2**60),
)


@given(RECORDS)
def test_every_record_comes_back_as_it_was(record: Record) -> None:
    decoded = decode(encode(record).encode())
    assert same_records(decoded, record)
    assert decoded.change == record.change


@given(RECORDS, st.data())
def test_any_flipped_bit_of_a_record_is_found_out(record: Record, data: st.DataObject) -> None:
    sealed = bytearray(encode(record).encode())
    sealed[data.draw(st.integers(0, len(sealed) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(ValueError, match="checksum"):
        decode(bytes(sealed))


def test_a_record_cut_short_is_found_out() -> None:
    sealed = encode(make_record("a")).encode()
    for length in (0, 10, 64, 65, len(sealed) - 1):
        with pytest.raises(ValueError, match="checksum"):
            decode(sealed[:length])


@given(TEXT)
def test_sealed_text_comes_back_as_it_was(text: str) -> None:
    assert unseal(seal(text).encode()) == text


def test_a_lone_surrogate_is_bad_input() -> None:
    with pytest.raises(InvalidInput, match="lone surrogate at 2"):
        check_text("fine", "no\ud800")


def test_a_vector_keeps_every_bit_on_its_way_to_disk_and_back() -> None:
    vector = unit(*np.random.default_rng(0).standard_normal(384))
    decoded = decode(encode(make_record("a", vector=vector)).encode())
    assert decoded.vector is not None
    assert decoded.vector.tobytes() == vector.tobytes()
    assert decoded.vector.dtype == np.float32


@given(RECORDS, st.sampled_from(["tenant", "id", "body", "embedder"]), TEXT)
def test_the_checksum_tells_of_every_other_text(record: Record, name: str, text: str) -> None:
    other = replace(record, **{name: text})  # type: ignore[arg-type] # a field that is text
    assert (checksum(other) == checksum(record)) == (getattr(record, name) == text)
