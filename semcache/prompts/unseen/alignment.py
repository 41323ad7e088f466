"""Alignment: values never seen before, found because nothing else differs from a template."""

import unicodedata
from collections import Counter
from collections.abc import Container, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Any

from semcache.canonical import JsonObject
from semcache.prompts.mentions import OPEN_KINDS, Mention, find_mentions
from semcache.prompts.template import Slot, TemplateText, mask
from semcache.prompts.tokens import PIECE, SLOT
from semcache.prompts.words import CLOSED_CLASS

MAX_CAPTURED = 6
"""Words that one aligned value may have, the signs between them apart."""
MAX_TOKENS = 120
"""Words and signs of the longest prompt that is aligned."""
MAX_LOOKED_AT = 1_000
"""Templates whose words are looked for in one prompt: a millisecond's worth."""


@dataclass(frozen=True, slots=True)
class _Piece:
    """A word or sign of a prompt, or a whole mention."""

    start: int
    end: int
    word: str
    mention: Mention | None = None


def align(
    text: str,
    template: TemplateText,
    *,
    mentions: Sequence[Mention] | None = None,
    vocabulary: Container[str] = frozenset(),
) -> tuple[Mention, ...] | None:
    """Return mentions that turn `text` into exactly `template`; None if there is no single way.

    `mentions` are those already found (None: what the recognizers find); each must fill a slot of
    its own kind. The other slots take the words that stand in their place, at most six, with the
    words as value and source `aligned`.
    No taken word may be in `vocabulary` (lower-case words that templates use) or in a closed class
    of English, and slots of a kind that recognizers find take nothing but mentions: "twelve" is no
    city.
    """
    known = find_mentions(text) if mentions is None else mentions
    pieces = _pieces(text, known)
    pattern = _pattern(template)
    filled = _only_way(pattern, pieces, _Taking(vocabulary))
    if filled is None or not _repeats_agree(filled):
        return None
    aligned = tuple(_mention(text, slot, taken) for slot, taken in filled)
    # Words were compared without regard to spacing; the mask has the last word.
    return aligned if mask(text, aligned).text == template.text else None


_SIGNS = str.maketrans("\u2018\u2019\u02bc`\u201c\u201d\u00ab\u00bb\u2039", "''''\"\"\"\"<")
_INNER_SIGNS = frozenset("-.&'/")
_CLOSING = frozenset(".?!,;:")


def _pieces(text: str, mentions: Sequence[Mention]) -> list[_Piece]:
    pieces: list[_Piece] = []
    at = 0
    for mention in mentions:
        pieces += _plain_pieces(text, at, mention.start)
        pieces.append(_Piece(mention.start, mention.end, "", mention))
        at = mention.end
    pieces += _plain_pieces(text, at, len(text))
    while pieces and pieces[-1].word in _CLOSING:
        pieces.pop()
    return pieces


def _plain_pieces(text: str, start: int, end: int) -> list[_Piece]:
    return [_Piece(*m.span(), _folded(m[0])) for m in PIECE.finditer(text, start, end)]


def _folded(token: str) -> str:
    if token.isascii() and token.isalnum():
        return token.lower()
    return unicodedata.normalize("NFKC", token).casefold().translate(_SIGNS)


def _pattern(template: TemplateText) -> list[str | Slot]:
    """Return the literal tokens and the slots of `template` in order."""
    pattern: list[str | Slot] = []
    at = 0
    for match, slot in zip(SLOT.finditer(template.text), template.slots, strict=True):
        pattern += map(_folded, PIECE.findall(template.text[at : match.start()]))
        pattern.append(slot)
        at = match.end()
    pattern += map(_folded, PIECE.findall(template.text[at:]))
    return pattern


@dataclass(frozen=True, slots=True)
class _Taking:
    """Which pieces a slot may take."""

    vocabulary: Container[str]

    def lengths(self, slot: Slot, pieces: Sequence[_Piece], at: int) -> list[int]:
        """Return how many pieces from `at` on `slot` may take; several where several would do."""
        if at < len(pieces) and (mention := pieces[at].mention) is not None:
            return [1] if mention.kind == slot.kind else []
        if slot.kind in OPEN_KINDS:
            return []
        lengths = []
        words = 0
        for length, piece in enumerate(pieces[at : at + 3 * MAX_CAPTURED], start=1):
            words += piece.word not in _INNER_SIGNS
            if words > MAX_CAPTURED or not self._is_free(piece):
                break
            if _is_name(pieces, at, at + length):
                lengths.append(length)
        return lengths

    def _is_free(self, piece: _Piece) -> bool:
        if piece.mention is not None:
            return False
        if piece.word in _INNER_SIGNS:
            return True
        named = piece.word[0].isalnum() or piece.word[0] == "_"
        return named and piece.word not in self.vocabulary and piece.word not in CLOSED_CLASS


def _is_name(pieces: Sequence[_Piece], start: int, end: int) -> bool:
    """Return whether the pieces begin and end with a word and hold no possessive or short form."""
    words = [piece.word for piece in pieces[start:end]]
    if words[0] in _INNER_SIGNS or words[-1] in _INNER_SIGNS:
        return False
    return all(len(word) > 2 for sign, word in pairwise(words) if sign == "'")


_Filled = list[tuple[Slot, Sequence[_Piece]]]


def _only_way(
    pattern: Sequence[str | Slot], pieces: Sequence[_Piece], taking: _Taking
) -> _Filled | None:
    """Return what each slot takes if `pattern` covers `pieces` in exactly one way, else None."""
    # reach[i]: positions in `pieces` that the first i parts of the pattern can end at, with the
    # number of ways to get there and the last step. Counting stops mattering at two.
    reach: list[dict[int, tuple[int, int]]] = [{0: (1, 0)}]
    for part in pattern:
        after: dict[int, tuple[int, int]] = {}
        for at, (ways, _) in reach[-1].items():
            for length in _steps(part, pieces, at, taking):
                before = after.get(at + length, (0, 0))[0]
                after[at + length] = (before + ways, length)
        if not after:
            return None
        reach.append(after)
    if reach[-1].get(len(pieces), (0, 0))[0] != 1:
        return None
    return _walked_back(pattern, pieces, reach)


def _steps(part: str | Slot, pieces: Sequence[_Piece], at: int, taking: _Taking) -> Sequence[int]:
    if isinstance(part, Slot):
        return taking.lengths(part, pieces, at)
    return (1,) if at < len(pieces) and pieces[at].word == part else ()


def _walked_back(
    pattern: Sequence[str | Slot],
    pieces: Sequence[_Piece],
    reach: Sequence[dict[int, tuple[int, int]]],
) -> _Filled:
    filled: _Filled = []
    end = len(pieces)
    for i in range(len(pattern), 0, -1):
        length = reach[i][end][1]
        part = pattern[i - 1]
        if isinstance(part, Slot):
            filled.append((part, pieces[end - length : end]))
        end -= length
    return filled[::-1]


def _repeats_agree(filled: _Filled) -> bool:
    """Return whether slots of one name took the same words: a value said twice is one value."""
    words: dict[str, list[str]] = {}
    for slot, taken in filled:
        spelled = [p.word or (p.mention.text.casefold() if p.mention else "") for p in taken]
        if slot.name and words.setdefault(slot.name, spelled) != spelled:
            return False
    return True


def _mention(text: str, slot: Slot, taken: Sequence[_Piece]) -> Mention:
    if taken[0].mention is not None:
        return taken[0].mention
    start, end = taken[0].start, taken[-1].end
    words = text[start:end]
    return Mention(start, end, words, slot.kind, words, "aligned", slot.name)


class Skeletons:
    """The literal words of many templates, searched for those that a prompt could align with.

    A template is filed under its rarest literal word, so that a prompt looks at few of them. One
    whose slots are all of kinds that recognizers find is never a candidate.
    Safe to search from several threads while one thread changes it.
    """

    def __init__(self) -> None:
        self.literals: dict[str, tuple[str, ...]] = {}
        """Id → the literal words of its template."""
        self._filed: dict[str, dict[str, None]] = {}
        self._uses: Counter[str] = Counter()

    def __len__(self) -> int:
        """Return how many templates are kept."""
        return len(self.literals)

    def to_json(self) -> JsonObject:
        """Return all templates that are kept."""
        return {
            "literals": {known: list(words) for known, words in self.literals.items()},
            "filed": {word: list(ids) for word, ids in self._filed.items() if ids},
            "uses": dict(self._uses),
        }

    @classmethod
    def from_json(cls, doc: dict[str, Any]) -> "Skeletons":
        """Return what `to_json` wrote; what is malformed raises as dict access does."""
        skeletons = cls()
        skeletons.literals = {known: tuple(words) for known, words in doc["literals"].items()}
        skeletons._filed = {word: dict.fromkeys(ids) for word, ids in doc["filed"].items()}
        skeletons._uses = Counter(doc["uses"])
        return skeletons

    def add(self, id: str, template: TemplateText) -> None:  # noqa: A002 - the word of the record
        """Keep `template` under `id`, replacing what was there, if it has a free slot."""
        self.remove(id)
        if all(slot.kind in OPEN_KINDS for slot in template.slots):
            return
        words = tuple(part for part in _pattern(template) if isinstance(part, str))
        self._uses.update(set(words))
        self.literals[id] = words
        self._filed.setdefault(self._rarest(words), {})[id] = None

    def remove(self, id: str) -> bool:  # noqa: A002 - the word of the record
        """Forget `id`; return whether it was there."""
        words = self.literals.pop(id, None)
        if words is None:
            return False
        for word in {*words, ""}:
            self._uses[word] -= 1
            if self._uses[word] <= 0:
                del self._uses[word]
            filed = self._filed.get(word, {})
            filed.pop(id, None)
            if not filed:
                self._filed.pop(word, None)
        return True

    def candidates(self, text: str) -> list[str]:
        """Return ids of templates whose literal words all stand in `text` in order.

        Those with most literal words come first, then by id. None for a prompt that is too long.
        """
        words = [_folded(token) for token in PIECE.findall(text)]
        if len(words) > MAX_TOKENS:
            return []
        filed = (id_ for word in sorted({*words, ""}) for id_ in tuple(self._filed.get(word, ())))
        fitting = []
        for id_ in islice(filed, MAX_LOOKED_AT):
            literals = self.literals.get(id_)
            if literals is not None and _stand_in_order(literals, words):
                fitting.append((-len(literals), id_))
        return [id_ for _, id_ in sorted(fitting)]

    def _rarest(self, words: tuple[str, ...]) -> str:
        """Return the word that fewest templates use; empty text if there is no literal word."""
        return min(words, key=lambda word: (self._uses[word], word), default="")


def _stand_in_order(literals: Sequence[str], words: Sequence[str]) -> bool:
    rest = iter(words)
    return all(literal in rest for literal in literals)
