"""Records and notes as text that tells whether it is still what was written.

    <sha256 of everything after this line>
    {"change":…,"cost_s":…,"created_s":…,…,"vector":"<base64 of little-endian float32>"}
    <body>

Only the head is JSON of ours: the body is JSON text already, and escaping it into a JSON string
makes reading a record three times as slow.
"""

import base64
import hashlib
import json
from dataclasses import replace
from typing import Annotated, NotRequired

import numpy as np
from pydantic import Field, TypeAdapter, with_config
from typing_extensions import TypedDict

from semcache.canonical import JsonObject
from semcache.errors import InvalidInput
from semcache.ports import Record, Vector
from semcache.schemas import STRICT, read
from semcache.stores.vectors.ranking import checked_vector

_SEAL = 65  # hex digits and a line feed


@with_config(STRICT)
class _Head(TypedDict):
    tenant: str
    id: str
    keys: tuple[str, ...]
    labels: tuple[str, ...]
    vector: str | None
    embedder: str
    created_s: float
    expires_s: float | None
    change: Annotated[int, Field(ge=0, lt=2**63)]
    cost_s: NotRequired[float]
    """Not told before there were bounds by worth."""


_HEAD = TypeAdapter(_Head)


def check_text(*texts: str) -> None:
    """Return if all `texts` can be stored.

    Raises:
        InvalidInput: one of them holds a lone surrogate.
    """
    for text in texts:
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise InvalidInput(
                f"text to be stored holds a lone surrogate at {error.start}; "
                "expected valid Unicode text"
            ) from error


def check_record(record: Record) -> None:
    """Return if all text of `record` can be stored.

    Raises:
        InvalidInput: some of it holds a lone surrogate.
    """
    check_text(record.tenant, record.id, *record.keys, *record.labels, record.body)


def seal(text: str) -> str:
    """Return valid `text` below a line with its checksum."""
    return f"{hashlib.sha256(text.encode()).hexdigest()}\n{text}"


def unseal(sealed: bytes) -> str:
    """Return the text that `seal` was given.

    Raises:
        ValueError: these are not the bytes that were written.
    """
    text = sealed[_SEAL:]
    if hashlib.sha256(text).hexdigest().encode() + b"\n" != sealed[:_SEAL]:
        raise ValueError("the checksum is not that of the content")
    return text.decode()


def encode(record: Record) -> str:
    """Return `record` as sealed text.

    Raises:
        InvalidVector: a vector of the wrong shape or dtype, or not finite.
    """
    head: JsonObject = {
        "change": record.change,
        "cost_s": record.cost_s,
        "created_s": record.created_s,
        "embedder": record.embedder,
        "expires_s": record.expires_s,
        "id": record.id,
        "keys": list(record.keys),
        "labels": list(record.labels),
        "tenant": record.tenant,
        "vector": _vector_text(record.vector),
    }
    return seal(json.dumps(head, separators=(",", ":")) + "\n" + record.body)


def decode(sealed: bytes) -> Record:
    """Return the record that `encode` was given.

    Raises:
        ValueError: these are not the bytes that were written, or it was no record.
    """
    head, _, body = unseal(sealed).partition("\n")
    fields = read(_HEAD, head, what="the head of a record")
    return Record(
        tenant=fields["tenant"],
        id=fields["id"],
        keys=fields["keys"],
        labels=fields["labels"],
        body=body,
        vector=_vector(fields["vector"]),
        embedder=fields["embedder"],
        created_s=fields["created_s"],
        expires_s=fields["expires_s"],
        change=fields["change"],
        cost_s=fields.get("cost_s", 1.0),
    )


def checksum(record: Record) -> bytes:
    """Return the SHA-256 of everything in `record`."""
    head = [
        record.tenant,
        record.id,
        record.change,
        record.keys,
        record.labels,
        record.embedder,
        record.created_s,
        record.expires_s,
        record.cost_s,
    ]
    digest = hashlib.sha256(json.dumps(head, separators=(",", ":")).encode())
    digest.update(b"\n" + record.body.encode() + b"\n")
    if record.vector is not None:
        digest.update(record.vector.astype("<f4").tobytes())
    return digest.digest()


def checked(record: Record) -> Record:
    """Return `record` with numbers and vector as they come back.

    Raises:
        InvalidVector: a vector of the wrong shape or dtype, or not finite.
    """
    return replace(
        record,
        vector=None if record.vector is None else checked_vector(record.vector, None),
        created_s=float(record.created_s),
        expires_s=None if record.expires_s is None else float(record.expires_s),
        cost_s=float(record.cost_s),
    )


def _vector_text(vector: Vector | None) -> str | None:
    if vector is None:
        return None
    return base64.b64encode(checked_vector(vector, None).astype("<f4").tobytes()).decode()


def _vector(text: str | None) -> Vector | None:
    if text is None:
        return None
    vector = np.frombuffer(base64.b64decode(text, validate=True), dtype="<f4")
    if not np.isfinite(vector).all():
        raise ValueError("the vector is not finite")
    return vector
