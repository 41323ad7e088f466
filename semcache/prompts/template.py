"""Template text: a prompt with its mentions replaced by their slot types."""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from semcache.canonical import Json
from semcache.memo import memoized
from semcache.prompts.mentions import Mention
from semcache.prompts.tokens import HOLE, filled, folded, tokens


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


@memoized(2_000)
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


_NOT_A_NAME = re.compile(r"[^\w.]+")
_WORD = re.compile(r"[\w']+")
_LONGEST_WORD = 40  # characters looked back for the word before a slot


def mask(text: str, mentions: Sequence[Mention]) -> TemplateText:
    """Return `text` with each mention replaced by `<kind>`, folded (`tokens.IGNORED`).

    A `<word>` that stood in the prompt itself is no slot. `mentions` are in order and do not
    overlap, as `find_mentions` returns them.
    """
    # A checked prompt has no NUL; what was not checked must not spell a slot with it.
    text = text.replace(HOLE, "\ufffd")
    pieces: list[str] = []
    slots: list[Slot] = []
    at = 0
    for mention in mentions:
        literal = text[at : mention.start]
        before = _last_word(literal)
        slots.append(
            Slot(
                slot_name(mention.kind),
                mention.name,
                before,
                mention.text,
                mention.value,
                mention.relative,
            )
        )
        pieces += (literal, HOLE)
        at = mention.end
    pieces.append(text[at:])
    masked = filled(folded("".join(pieces)), [slot.kind for slot in slots])
    return TemplateText(masked, tuple(slots))


def _last_word(literal: str) -> str:
    tail = literal[-_LONGEST_WORD:]
    words = tail.rsplit(maxsplit=1)
    if not (words and words[-1].isalnum()):  # signs between or behind words
        words = _WORD.findall(tail)
    return words[-1].casefold() if words else ""


def slot_name(kind: str) -> str:
    """Return `kind` as it stands between the brackets of a slot."""
    return kind if kind.isidentifier() else _NOT_A_NAME.sub("_", kind)
