"""Redaction: what of a prompt may be written down, where a caller says what may not.

The values of a prompt are read from its own words, and they reach its plan. Only what is embedded,
stored, logged or traced has been through the caller's hook. So that two prompts that differ in what
is hidden are not taken for the same, everything hidden is a mention: it is masked by its kind, it
must be bound to be served with other words, and a plan that holds it unbound is not kept.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from functools import cached_property
from typing import TypeAlias

from semcache.canonical import Json
from semcache.errors import InvalidInput
from semcache.prompts.mentions import Mention
from semcache.prompts.parameter import Parameter

Redact: TypeAlias = Callable[[str], str]
"""Returns a text without what must not be written down; the same text in, the same text out."""

KIND = "redacted"
"""Kind of a mention that nothing but the hook found."""
HIDDEN = "\u2039redacted\u203a"
"""Stands for what is hidden in a text."""
COMPARED = 4_000
"""Words and signs that are compared one by one; a longer stretch is hidden as a whole."""

# White space is nothing to go by: it is the same between any two words.
_TOKEN = re.compile(r"\w+|[^\w\s]")
_RUN = re.compile(r"[0-9]+|[^\W\d_]+")
_STAND_IN = re.compile(r"\u2039redacted \d+ (.*)\u203a", re.DOTALL)


@dataclass(frozen=True)
class Secrets:
    """What a prompt has that must not be written down."""

    redact: Redact = field(repr=False)
    spans: tuple[tuple[int, int], ...] = ()
    """Where it stands in the prompt, from and up to."""
    words: tuple[str, ...] = field(default=(), repr=False)
    """What stands there, and values beside the prompt that the hook would change; longest first."""

    def with_words(self, words: Collection[str]) -> "Secrets":
        """Return the same with more words that are hidden."""
        return replace(self, words=_longest_first({*self.words, *filter(None, words)}))

    def hides(self, mention: Mention) -> bool:
        """Return whether `mention` is one of the hidden ones."""
        return any(s < mention.end and mention.start < e for s, e in self.spans)

    def clean(self, text: str) -> str:
        """Return `text` without what is hidden, wherever it may have come from."""
        if self._any is not None:
            text = self._any.sub(HIDDEN, text)
        return checked(self.redact, text)

    def holds(self, value: Json) -> bool:
        """Return whether a text or number of a plan is, or has in it, what is hidden."""
        if value is None or isinstance(value, bool | dict | list):
            return False
        text = str(value)
        return checked(self.redact, text) != text or (
            self._any is not None and self._any.search(text) is not None
        )

    def stand_in(self, words: str, *, written: bool) -> str:
        """Return what is stored for hidden `words`: which of them they are, and no more.

        How a date or an amount is `written` is told as well: it says whether another one may take
        its place.
        """
        folded = words.casefold()
        known = [word.casefold() for word in self.words]
        number = known.index(folded) + 1 if folded in known else 0
        return f"\u2039redacted {number} {pattern(words) if written else ''}\u203a"

    @cached_property
    def _any(self) -> re.Pattern[str] | None:
        if not self.words:
            return None
        either = "|".join(map(re.escape, self.words))
        return re.compile(rf"(?<!\w)(?:{either})(?!\w)", re.IGNORECASE)


def checked(redact: Redact, text: str) -> str:
    """Return what `redact` makes of `text`; what it raises passes through.

    Raises:
        InvalidInput: it gave something that is not text.
    """
    shown: object = redact(text)
    if not isinstance(shown, str):
        raise InvalidInput(f"`redact` gave {type(shown).__name__}; expected text")
    return shown


def hide(
    text: str,
    mentions: Sequence[Mention],
    *,
    plain: Sequence[Mention],
    redact: Redact,
    given: Collection[Parameter] = (),
) -> tuple[str, tuple[Mention, ...], Secrets]:
    """Return what may be shown of `text`, its mentions with all that is hidden among them, and it.

    `plain` are the mentions that are found with nothing given or learned: what is hidden has the
    kind that it has there, or `redacted`, so that a prompt reads the same with values and without.
    """
    shown = checked(redact, text)
    # What stands beside the prompt is looked at by itself; what stands in it was seen in its place.
    beside = {said for p in given for said in _texts(p.value) if checked(redact, said) != said}
    if shown == text:
        return text, tuple(mentions), Secrets(redact, words=_longest_first(beside))
    kinds = {(m.start, m.end): m.kind for m in plain}
    spans: list[tuple[int, int]] = []
    found = list(mentions)
    for start, end in _changed(text, shown):
        found, span = _covered(text, found, start, end, kinds)
        spans.append(span)
    words = beside | {text[start:end] for start, end in spans}
    secrets = Secrets(redact, tuple(spans), _longest_first(words))
    return shown.strip() or HIDDEN, tuple(found), secrets


def _covered(
    text: str,
    mentions: Sequence[Mention],
    start: int,
    end: int,
    kinds: Mapping[tuple[int, int], str],
) -> tuple[list[Mention], tuple[int, int]]:
    """Return the mentions with one that covers the span, and the span of that one."""
    touched = [m for m in mentions if m.start < end and start < m.end]
    if len(touched) == 1 and touched[0].start <= start and end <= touched[0].end:
        only = touched[0]
        kind = kinds.get((only.start, only.end), KIND)
        # Learned words are found by chance: what is hidden is a value whoever had it before.
        source = "recognized" if only.source == "learned" else only.source
        hidden = only._replace(kind=kind, source=source)
        return [hidden if m is only else m for m in mentions], (only.start, only.end)
    start = min([start, *(m.start for m in touched)])
    end = max([end, *(m.end for m in touched)])
    words = text[start:end]
    whole = Mention(start, end, words, KIND, words, "recognized", "", relative=False)
    rest = [m for m in mentions if m not in touched]
    return sorted([*rest, whole], key=lambda m: m.start), (start, end)


def _changed(text: str, shown: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of `text` that are not in `shown` any more, by whole words."""
    places = [match.span() for match in _TOKEN.finditer(text)]
    old, new = [text[start:end] for start, end in places], _TOKEN.findall(shown)
    first = _shared(old, new)
    last = _shared(old[first:][::-1], new[first:][::-1])
    for low, high in _differing(old[first : len(old) - last], new[first : len(new) - last]):
        yield places[first + low][0], places[first + high - 1][1]


def _shared(left: Sequence[str], right: Sequence[str]) -> int:
    pairs = enumerate(zip(left, right, strict=False))
    return next((n for n, (a, b) in pairs if a != b), min(len(left), len(right)))


def _differing(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[int, int]]:
    if len(old) > COMPARED:  # comparing takes time by the square
        yield 0, len(old)
        return
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    for what, low, high, _, _ in matcher.get_opcodes():
        if what in {"replace", "delete"}:
            yield low, high


def _longest_first(words: Collection[str]) -> tuple[str, ...]:
    return tuple(sorted(words, key=lambda word: (-len(word), word)))


def _texts(value: Json) -> Iterator[str]:
    match value:
        case dict():
            for key, item in value.items():
                yield key
                yield from _texts(item)
        case list():
            for item in value:
                yield from _texts(item)
        case None | bool():
            return
        case _:
            yield str(value)


# Stand-ins ───────────────────────────────────────────────────────────────────────────────────────


def pattern(words: str) -> str:
    """Return how `words` are written, digits as `0`, letters as `a`, signs as they are.

    That of a stand-in is the one of the words that it stands for.
    """
    stood = _STAND_IN.fullmatch(words)
    if stood is not None:
        return stood[1]
    return _RUN.sub(lambda run: "0" if run[0].isdigit() else "a", words)


def is_stand_in(value: object) -> bool:
    """Return whether `value` is what `Secrets.stand_in` made."""
    return isinstance(value, str) and _STAND_IN.fullmatch(value) is not None
