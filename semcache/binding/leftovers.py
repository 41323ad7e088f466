"""Leftovers: words of the source prompt that stay in a plan where nothing is bound."""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from semcache.binding.codecs import number_text
from semcache.binding.leaves import Leaf
from semcache.binding.offers import below
from semcache.binding.parties import SHORT, Party, rarity
from semcache.binding.pieces import Binding
from semcache.plans.variables import REFERENCE
from semcache.prompts.parameter import name_key

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
        bindings: Sequence[Binding],
        parties: Sequence[Party],
        own: frozenset[str] = frozenset(),
    ) -> None:
        """Look at what `bindings` leave; `own` are the plan's names for its own results."""
        bound = frozenset(binding.at for binding in bindings)
        free = [leaf for leaf in leaves if leaf.role != "name" and not below(leaf.at, bound)]
        names = {name for party in parties for name in party.names}
        # Keys that are names of parameters say nothing of values: `{"higher_or_lower": "lower"}`.
        keys = {part for leaf in free for part in leaf.at if isinstance(part, str)} - own
        texts = [part for b in bindings for part in (b.before, b.after) if part]
        texts += [text for leaf in free if (text := _text(leaf))]
        texts += sorted(key for key in keys if name_key(key) not in names)
        texts = [_unread(text, own) for text in texts] if own else texts
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
_COMPOUND = re.compile(r"\w*[a-z](?:_|\d|[A-Z])\w*")


def _text(leaf: Leaf) -> str:
    if isinstance(leaf.value, str):
        return leaf.value
    if isinstance(leaf.value, bool) or not isinstance(leaf.value, int | float):
        return ""
    return number_text(leaf.value) if leaf.role == "data" else ""


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
    return _COMPOUND.sub(lambda m: " " if name_key(m[0]) in names else m[0], text)
