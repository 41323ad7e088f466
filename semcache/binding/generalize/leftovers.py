"""Leftovers: words of the source prompt that stay in a plan, and for how long it may be served."""

import re
import unicodedata
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass

from semcache.binding.bindings import Binding, Filling
from semcache.binding.codecs import alike, number_text
from semcache.binding.generalize.derivation import derived_pairs, derives
from semcache.binding.generalize.values import SHORT, Owned, Party, rarity
from semcache.binding.leaves import Leaf
from semcache.canonical import Json, Pointer
from semcache.plans.program import REFERENCE
from semcache.prompts.mentions import Mention
from semcache.prompts.parameter import Parameter, name_key

_TOKEN = re.compile(r"\d+\.\d+|\w+")
_SEPARATORS = re.compile(r"[\W_]+")
_GLUED = 8  # letters and digits; "sanfrancisco" in "SanFranciscoAirport" is no chance


@dataclass(frozen=True, slots=True)
class Haystack:
    """The text of a plan that stays as it is for every prompt, prepared for many searches."""

    tokens: frozenset[str]
    """Words, with numbers apart: `alias1` is one, `1` in it is none."""
    words: str
    """All text with one space for whatever stands between letters and digits."""
    glued: str
    """The same without the spaces inside each text."""

    @classmethod
    def of(cls, texts: Iterable[str]) -> "Haystack":
        """Return the haystack of `texts`."""
        flat = [_fold(text) for text in texts]
        apart = [_SEPARATORS.sub(" ", text).strip() for text in flat]
        return cls(
            tokens=frozenset(token for text in flat for token in _TOKEN.findall(text)),
            words=" | ".join(["", *apart, ""]),
            glued="|".join(text.replace(" ", "") for text in apart),
        )

    def has(self, words: str) -> bool:
        """Return whether `words` stand in it, in any case and however separated."""
        flat = _fold(words).strip()
        apart = _SEPARATORS.sub(" ", flat).strip()
        if not apart:
            return False
        if rarity(words) <= SHORT:
            return flat in self.tokens if _TOKEN.fullmatch(flat) else f" {apart} " in self.words
        if f" {apart} " in self.words:
            return True
        glued = apart.replace(" ", "")
        return len(glued) >= _GLUED and glued in self.glued


def _fold(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()


class Unbound:
    """What of a plan stays as it is for every prompt."""

    def __init__(
        self,
        leaves: Sequence[Leaf],
        fillings: Sequence[Filling],
        parties: Sequence[Party],
        own: frozenset[str] = frozenset(),
    ) -> None:
        """Look at what `fillings` leave; `own` are the plan's names for its own results."""
        bound = frozenset(filling.at for filling in fillings)
        free = [leaf for leaf in leaves if leaf.role != "name" and not leaf.is_within(bound)]
        names = {name for party in parties for name in party.names}
        # Keys that are names of parameters say nothing of values: `{"higher_or_lower": "lower"}`.
        keys = {part for leaf in free for part in _path(leaf) if isinstance(part, str)} - own
        spans = sorted(f.at for f in fillings if f.in_text)
        texts = [text for leaf in free for text in _left(leaf, spans) if text]
        texts += sorted(key for key in keys if name_key(key) not in names)
        texts = [_unread(text, own) for text in texts] if own else texts
        data = [leaf for leaf in free if leaf.role == "data" and _text(leaf)]
        self._constants: tuple[Json, ...] = tuple(
            leaf.value if text == _text(leaf) else text
            for leaf in data
            for text in _left(leaf, spans)
            if leaf.rest is None and text.strip()
        )
        self._rests = tuple(leaf.rest for leaf in data if leaf.rest)
        self._texts = tuple((text, _without(text, names)) for text in texts)
        self._all = Haystack.of(rest for _, rest in self._texts)

    def has(self, party: Party) -> bool:
        """Return whether words of `party` stay in the plan, so that another value would be a lie.

        A text that calls the parameter by name (`... -{ago} year' LIMIT 1`) is filled in by the
        operation: a short number in it is the text's own.
        """
        left = [words for words in party.words if self._all.has(words)]
        if not left or any(rarity(words) > SHORT for words in left):
            return bool(left)
        texts = Haystack.of(rest for text, rest in self._texts if not _calls(text, party))
        return any(texts.has(words) for words in left)

    def follows(self, value: Json) -> bool:
        """Return whether a constant that the plan hands to operations may follow from `value`."""
        if any(derives(value, constant) for constant in self._constants):
            return True
        # What is beside the values of SQL are its own words.
        return any(derives(value, text, words=False) for text in self._rests)

    def following_pairs(self, values: Sequence[Json]) -> set[int]:
        """Return the places of values from two of which a number that stays may follow."""
        return derived_pairs(values, self._constants)

    def says(self, words: str) -> bool:
        """Return whether `words` stay in the plan."""
        return self._all.has(words)

    @property
    def texts(self) -> Sequence[str]:
        """Every text and number that stays, without the names of parameters in it."""
        return tuple(rest for _, rest in self._texts)

    @property
    def numbers(self) -> bool:
        """Whether a whole value that stays is a number, or text that spells one."""
        return any(_SPELLS_NUMBER.fullmatch(text) for text in self.texts)


_SPELLS_NUMBER = re.compile(r"\s*-?\d+(?:\.\d+)?\s*")
_MARKED = re.compile(r"(?:[{:@?<$]|%\()(\w+)")
_WORD = re.compile(r"\w+")
_COMPOUND = re.compile(r"[a-z][_\dA-Z]")
"""Is in a word made of several, which is a name and no word of a language."""


def _text(leaf: Leaf) -> str:
    if isinstance(leaf.value, str):
        return leaf.value
    if isinstance(leaf.value, bool) or not isinstance(leaf.value, int | float):
        return ""
    return number_text(leaf.value) if leaf.role == "data" else ""


def _path(leaf: Leaf) -> Pointer:
    return leaf.at if leaf.text is None else leaf.text.inside


def _left(leaf: Leaf, spans: Sequence[Pointer]) -> Iterator[str]:
    """Yield what a leaf says beside what is bound in it."""
    if leaf.rest is not None:
        yield leaf.rest
        return
    text, place = _text(leaf), 0
    at, first, end = leaf.at, 0, len(text)
    if leaf.text is not None:
        at, (first, end) = leaf.text.at, map(int, leaf.at[-2:])
    plain = end - first == len(text)  # each character is spelled by one
    for span in spans if isinstance(leaf.value, str) and plain else ():
        if span[:-2] == at and first <= int(span[-2]) and int(span[-1]) <= end:
            yield text[place : int(span[-2]) - first]
            place = int(span[-1]) - first
    yield text[place:]


def _unread(text: str, own: frozenset[str]) -> str:
    """Return `text` without the references in it to the plan's own results."""
    return REFERENCE.sub(lambda m: " " if _first(m) in own else m[0], text)


def _first(match: re.Match[str]) -> str:
    path: str = match["braced"] or match["dollar"]
    return path.partition(".")[0]


def _calls(text: str, party: Party) -> bool:
    return any(name_key(name) in party.names for name in _MARKED.findall(text))


def _without(text: str, names: set[str]) -> str:
    """Return `text` without names of parameters in it, where they are surely names."""
    text = _MARKED.sub(lambda m: " " if name_key(m[1]) in names else m[0], text)
    return _WORD.sub(
        lambda m: " " if _COMPOUND.search(m[0]) and name_key(m[0]) in names else m[0], text
    )


# Lifetime: for how long a plan may be served, given words whose meaning changes with the time.

_DATE = re.compile(r"(?<!\d)(?:(?:19|20|21)\d\d(?:\d{4})?|1\d{9}(?:\d{3})?)(?!\d)")
_TIME = re.compile(r"(?<!\d)(?:\d{1,2}:\d\d|1\d{9}(?:\d{3})?)(?!\d)")
_SUB_DAY = re.compile(
    r"\b(?:now|moments?|seconds?|secs?|minutes?|mins?|hours?|hrs?)\b", re.IGNORECASE
)
# What SQL and the usual languages call the clock: a plan with one of these asks for the time when
# it runs, and froze nothing.
_CLOCK = re.compile(
    r"\b(?:now|today|current_(?:time|date|timestamp)|getdate|sysdate|curdate|curtime|utcnow|"
    r"local_?time(?:stamp)?)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Lifetime:
    """For how long a plan may be served."""

    refusal: str = ""
    """Why it must not be served again at all; empty if it may."""
    perishable: str = ""
    """The words that mean something else on another day; empty if none do."""


def lifetime(
    mentions: Sequence[Mention],
    owned: Owned,
    params: Sequence[Parameter],
    bindings: Sequence[Binding],
    unbound: Unbound,
    *,
    told: Container[str] = frozenset(),
) -> Lifetime:
    """Return for how long a plan may be served whose prompt says "yesterday" or the like.

    It lasts if it hands on the words themselves, or asks the clock, and nothing of it looks like
    what the words stood for when it was made. Where the words may stand for an instant and the plan
    has one, it is over at once. `told`: parameters whose values will be given by name, so that no
    words need be understood for them.
    """
    relative = [i for i, mention in enumerate(mentions) if mention.relative]
    if not relative:
        return Lifetime()
    values = {p.name: p for p in params}
    bound = {binding.param for binding in bindings}
    handed = {
        i
        for i in relative
        if unbound.says(mentions[i].text)
        or (
            owned.carriers[i] in bound
            and (
                owned.carriers[i] in told
                or alike(values[owned.carriers[i]].value, mentions[i].text)
            )
        )
    }
    words = next(
        (mentions[i].text for i in relative if i not in handed), mentions[relative[0]].text
    )
    frozen = _Frozen.of(mentions, [p for p in params if p.name not in told], unbound)
    if frozen.time and any(_instant(mentions[i]) for i in relative if i not in handed):
        return Lifetime(
            refusal=f"{words!r} depends on when it is asked, and the plan has {frozen.time!r}"
        )
    lasts = not frozen.date and (
        frozen.clock or (len(handed) == len(relative) and not frozen.numbers)
    )
    return Lifetime(perishable="" if lasts else words)


def _instant(mention: Mention) -> bool:
    """Return whether words may stand for an instant; a bare number may be one of minutes."""
    return mention.text.isdigit() or bool(_SUB_DAY.search(mention.text))


@dataclass(frozen=True, slots=True)
class _Frozen:
    """What a plan has that its prompt does not say."""

    date: str
    time: str
    numbers: bool
    clock: bool

    @classmethod
    def of(
        cls,
        mentions: Sequence[Mention],
        params: Sequence[Parameter],
        unbound: Unbound,
    ) -> "_Frozen":
        told = " ".join(mention.text for mention in mentions if not mention.relative)
        carried = _carried(mentions, params)
        silent = [str(p.value) for p in params if p.name not in carried]
        texts = [*unbound.texts, *silent]
        return cls(
            date=_first_of(_DATE, texts, told),
            time=_first_of(_TIME, texts, told),
            numbers=bool(silent) or unbound.numbers,
            clock=any(_CLOCK.search(text) for text in unbound.texts),
        )


def _carried(mentions: Sequence[Mention], params: Sequence[Parameter]) -> set[str]:
    """Return the parameters whose value the prompt says in words that mean the same at any time."""
    fixed = {mention.text.casefold() for mention in mentions if not mention.relative}
    return {
        p.name
        for p in params
        if p.mention is not None and (p.mention.casefold() in fixed or alike(p.value, p.mention))
    }


def _first_of(pattern: re.Pattern[str], texts: Iterable[str], told: str) -> str:
    found = (match for text in texts for match in pattern.findall(text))
    return next((match for match in found if match not in told), "")
