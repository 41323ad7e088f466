"""A view as text, so that the next process need not derive it from every record again.

    {"format":1,"change":…,"embedder":…,"learned":…,…}     one line of JSON
    […]                                                     the groups: `PlanGroupSets.pack`
    […]                                                     one line an entry: `EntrySummary.pack`

Vectors are not in it: an index saves itself. Whether the text is what was written, and written for
this very store, is for the one who kept it to find out; see `Views`.
"""

import json
from collections import Counter
from typing import TYPE_CHECKING

from semcache.cache.view.summaries import EntrySummaries
from semcache.cache.view.view import Place, View
from semcache.canonical import Json, JsonObject
from semcache.errors import StoreCorrupt
from semcache.matching.plan_groups import PlanGroupSets
from semcache.ports import VectorIndex
from semcache.prompts.recognizers.learned_values import LearnedValues
from semcache.prompts.unseen.alignment import Skeletons

if TYPE_CHECKING:
    from semcache.cache.view.snapshot_schema import SnapshotHead

FORMAT = 8
"""Raised with every change to what a view derives; a snapshot of another format is not read."""


def pack_view(view: View, *, change: int, embedder: str) -> bytes:
    """Return `view`, caught up with `change`, as text."""
    rows = dict(view.entries.packed())
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
    # Beside its user: pydantic takes longer to load than all of semcache.
    from semcache.cache.view.snapshot_schema import HEAD, checked  # noqa: PLC0415

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
