"""The schema of evidence in JSON: `Evidence.to_json` writes it, for a note and for a file."""

from typing import Annotated, Literal, NotRequired

import numpy as np
from pydantic import AfterValidator, Field, TypeAdapter, with_config
from typing_extensions import TypedDict

from semcache.canonical import Json
from semcache.errors import InvalidJson
from semcache.matching.evidence import Evidence, Leanings, Tally, Weights
from semcache.matching.model.risk import score_key
from semcache.matching.samples import Sample, Samples
from semcache.schemas import MOST, STRICT, Amount, Count, validated

_Key = Annotated[str, Field(max_length=10_000)]
_Pull = Annotated[float, Field(ge=-MOST, le=MOST)]


def _score(key: str) -> str:
    if score_key(float(key)) != key:
        raise ValueError(f"hits are judged by their score in quarters; found {key!r}")
    return key


@with_config(STRICT)
class _Tally(TypedDict):
    same: dict[_Key, Amount]
    other: dict[_Key, Amount]


_Score = Annotated[str, Field(max_length=10), AfterValidator(_score)]
_Judged = Annotated[float, Field(ge=0, le=1e9)]  # what is worked out of them takes the root of it


@with_config(STRICT)
class _Record(TypedDict):
    same: dict[_Score, _Judged]
    other: dict[_Score, _Judged]


_Sample = tuple[Annotated[float, Field(ge=-1000, le=1000)], bool]


@with_config(STRICT)
class _Samples(TypedDict):
    scale: _Key
    kept: list[Annotated[_Sample, Field(strict=False)]]


@with_config(STRICT)
class EvidenceDoc(TypedDict):
    """Evidence as JSON. What may be missing was not learned from the first."""

    format: Literal[2]
    words: _Tally
    pairs: _Tally
    families: _Tally
    record: _Record
    kinds: NotRequired[_Tally]
    supposed: NotRequired[_Tally]
    doubted: NotRequired[_Tally]
    values: NotRequired[_Tally]
    chosen: NotRequired[_Tally]
    samples: NotRequired[_Samples]
    labels: Count
    same: Count
    precision: list[Amount] | None
    pull: list[_Pull] | None
    leanings: dict[_Key, Annotated[tuple[Amount, _Pull], Field(strict=False)]]


def _agrees(doc: EvidenceDoc) -> EvidenceDoc:
    if doc["same"] > doc["labels"]:
        raise ValueError(f"of {doc['labels']} labels {doc['same']} had the same plan")
    if (doc["precision"] is None) != (doc["pull"] is None):
        raise ValueError("weights have both precision and pull, or neither")
    return doc


_SCHEMA: TypeAdapter[EvidenceDoc] = TypeAdapter(Annotated[EvidenceDoc, AfterValidator(_agrees)])


def read_evidence(body: Json, *, weights: int) -> Evidence:
    """Return the evidence that `to_json` wrote, with so many `weights`, or none.

    Raises:
        InvalidJson: it is of another version, or otherwise than that.
    """
    doc = validated(_SCHEMA, body, what="evidence")
    evidence = Evidence(
        words=_tally(doc["words"]),
        kinds=_tally(doc.get("kinds")),
        pairs=_tally(doc["pairs"]),
        families=_tally(doc["families"]),
        supposed=_tally(doc.get("supposed")),
        doubted=_tally(doc.get("doubted")),
        values=_tally(doc.get("values")),
        chosen=_tally(doc.get("chosen")),
        record=_tally(doc["record"]),
        samples=_samples(doc.get("samples")),
        labels=doc["labels"],
        same=doc["same"],
        precision=_weights(doc["precision"], weights),
        pull=_weights(doc["pull"], weights),
        leanings=Leanings(doc["leanings"]),
    )
    evidence.trim()
    return evidence


def _tally(doc: "_Tally | _Record | None") -> Tally:
    return Tally() if doc is None else Tally(doc["same"], doc["other"])


def _samples(doc: _Samples | None) -> Samples:
    if doc is None:
        return Samples()
    return Samples(doc["scale"], [Sample(round(score, 2), right) for score, right in doc["kept"]])


def _weights(values: list[float] | None, count: int) -> Weights | None:
    if values is not None and len(values) != count:
        raise InvalidJson(f"evidence has {len(values)} weights; the risk model has {count}")
    return None if values is None else np.array(values, dtype=np.float64)
