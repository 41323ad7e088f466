"""Shapes: how the words of a text look, by their capitals and digits."""

import unicodedata
from typing import Literal, NamedTuple, TypeAlias

from semcache.prompts.tokens import PIECE
from semcache.prompts.words import CLOSED_CLASS

Shape: TypeAlias = Literal["capital", "upper", "lower", "digit", "sign", "closed", "title"]
"""How a token looks. `closed`: a word of English grammar; `title`: such a word with a capital."""


class ShapedWord(NamedTuple):
    """A word or sign of a prompt."""

    start: int
    end: int
    word: str
    """In lower case."""
    shape: Shape


def token_list(text: str, start: int = 0, end: int | None = None) -> list[ShapedWord]:
    """Return the words and signs of a part of `text`."""
    stop = len(text) if end is None else end
    return [
        ShapedWord(*m.span(), folded(m[0]), shape_of(m[0]))
        for m in PIECE.finditer(text, start, stop)
    ]


def folded(token: str) -> str:
    """Return a token as tokens are compared."""
    if token.isascii():
        return token.lower()
    return unicodedata.normalize("NFKC", token).casefold()


def shape_of(token: str) -> Shape:
    """Return how a token looks."""
    if not (token[0].isalnum() or token[0] == "_"):
        return "sign"
    if any(map(str.isdigit, token)):
        return "digit"
    grammar = folded(token) in CLOSED_CLASS
    if len(token) > 1 and token.isupper():
        return "upper"
    if token[0].isupper():
        return "title" if grammar else "capital"
    return "closed" if grammar else "lower"


def look(words: str) -> str:
    """Return the shapes in `words`, each once: those of "Portland, OR" are `capital sign upper`."""
    return " ".join(sorted({token.shape for token in token_list(words)}))
