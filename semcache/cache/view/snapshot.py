"""A view as text, so that the next process need not derive it from every record again.

    {"format":1,"change":…,"embedder":…,"learned":…,…}     one line of JSON
    […]                                                     the groups: `PlanGroupSets.pack`
    […]                                                     one line an entry: `pack_row`

Vectors are not in it: an index saves itself. Whether the text is what was written, and written for
this very store, is for the one who kept it to find out; see `Views`.
"""

import json
from collections import Counter
from sys import intern
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, Field, TypeAdapter, with_config
from typing_extensions import TypedDict

from semcache.cache.view.view import EntrySummaries, EntrySummary, Place, View
from semcache.canonical import Json, JsonObject, loads
from semcache.errors import InvalidJson, StoreCorrupt
from semcache.matching.gates import PinnedWords, Side
from semcache.matching.plan_groups import PlanGroupSets
from semcache.ports import VectorIndex
from semcache.process.memo import memoized
from semcache.prompts.recognizers.learned_values import LearnedValues
from semcache.prompts.template import Slot, TemplateText
from semcache.prompts.tokens import SLOT
from semcache.prompts.unseen.alignment import Skeletons
from semcache.schemas import STRICT, Count, Value, read

FORMAT = 8
"""Raised with every change to what a view derives; a snapshot of another format is not read."""


def pack_view(view: View, *, change: int, embedder: str) -> bytes:
    """Return `view`, caught up with `change`, as text."""
    rows = {
        entry_id: row if isinstance(row, bytes) else pack_row(row)
        for entry_id, row in view.entries.rows()
    }
    texts: list[Json] = []
    exact: list[Json] = []
    for (text, words), ids in view.exact.items():
        if words or len(ids) > 1:
            exact.append([text, [[*word] for word in words], [*ids]])
        else:
            texts += [text, ids[0]]
    head: JsonObject = {
        "format": FORMAT,
        "change": change,
        "embedder": embedder,
        "ids": [*rows],
        "texts": texts,
        "exact": exact,
        "fixed": [
            [text, [[[*fixed], count] for fixed, count in ways.items()]]
            for text, ways in view.fixed.items()
        ],
        "without_given": [[text, [*ids]] for text, ids in view.without_given.items()],
        "vocabulary": dict(view.vocabulary),
        "learned": view.learned.to_json(),
        "skeletons": view.skeletons.to_json(),
    }
    first = json.dumps(head, separators=(",", ":"), allow_nan=False).encode()
    return b"\n".join([first, view.groups.pack(), *rows.values()])


def unpack_view(content: bytes, index: VectorIndex, *, embedder: str) -> tuple[View, int]:
    """Return the view that `pack_view` was given, and the change that it is caught up with.

    Raises:
        StoreCorrupt: it is not what was written, or another version wrote it, or for another
            embedder.
    """
    first, *rest = content.split(b"\n")
    head = checked(HEAD, first)
    if (head["format"], head["embedder"]) != (FORMAT, embedder):
        raise StoreCorrupt("the snapshot of a view is of another version or embedder")
    try:
        groups, *rows = rest
        view = View(
            index=index,
            learned=LearnedValues.from_json({**head["learned"]}),
            skeletons=Skeletons.from_json({**head["skeletons"]}),
            groups=PlanGroupSets(groups),
            vocabulary=Counter(head["vocabulary"]),
            entries=EntrySummaries(dict(zip(head["ids"], rows, strict=True))),
            exact=_exact(head),
            without_given=dict(head["without_given"]),
            fixed={text: Counter(dict(ways)) for text, ways in head["fixed"]},
        )
    except ValueError as error:  # there are other rows than the ids say
        raise StoreCorrupt(f"the snapshot of a view cannot be read: {error}") from error
    return view, head["change"]


def _exact(head: "SnapshotHead") -> dict[Place, tuple[str, ...]]:
    texts, known = head["texts"], {entry_id: entry_id for entry_id in head["ids"]}
    exact: dict[Place, tuple[str, ...]] = {
        (text, ()): (known.get(entry_id, entry_id),)  # `json` made another one of it
        for text, entry_id in zip(texts[::2], texts[1::2], strict=True)
    }
    for text, words, ids in head["exact"]:
        exact[text, words] = ids
    return exact


def pack_row(seen: EntrySummary) -> bytes:
    """Return what is known of an entry as one line of JSON."""
    template, names, catalog, grounding, _, held = seen.side
    row: list[Json] = [*_packed(template), [*sorted(names)], catalog, grounding]
    row += [seen.label, seen.examples, [*seen.fixed], seen.change, seen.said, seen.given]
    row.append(_packed(seen.without_given) if seen.without_given is not None else None)
    row.append([[*each] for each in held])
    return json.dumps(row, separators=(",", ":"), allow_nan=False).encode()


def _packed(template: TemplateText) -> list[Json]:
    return [template.text, [[*slot] for slot in template.slots]]


def unpack_row(line: bytes) -> EntrySummary:
    """Return what `pack_row` was given.

    Raises:
        StoreCorrupt: it is not what was written.
    """
    row = checked(ROW, line)
    text, slots, names, catalog, grounding, label, examples = row[:7]
    fixed, change, said, given, bare, held = row[7:]
    return EntrySummary(
        Side(
            _unpacked(text, slots),
            _names(names),
            intern(catalog),
            intern(grounding),
            held=tuple([PinnedWords(*each) for each in held]),
        ),
        text if label == text else label,
        examples,
        fixed,
        change,
        intern(said),
        intern(given),
        None if bare is None else _unpacked(*bare),
    )


# Thousands of entries share a few dozen names, and `json` makes new ones for each.


def _unpacked(text: str, slots: list[Any]) -> TemplateText:
    return TemplateText(text, tuple([_slot(*slot) for slot in slots]))


def _slot(kind: str, name: str, before: str, *rest: Any) -> Slot:  # noqa: ANN401 - as JSON has it
    return Slot(intern(kind), intern(name), intern(before), *rest)


@memoized(2_000)
def _names(names: tuple[str, ...]) -> frozenset[str]:
    return frozenset(map(intern, names))


# The schemas of a snapshot: of its first line, of its plan groups, and of one entry's row.
#
# Rows are checked when they are first asked for, as they are unpacked: of a hundred thousand most
# never are.

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
"""What `pack_row` writes."""


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
