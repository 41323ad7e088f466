"""Plan groups: entries whose plans are the same but for prompts' values, and the words they use."""

import json
from collections import Counter
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

from semcache.binding.bind import Fill
from semcache.binding.codecs import inline
from semcache.binding.template import PlanTemplate
from semcache.canonical import Json, digest
from semcache.errors import StoreCorrupt
from semcache.process.forks import Lock

if TYPE_CHECKING:
    from pydantic import TypeAdapter

_NOTHING: Mapping[str, int] = MappingProxyType({})

Saying = dict[str, str | dict[str, int]]
"""Content words, with a space between them → the group of the one entry that says just these; or
group → how many of its entries say them. Most words are said by one."""


class _Used:
    """Which words the groups use; it follows from what their entries say."""

    def __init__(self, saying: Saying) -> None:
        self.using: Counter[str] = Counter()
        self._sizes: dict[str, int] = {}
        self._words: dict[str, str | Counter[str]] = {}
        """Group → words of its entries, each with how many use it; text where it has one entry,
        as most have: a million counters would take minutes to make."""
        self.known_always: dict[str, tuple[str, ...]] = {}
        """Words that every entry of a group uses, of the groups that somebody asked for."""
        for words, by in saying.items():
            if isinstance(by, str):
                self.count(by, words, 1)
            else:
                for group, times in by.items():
                    self.count(group, words, times)

    def __len__(self) -> int:
        return len(self._words)

    def size(self, group: str) -> int:
        return self._sizes.get(group, int(group in self._words))

    def words(self, group: str) -> Mapping[str, int]:
        known = self._words.get(group, _NOTHING)
        return dict.fromkeys(known.split(), 1) if isinstance(known, str) else known

    def count(self, group: str, words: str, by: int) -> None:
        self.known_always.pop(group, None)
        if by == 1 and group not in self._words:
            self._words[group] = words
            self.using.update(set(words.split()))
            return
        size, known = self.size(group) + by, self._words.get(group)
        if not isinstance(known, Counter):
            known = Counter(self.words(group))
        for word in set(words.split()):
            before = known[word]
            known[word] += by
            self.using[word] += (known[word] > 0) - (before > 0)
            if not known[word]:
                del known[word]
            if not self.using[word]:
                del self.using[word]
        if size:
            self._sizes[group], self._words[group] = size, known
        else:
            self._sizes.pop(group, None)
            self._words.pop(group, None)

    def always(self, group: str) -> tuple[str, ...]:
        always = self.known_always.get(group)
        if always is None:
            size, words = self.size(group), self.words(group)
            # Sorted, since sums over them are rounded by their order, which sets leave to chance.
            always = tuple(sorted([word for word, times in words.items() if times == size]))
            self.known_always[group] = always
        return always


def _is_repeated(by: Mapping[str, int]) -> bool:
    return sum(by.values()) > 1


class PlanGroups:
    """Words of a tenant's groups. Changed by one thread at a time; reads need no lock.

    The words that each group uses are counted when somebody first asks: only risk does, and of a
    hundred thousand entries it takes a part of a second.
    """

    def __init__(self, saying: Saying | None = None) -> None:
        """Begin with the `saying` of other groups, or with none."""
        self.saying: Saying = {} if saying is None else saying
        """What was added; the rest follows from it."""
        self._counted: _Used | None = None
        self._repeated: tuple[int, int] | None = None
        """Sayings with more than one group, and with more than one entry; None: not counted."""
        self._lock = Lock()

    def _count_used(self) -> _Used:
        with self._lock:
            if self._counted is None:
                self._counted = _Used(self.saying)
            return self._counted

    def __len__(self) -> int:
        used = self._counted
        return len(self._count_used() if used is None else used)

    def add(self, group: str, words: tuple[str, ...]) -> None:
        """Take in an entry of `group` with these content words."""
        self._count(group, words, 1)

    def remove(self, group: str, words: tuple[str, ...]) -> None:
        """Take an entry that was added out again."""
        self._count(group, words, -1)

    def _count(self, group: str, words: tuple[str, ...], by: int) -> None:
        with self._lock:
            said = " ".join(words)
            before = self.said_by(said)
            counted = {**before, group: before.get(group, 0) + by}
            left = {name: times for name, times in counted.items() if times}
            # Replaced, not changed in place: a reader may be walking the old one.
            if not left:
                self.saying.pop(said, None)
            elif left == {group: 1}:
                self.saying[said] = group
            else:
                self.saying[said] = left
            if self._counted is not None:
                self._counted.count(group, said, by)
            if self._repeated is not None:
                contested, repeated = self._repeated
                contested += (len(left) > 1) - (len(before) > 1)
                repeated += _is_repeated(left) - _is_repeated(before)
                self._repeated = contested, repeated

    def contradictions(self) -> tuple[int, int]:
        """Return how many sayings have more than one group, and how many more than one entry."""
        known = self._repeated
        if known is not None:
            return known
        with self._lock:
            if self._repeated is None:
                shared = [by for by in self.saying.values() if not isinstance(by, str)]
                self._repeated = sum(len(by) > 1 for by in shared), len(shared)
            return self._repeated

    def said_by(self, words: str) -> Mapping[str, int]:
        """Return the groups that say just these words, each with how many of its entries do."""
        by = self.saying.get(words, _NOTHING)
        return {by: 1} if isinstance(by, str) else by

    def contested(self, group: str, words: tuple[str, ...]) -> bool:
        """Return whether as many entries with just these words are of another group."""
        saying = self.saying.get(" ".join(words), group)
        if isinstance(saying, str):
            return saying != group
        rivals = max((times for other, times in saying.items() if other != group), default=0)
        return rivals >= max(1, saying.get(group, 0))

    def size(self, group: str) -> int:
        """Return how many entries the group has."""
        used = self._counted
        # Under 0 where an edited snapshot counted less than was there, and it was taken out.
        return max(0, (self._count_used() if used is None else used).size(group))

    def words(self, group: str) -> Mapping[str, int]:
        """Return each word of the group with the number of its entries that use it."""
        used = self._counted
        return (self._count_used() if used is None else used).words(group)

    def always(self, group: str) -> tuple[str, ...]:
        """Return the words that every entry of the group uses."""
        used = self._counted
        if used is None:
            used = self._count_used()
        known = used.known_always.get(group)
        if known is not None:
            return known
        with self._lock:
            return used.always(group)

    def using(self, word: str) -> int:
        """Return how many groups use the word."""
        used = self._counted
        return (self._count_used() if used is None else used).using[word]


GroupKey: TypeAlias = tuple[bool, str, str]
"""What makes plans comparable: whether values are given, the catalog, and the grounding."""


class PlanGroupSets:
    """Group key → the groups there. Safe to read from several threads while one changes them."""

    def __init__(self, packed: bytes = b"") -> None:
        """Begin with what `pack` returned, or empty."""
        self._packed = packed
        self._sets: dict[GroupKey, PlanGroups] = {}
        self._lock = Lock()
        self.damaged = False
        """Whether what was packed is not what `pack` wrote."""

    def of(self, key: GroupKey) -> PlanGroups:
        """Return the groups of `key`, none if it is new.

        Raises:
            StoreCorrupt: what was packed is not what `pack` wrote.
        """
        known = self._sets.get(key)
        if known is not None:
            return known
        with self._lock:
            if self._packed:
                self._unpack()
            return self._sets.setdefault(key, PlanGroups())

    def are_all(self, catalog: str, grounding: str) -> bool:
        """Return whether it is known that no group has another catalog or grounding."""
        return not self._packed and all(key[1:] == (catalog, grounding) for key in [*self._sets])

    def _unpack(self) -> None:
        # Beside its user: pydantic takes longer to load than all of semcache.
        from semcache.schemas import read  # noqa: PLC0415

        shared: dict[str, str] = {}
        try:
            for key, words, groups, more in read(_schema(), self._packed, what="they"):
                # JSON makes new ones, and most words and groups are there once more where values
                # are given.
                said = [shared.setdefault(one, one) for one in words]
                alone = zip(said, [shared.setdefault(f, f) for f in groups], strict=True)
                self._sets[key] = PlanGroups({**dict(alone), **more})
        except ValueError as error:
            self.damaged = True
            raise StoreCorrupt(f"the groups of a snapshot cannot be read: {error}") from error
        self._packed = b""

    def pack(self) -> bytes:
        """Return all of it as one line of JSON; what is still packed costs nothing."""
        if self._packed:
            return self._packed
        packed = [[key, *_packed(known.saying)] for key, known in self._sets.items()]
        return json.dumps(packed, separators=(",", ":")).encode()


@cache
def _schema() -> (
    "TypeAdapter[list[tuple[GroupKey, list[str], list[str], dict[str, dict[str, int]]]]]"
):
    from pydantic import PositiveInt, TypeAdapter  # noqa: PLC0415 - as above

    counts = dict[str, dict[str, PositiveInt]]
    return TypeAdapter(list[tuple[GroupKey, list[str], list[str], counts]])


def _packed(saying: Saying) -> tuple[list[str], list[str], Saying]:
    """Return words that one entry says, the groups of those entries, and what the others say."""
    alone = {words: by for words, by in saying.items() if isinstance(by, str)}
    more = {words: by for words, by in saying.items() if words not in alone}
    return [*alone], [*alone.values()], more


_BLANK = "\0"
"""Stands for a value; no plan holds it."""


def group_name(plan: PlanTemplate, *, given: bool) -> str:
    """Return a name that plans share if they differ only in values.

    `given`: all values count as such, as they do where the caller gives them; else only those that
    words of the prompt carry: of "sales this year" the year is part of what the plan is.
    """
    return _named(plan, {} if given else _unsaid(plan))


def group_names(plan: PlanTemplate) -> tuple[str, str]:
    """Return the group of `plan` for prompts without given values, and for those with them."""
    unsaid = _unsaid(plan)
    given = _named(plan, {})
    return (_named(plan, unsaid) if unsaid else given), given


def _unsaid(plan: PlanTemplate) -> dict[str, Json]:
    """Return the values that no words of the prompt carry, by the names of their parameters."""
    said = {*plan.carriers, *plan.follows}
    return {p.name: p.value for p in plan.params if p.name not in said}


def _named(plan: PlanTemplate, values: dict[str, Json]) -> str:
    """Return the name of `plan` with `values` in it, and nothing for the others."""
    recipe = plan.recipe
    filled = [_blanked(place, values) for place in recipe.places]
    return digest(recipe.put(plan.plan, filled))[:20]


def _blanked(place: tuple[Fill, ...], values: dict[str, Json]) -> Json:
    if not place[0].binding.inline:
        binding = place[0].binding
        return values.get(binding.param, _BLANK + binding.codec)
    return "".join(
        fill.binding.before
        + (str(inline(values[fill.binding.param])) if fill.binding.param in values else _BLANK)
        + fill.binding.after
        for fill in place
    )
