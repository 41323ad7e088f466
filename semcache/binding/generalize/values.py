"""Values that a plan may depend on: which parameter a mention carries, how near a leaf is to it."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from semcache.binding.bindings import Filling, Pin
from semcache.binding.codecs import alike, number_text, spelling
from semcache.binding.leaves import GENERIC, Leaf
from semcache.canonical import Json, Pointer
from semcache.canonical import leaves as leaves_of
from semcache.prompts.mentions import Mention, possible_values
from semcache.prompts.parameter import Parameter, name_key, type_key
from semcache.prompts.recognizers.dates import days


@dataclass(frozen=True, slots=True)
class Owned:
    """The mentions of a prompt, told apart by what they carry."""

    carriers: tuple[str, ...]
    """For each mention, in order, the parameter it carries: a given one, or its own (`number1`)."""
    own: Mapping[str, Mention]
    """Mentions that belong to no given parameter, by the name they get."""
    by_param: Mapping[str, Mention]
    """Given parameter → the first mention that carries it."""


def owners(mentions: Sequence[Mention], params: Sequence[Parameter]) -> Owned:
    """Return which parameter each of `mentions` carries.

    A mention that belongs to none gets a name of its own: its kind and a number, `date1` for the
    first date of the prompt that no parameter has.
    """
    by_key = {name_key(p.name): p.name for p in params}
    claimed: dict[str, Mention] = {}
    carriers: list[str | None] = [_given(mention, by_key, claimed) for mention in mentions]
    spoken: dict[str, list[str]] = defaultdict(list)
    for param in params:
        if param.mention and param.name not in claimed:
            spoken[param.mention.casefold()].append(param.name)
    for i, mention in enumerate(mentions):
        waiting = spoken[mention.text.casefold()] if carriers[i] is None else []
        if waiting:
            carriers[i] = waiting.pop(0)
            claimed[str(carriers[i])] = mention
    own = _own(mentions, carriers, set(by_key))
    return Owned(tuple(map(str, carriers)), own, claimed)


def _given(mention: Mention, by_key: Mapping[str, str], claimed: dict[str, Mention]) -> str | None:
    name = by_key.get(name_key(mention.name)) if mention.name else None
    if name is None or mention.source != "given":
        return None
    claimed.setdefault(name, mention)
    return name


def _own(
    mentions: Sequence[Mention], carriers: list[str | None], taken: set[str]
) -> dict[str, Mention]:
    own: dict[str, Mention] = {}
    seen: Counter[str] = Counter()
    for i, mention in enumerate(mentions):
        if carriers[i] is not None:
            continue
        name = _free(mention.kind, seen, taken)
        carriers[i] = name
        own[name] = mention
    return own


def _free(kind: str, seen: Counter[str], taken: set[str]) -> str:
    while True:
        seen[kind] += 1
        name = f"{kind}{seen[kind]}"
        if name_key(name) not in taken:
            taken.add(name_key(name))
            return name


Key: TypeAlias = tuple[str, Pointer]
"""Which party: its parameter, and the path into the value."""


@dataclass(frozen=True, slots=True)
class Party:
    """A parameter, a part of one, or a mention of the prompt that belongs to no parameter."""

    param: str
    path: Pointer
    """Which part of the parameter's value; empty for the whole."""
    value: Json
    """The value in the source prompt."""
    forms: tuple[Json, ...]
    """What a leaf may equal."""
    words: tuple[str, ...]
    """Text that must not be left anywhere in the plan if the value is to vary."""
    declared: bool = True
    """Whether a planner or caller named it; else it is a mention that nobody explained."""
    placed: bool = False
    """Whether a placeholder of the plan names it."""
    names: tuple[str, ...] = ()
    """By what names it goes, spelled alike."""

    @property
    def key(self) -> Key:
        """Its parameter, and the path into the value."""
        return self.param, self.path

    @property
    def telling(self) -> bool:
        """Whether a name says what the value is, so that another name means something else."""
        return self.declared and not any(
            name in GENERIC or len(type_key(name)) <= 2 for name in self.names
        )


def parties_of(
    given: Sequence[Parameter], owned: Owned, leaves: Sequence[Leaf], filled: Sequence[Filling]
) -> tuple[list[Party], list[Pin]]:
    """Return every party, and a pin on the shape of each object or array that was taken apart.

    An object or array stays whole where the plan has it whole; else its parts are parties.
    """
    whole = {spelling(leaf.value) for leaf in leaves if isinstance(leaf.value, dict | list)}
    placed = {(b.param, b.path) for b in filled}
    parties: list[Party] = []
    shapes: list[Pin] = []
    for param in given:
        mention = owned.by_param.get(param.name)
        said = tuple(filter(None, {param.mention, mention.text if mention else None}))
        parts = _parts(param, whole=whole, placed=placed)
        parties += [_declared(param.name, path, part, said, placed) for path, part in parts]
        if parts[0][0]:
            shapes.append(Pin(param.name, param.value, "shape"))
    parties += [_undeclared(name, mention) for name, mention in owned.own.items()]
    return parties, shapes


def _parts(param: Parameter, *, whole: set[str], placed: set[Key]) -> list[tuple[Pointer, Json]]:
    value = param.value
    apart = isinstance(value, dict | list) and value
    if not apart or (param.name, ()) in placed or spelling(value) in whole:
        return [((), value)]
    return list(leaves_of(value))


_STRUCTURAL = frozenset({"aggregate", "function", "operator"})  # they shape the plan: A-4


def _declared(
    param: str, path: Pointer, value: Json, said: tuple[str, ...], placed: set[Key]
) -> Party:
    by_placeholder = any((param, path[:size]) in placed for size in range(len(path) + 1))
    shaping = bool(path) and path[-1] in _STRUCTURAL
    # Of "03/07/2024" one day is the value; the other one in the plan is as much of these words.
    either = [day for words in said for day in days(words)]
    return Party(
        param=param,
        path=path,
        value=value,
        forms=() if shaping or value is None else (value,),
        words=tuple(dict.fromkeys((*_texts(value), *said, *either))),
        placed=by_placeholder,
        names=names_of(param, path),
    )


def _undeclared(name: str, mention: Mention) -> Party:
    sure = mention.value is not None and not (
        mention.relative and not alike(mention.value, mention.text)
    )
    forms: tuple[Json, ...] = (mention.value, mention.text) if sure else (mention.text,)
    forms += possible_values(mention.kind, mention.text, mention.value)
    return Party(
        param=name,
        path=(),
        value=forms[0],
        forms=forms,
        words=tuple(dict.fromkeys((*_texts(forms[0]), mention.text))),
        declared=False,
        names=(name_key(mention.kind),),
    )


def _texts(value: Json) -> Iterator[str]:
    for _, leaf in leaves_of(value):
        if isinstance(leaf, str):
            yield leaf
        elif isinstance(leaf, int | float) and not isinstance(leaf, bool):
            yield number_text(leaf)


def names_of(param: str, path: Pointer) -> tuple[str, ...]:
    """Return the names of a part of a parameter; tails such as `operand` say nothing."""
    parts = [part for part in (*param.split("."), *path) if isinstance(part, str)]
    full = name_key("_".join(parts))
    while len(parts) > 1 and name_key(parts[-1]) in GENERIC:
        parts.pop()
    return tuple(dict.fromkeys((full, name_key("_".join(parts)))))


_COUNTS = frozenset({
    "amount_of", "count", "first", "how_many", "k", "limit", "max_results", "n", "num", "number",
    "number_of_results", "page_size", "rows", "size", "take", "top",
})  # fmt: skip
"""Names of how many things are wanted: they stand for each other."""

EXACT, TYPE, NEAR, NONE = 3, 2, 1, 0
"""How near the names of a party and a leaf are. Equal names; names equal but for a number
(`city_name0`, `city_name`); a word in common; nothing."""


def affinity(party: Party, leaf: Leaf) -> int:
    """Return how near the names of `party` and `leaf` are: EXACT, TYPE, NEAR or NONE."""
    if any(name in leaf.names for name in party.names):
        return EXACT
    mine, its = {type_key(n) for n in party.names}, {type_key(n) for n in leaf.names}
    if (mine & its) - GENERIC:
        # `city0` and `city1` are two cities; `city` may be either.
        return NONE if _numbered(party.names) and _numbered(leaf.names) else TYPE
    if mine & _COUNTS and its & _COUNTS:
        return NEAR
    return NEAR if _tokens(mine) & _tokens(its) else NONE


def _numbered(names: tuple[str, ...]) -> bool:
    return any(part.isdigit() for name in names for part in name.split("_"))


def _tokens(names: set[str]) -> set[str]:
    return {part for name in names for part in name.split("_") if len(part) > 1} - GENERIC


COMMON, SHORT, WORD, RARE = 0, 1, 2, 3
"""How unlikely it is that a plan has a value by chance. `true`, 0, 1, the empty text; a short or
round number, a letter or two; a word, a year; a code, a name of several words."""


def rarity(value: Json) -> int:
    """Return how unlikely a plan has `value` by chance: COMMON, SHORT, WORD or RARE."""
    match value:
        case None | bool():
            return COMMON
        case int() | float():
            return _number_rarity(str(abs(value)))
        case str():
            return _text_rarity(value)
        case list() | dict() if not value:
            return COMMON
        case list():
            return RARE if len(value) > 1 else rarity(value[0])
        case dict():
            return RARE if len(value) > 1 else rarity(next(iter(value.values())))


def _number_rarity(digits: str) -> int:
    if digits in {"0", "1", "0.0", "1.0"}:
        return COMMON
    significant = len(digits.replace(".", "").strip("0"))
    return SHORT if significant <= 2 else WORD if significant <= 4 else RARE


_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def _text_rarity(value: str) -> int:
    value = value.strip()
    if _NUMBER.fullmatch(value):
        return _number_rarity(value.lstrip("-"))
    if value.casefold() in {"true", "false", "null", "none", "yes", "no", ""}:
        return COMMON
    size = sum(c.isalnum() for c in value)
    mixed = any(c.isdigit() for c in value) and size >= 5
    several = len(value.split()) > 1 and size >= 8
    if mixed or several or size >= 12:
        return RARE
    return WORD if size > 2 else SHORT
