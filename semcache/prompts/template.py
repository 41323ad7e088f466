"""Template text: a prompt with its mentions replaced by their slot types."""

import hashlib
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from semcache.canonical import Json
from semcache.prompts.mentions import Mention
from semcache.prompts.words import tokens


class Slot(NamedTuple):  # as `Mention`
    """A place in a template text that a mention left."""

    kind: str
    """Slot type."""
    name: str
    """Parameter or field of the mention; empty if unknown."""
    before: str
    """The literal word to its left; empty at the start and directly after another slot."""
    mention_text: str
    """The words that stood there."""
    value: Json
    """The value that they carried."""
    relative: bool = False
    """Whether the value depends on when the prompt was asked."""


@lru_cache(maxsize=2_000)
def _sorted(kinds: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sorted(kinds))


@dataclass(frozen=True, slots=True)
class TemplateText:
    """A prompt without its values: `total sales in <year> by category`."""

    text: str
    """The normalized text; a `<…>` in it is always a slot."""
    slots: tuple[Slot, ...]
    """The slots in the order of the text."""
    signature: tuple[str, ...] = field(init=False, repr=False, compare=False)
    """The slot types, sorted, each as often as it occurs."""

    def __post_init__(self) -> None:
        kinds = _sorted(tuple([slot.kind for slot in self.slots]))
        object.__setattr__(self, "signature", kinds)

    @property
    def digest(self) -> str:
        """SHA-256 hex of the text."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    @property
    def words(self) -> tuple[str, ...]:
        """The tokens of the text, slots included; computed each time."""
        return tokens(self.text)


SLOT = re.compile(r"<[\w.]+>")
"""A slot in a template text."""

_FOLDED = str.maketrans(
    dict.fromkeys("\u2018\u2019\u02bc`", "'") | dict.fromkeys("\u201c\u201d\u00ab\u00bb", '"')
)
_LOOKS_LIKE_SLOT = re.compile(r"<(?=[\w.]+>)")
_NOT_A_NAME = re.compile(r"[^\w.]+")
_SPACE_BEFORE = re.compile(r" (?=[,.;:!?%)\]]|n't\b|'(?:s|re|ve|ll|d|m|t)(?!\w))")
_WORD = re.compile(r"[\w']+")
_LONGEST_WORD = 40  # characters looked back for the word before a slot
_ESCAPED = "\u2039"  # an angle quote: normal forms leave it alone, and no slot starts with it


def mask(text: str, mentions: Sequence[Mention]) -> TemplateText:
    """Return `text` with each mention replaced by `<kind>`, in one form for many spellings.

    Case, white space, quote styles, compatibility characters, closing punctuation and space before
    punctuation make no difference. A `<word>` that stood in the prompt itself is no slot.
    `mentions` are in order and do not overlap, as `find_mentions` returns them.
    """
    pieces: list[str] = []
    slots: list[Slot] = []
    at = 0
    for mention in mentions:
        literal = text[at : mention.start]
        kind = slot_name(mention.kind)
        before = _last_word(literal)
        slots.append(
            Slot(kind, mention.name, before, mention.text, mention.value, mention.relative)
        )
        pieces += (_literal(literal), "<", kind, ">")
        at = mention.end
    pieces.append(_literal(text[at:]))
    return TemplateText(_normalized("".join(pieces)), tuple(slots))


def _last_word(literal: str) -> str:
    tail = literal[-_LONGEST_WORD:]
    words = tail.split()
    if not (words and words[-1].isalnum()):  # signs between or behind words
        words = _WORD.findall(tail)
    return words[-1].casefold() if words else ""


def slot_name(kind: str) -> str:
    """Return `kind` as it stands between the brackets of a slot."""
    return kind if kind.isidentifier() else _NOT_A_NAME.sub("_", kind)


def _literal(text: str) -> str:
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text).translate(_FOLDED)
    return _LOOKS_LIKE_SLOT.sub(_ESCAPED, text) if "<" in text else text


def _normalized(text: str) -> str:
    spaced = " ".join(text.casefold().split())
    return _SPACE_BEFORE.sub("", spaced).rstrip(".?!,;: ")
