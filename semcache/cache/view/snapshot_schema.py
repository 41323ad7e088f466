"""The schemas of a snapshot: of its first line, of its plan groups, and of one entry's row.

Rows are checked when they are first asked for, as they are unpacked: of a hundred thousand most
never are.
"""

from typing import Annotated, TypeVar

from pydantic import AfterValidator, Field, TypeAdapter, with_config
from typing_extensions import TypedDict

from semcache.canonical import loads
from semcache.errors import InvalidJson, StoreCorrupt
from semcache.prompts.tokens import SLOT
from semcache.schemas import STRICT, Count, Value, read

T = TypeVar("T")

_Ids = tuple[str, ...]
_Counts = dict[str, Count]
_Fixed = tuple[Annotated[int, Field(ge=0, lt=10_000)], ...]
_Slot = tuple[str, str, str, str, Value, bool]
_Slots = list[_Slot]


_EXAMPLES = TypeAdapter(list[list[tuple[Annotated[str, Field(pattern=r"\S")], Value, str | None]]])


def _of_parameters(text: str) -> str:
    _EXAMPLES.validate_json(text, strict=True)
    return text


def _json(text: str) -> str:
    loads(text)
    return text


_JsonText = Annotated[str, AfterValidator(_json)]
_Examples = Annotated[str, AfterValidator(_of_parameters)]


@with_config(STRICT)
class _Kinds(TypedDict):
    sizes: _Counts
    shared: list[tuple[str, str, Count]]
    kinds: dict[str, str]


@with_config(STRICT)
class _Learned(TypedDict):
    phrases: list[tuple[str, str, str]]
    types: dict[str, _Counts]
    values: list[tuple[str, str, dict[_JsonText, Count]]]
    copied: dict[str, tuple[Count, Count]]
    looks: list[tuple[str, str, list[tuple[str, bool, Count]]]]
    kinds: _Kinds


@with_config(STRICT)
class _Skeletons(TypedDict):
    literals: dict[str, tuple[str, ...]]
    filed: dict[str, _Ids]
    uses: _Counts


def _paired(texts: list[str]) -> list[str]:
    if len(texts) % 2:
        raise ValueError("`texts` are texts and ids by turns; the last text has no id")
    return texts


@with_config(STRICT)
class SnapshotHead(TypedDict):
    """The first line of a snapshot."""

    format: int
    change: Count
    embedder: str
    ids: list[str]
    texts: Annotated[list[str], AfterValidator(_paired)]
    exact: list[tuple[str, tuple[tuple[int, str], ...], _Ids]]
    fixed: list[tuple[str, list[tuple[_Fixed, Count]]]]
    without_given: list[tuple[str, _Ids]]
    vocabulary: _Counts
    learned: _Learned
    skeletons: _Skeletons


Row = tuple[
    str, _Slots, _Ids, str, str, str, _Examples, _Fixed, Count, str, str,
    tuple[str, _Slots] | None, tuple[tuple[str, str, bool], ...],
]  # fmt: skip
"""What `Seen.pack` writes."""


def _agrees(row: Row) -> Row:
    text, slots, fixed, bare = row[0], row[1], row[7], row[11]
    for said, listed in ((text, slots), *([] if bare is None else [bare])):
        if len(SLOT.findall(said)) != len(listed):
            raise ValueError("its text has other slots than are listed")
    if any(position >= len(slots) for position in fixed):
        raise ValueError("it fixes a slot that there is not")
    return row


HEAD = TypeAdapter(SnapshotHead)
ROW: TypeAdapter[Row] = TypeAdapter(Annotated[Row, AfterValidator(_agrees)])


def checked(schema: TypeAdapter[T], line: bytes) -> T:
    """Return what a line of a snapshot holds.

    Raises:
        StoreCorrupt: it is not what was written.
    """
    try:
        return read(schema, line, what="a line of it")
    except InvalidJson as error:
        raise StoreCorrupt(f"the snapshot of a view cannot be read: {error}") from error
