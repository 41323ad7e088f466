"""The text of a prompt and its tokens: what is accepted, its words and signs, and what it may lack.

A prompt is read without loss but for `IGNORED`. So whatever else a character is, a sign, an emoji,
a combining mark, a letter of any script, it is a token or a part of one. What the embedder cannot
see, because its vocabulary is lower-case English, is a *sign*: two prompts share a plan only if
they have the same signs in the same places.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from string import ascii_lowercase
from typing import NamedTuple

from semcache.errors import InvalidPrompt
from semcache.process.memo import memoized
from semcache.prompts.words import (
    ARTICLES,
    CLOSED_CLASS,
    FUNCTION_WORDS,
    MEANING,
    POLITENESS,
    REQUESTS,
    singular,
)

MAX_CHARS = 20_000
"""Characters that a prompt may have unless the caller says otherwise."""


def check_prompt(text: object, *, max_chars: int = MAX_CHARS) -> str:
    """Return `text` composed (NFC) and without outer white space; mentions count from its start.

    Raises:
        InvalidPrompt: not text, blank, longer than `max_chars`, or with NUL or lone surrogates.
    """
    if not isinstance(text, str):
        raise InvalidPrompt(f"a prompt must be text; found {type(text).__name__}")
    if len(text) > max_chars:
        raise InvalidPrompt(
            f"the prompt has {len(text):,} characters; at most {max_chars:,} are accepted. "
            "Put long documents where an operation can read them, not into the prompt"
        )
    if "\0" in text:
        raise InvalidPrompt(f"the prompt has a NUL character at {text.index(chr(0))}; remove it")
    if not text.isascii():
        _check_encodable(text)
    stripped = text.strip()
    if not (stripped and stripped[0].isprintable()) and not any(
        char.isprintable() and not char.isspace() for char in text
    ):
        raise InvalidPrompt(f"the prompt is blank ({text[:20]!r}); expected at least one word")
    return stripped if text.isascii() else unicodedata.normalize("NFC", text).strip()


def _check_encodable(text: str) -> None:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InvalidPrompt(
            f"the prompt has a lone surrogate at {error.start}; expected valid Unicode text"
        ) from error


@memoized(16)
def lowered(text: str) -> str:
    """Return `text` in lower case, character for character, so that offsets stay the same.

    The few characters whose lower case is longer (`İ`) are left as they are. Kept for the last
    texts: six recognizers ask about each prompt.
    """
    lower = text.lower()
    if len(lower) == len(text):
        return lower
    return "".join(low if len(low := char.lower()) == 1 else char for char in text)


_LETTERS = bytes(byte if chr(byte) in ascii_lowercase else ord(" ") for byte in range(256))
"""Each byte of UTF-8 that is no letter from `a` to `z` becomes a space."""


@memoized(16)
def letter_runs(lower: str) -> frozenset[str]:
    """Return the runs of `a` to `z` in a lower-case text, each once.

    One look at them tells most recognizers that there is nothing for them. Kept for the last texts,
    since each recognizer asks about the same one.
    """
    # A third of the time of a regular expression.
    letters = lower.encode("utf-8", "replace").translate(_LETTERS)
    return frozenset(letters.decode("ascii").split())


class Ignored(NamedTuple):
    """A thing in which two prompts may differ and still be read alike."""

    what: str
    one: str
    other: str
    """A prompt that is read as `one` is."""


IGNORED = (
    Ignored("how much white space there is", "sales  by state", "sales by state"),
    Ignored("white space before `, . ; : ? )` and short forms", "what 's new ,", "what's new,"),
    Ignored("the case of ordinary words", "Total SALES", "total sales"),
    Ignored("one closing `.` or `?`", "total sales?", "total sales"),
    Ignored("the style of quotes and apostrophes", "Ada\u2019s \u201crank\u201d", 'Ada\'s "rank"'),
    Ignored("the quotes round a value", 'find "Ada"', "find 'Ada'"),
    Ignored("how a character is composed (NFC)", "cafe\u0301 sales", "caf\u00e9 sales"),
)  # fmt: skip
"""What may differ in every tier."""

IGNORED_BY_MEANING = (
    Ignored("courtesy, articles and ways to ask", "show me the sales. Thank you!", "sales"),
    Ignored("`,` `.` `?` behind a word", "sales, by state", "sales by state"),
    Ignored("a hyphen between two whole words", "one-way fares", "one way fares"),
    Ignored("a hyphen between a letter and a whole word", "the x-axis", "the x axis"),
    Ignored("possessive endings and short forms", "Ada's sales", "Ada sales"),
)
"""What may differ in the semantic tier besides, where risk is weighed."""

# ── template text ────────────────────────────────────────────────────────────────────────────────

HOLE = "\0"
"""Stands for a slot while a text is folded; no prompt has this character."""
SLOT = re.compile(r"<[\w.]+>")
"""A slot in a template text. What a prompt spells so itself is escaped there (`<\\year>`)."""

_QUOTES = str.maketrans(
    dict.fromkeys("\u2018\u2019\u02bc`", "'") | dict.fromkeys("\u201c\u201d\u00ab\u00bb", '"')
)
_SPACE_BEFORE = re.compile(r" (?=[,.;:?)\]](?:[\s,.;:?)\]]|$)|n't\b|'(?:s|re|ve|ll|d|m|t)(?!\w))")
_SIGN_BEHIND = re.compile(r" [,.;:?)\]n']")
_ENDS = frozenset(".?")
_CLOSING = re.compile(r"(?<=[^.?]) ?[.?]$")  # "?", "??" and "..." are what is said
_LOOKS_LIKE_SLOT = re.compile(r"<(?=\\*[\w.]+>)")


def folded(text: str) -> str:
    """Return `text` in the one form of all texts that differ from it in what is `IGNORED`.

    Each `HOLE` stays where it is; a `<word>` is escaped, so that it is never taken for a slot.
    """
    text = fold_case(" ".join(_composed(text).split()))
    if _SIGN_BEHIND.search(text) is not None:
        text = _SPACE_BEFORE.sub("", text)
    if text[-1:] in _ENDS:
        text = _CLOSING.sub("", text)
    return _LOOKS_LIKE_SLOT.sub(r"<\\", text) if "<" in text else text


def _composed(text: str) -> str:
    if text.isascii():
        return text.replace("`", "'")
    return unicodedata.normalize("NFC", text).translate(_QUOTES)


_CASED = re.compile(r"\S+")
_UNIT_LETTERS = 3
"""Letters of the longest short name of a unit, behind a value: 5 MB is not 5 Mb."""
_EDGES = "\"'()[]{},.;:!?"
_LOOSE = frozenset("of in on at for about".split())
_NAMES_IN_CAPITALS = (FUNCTION_WORDS - MEANING | _LOOSE) - {"i", "a"}
"""Words that matching passes over, and that capitals make names of: US, IT, WHO."""


def fold_case(text: str) -> str:
    """Return `text` with its ordinary words in lower case."""
    if text == text.lower():
        return text
    shouted = text.replace(HOLE, "").isupper()

    def lower(match: "re.Match[str]") -> str:
        chunk = match[0]
        plain = _ordinary(chunk)
        if plain is None or plain == chunk:
            return chunk
        bare = chunk.strip(_EDGES)
        if shouted or len(bare) > _UNIT_LETTERS:
            return plain
        measures = bare.isalpha() and text[: match.start()].endswith((f"{HOLE} ", "> "))
        measures = measures and bare.lower() not in CLOSED_CLASS
        named = bare.isupper() and bare.lower() in _NAMES_IN_CAPITALS
        return chunk if measures or named or _is_letter(text, match, bare) else plain

    return _CASED.sub(lower, text)


def _is_letter(text: str, match: "re.Match[str]", bare: str) -> bool:
    """Return whether an `A` is a letter ("grade A students") and no article of a title."""
    return bare == "A" and match.start() > 0 and not text[match.end() :].lstrip()[:1].isupper()


@memoized(20_000)
def _ordinary(chunk: str) -> str | None:
    """Return `chunk` in lower case; None if it has a word whose case says something.

    `iPhone`, `README.md`, `v2B` and `C++` are written as they are written; `Sales`, `SALES` and
    `One-Way` are ordinary.
    """
    parts = re.split(r"[-/]", chunk.strip(_EDGES))
    for part in parts:
        bare = part.replace("'", "")
        letters = all(char.isalpha() or unicodedata.combining(char) for char in bare)
        if bare not in {"", HOLE} and not (letters and _is_plain_case(part)):
            return None if chunk != chunk.lower() else chunk
    return chunk.lower()


def _is_plain_case(word: str) -> bool:
    lower = word.lower()
    # "WOuld" is a slip; of names only their spelling is known.
    return word in {lower, word.upper(), word[:1] + lower[1:]} or lower in CLOSED_CLASS


def filled(text: str, slots: "tuple[str, ...] | list[str]") -> str:
    """Return folded `text` with its holes replaced by the names of slots, in order."""
    first, *rest = text.split(HOLE)
    return first + "".join([f"<{name}>{part}" for name, part in zip(slots, rest, strict=True)])


# ── tokens ───────────────────────────────────────────────────────────────────────────────────────

_SPACED_CLITIC = re.compile(r"\s+(n't|'(?:s|re|ve|ll|d|m))\b")
_CLITIC = re.compile(r"'(?:s|re|ve|ll|d|m)$")
_NEGATED = {"can't": "can", "won't": "will", "shan't": "shall", "cannot": "can"}
_PIECE = re.compile(
    r"<[\w.]+>(?:'s\b)?|[<>=!]=|[<>=\u2264\u2265\u2260]|[()\[\]{}/;:!\"]"
    r"|[^<>=\u2264\u2265\u2260()\[\]{}/;:!\"]+"
)
_PLAIN = re.compile(r"[a-z_]+(?:'[a-z]+)*|[0-9]+")
_WORD = re.compile(r"\w+(?:'\w+)*'?", re.ASCII)
_COMPOUND = re.compile(r"[\w']+(?:-[\w']+)*", re.ASCII)
_MARKS = ",.?"
"""Marks that say nothing behind a word."""
_EXCLAIMED = re.compile(rf"\b(thank you|{'|'.join(sorted(POLITENESS))})!+(?!\S)")
_AFFIXES = frozenset(
    "ante anti arch auto bi co contra counter de demi dis down em en ex extra fore hemi hyper hypo "
    "il im in infra inter intra ir macro mal mega micro mid mini mis mono multi neo no non off out "
    "over para peri poly post pre pro proto pseudo quasi re semi sub super tele trans tri ultra un "
    "under uni up vice".split()
)
"""Prefixes of English, as a dictionary lists them."""
_BOUND = (_AFFIXES | FUNCTION_WORDS | ARTICLES | POLITENESS | REQUESTS) - {"one"}
"""Parts that a hyphen makes a part of a word: `in-active`, `check-in`; not `one-way`."""


def tokens(text: str) -> tuple[str, ...]:
    """Return the words and signs of `text` in order; `<year>` is one token.

    Of a raw text or of a template text. Negation is spelled out ("don't" is `do`, `not`), other
    short forms and possessives lose their ending ("what's" is `what`, "Sofia's" is `sofia`).
    Hyphens part whole words ("one-way" is two, "x-axis" too) and stay at bound ones ("in-active" is
    `in-`, `active`).
    """
    text = fold_case(_composed(text))
    if "'" in text:
        text = _SPACED_CLITIC.sub(r"\1", text)
    if "!" in text:
        text = _EXCLAIMED.sub(r"\1", text)
    found: list[str] = []
    for chunk in text.split():
        if chunk.isascii() and chunk.isalpha() and chunk != "cannot":
            found.append(chunk)
        else:
            found += _parts(chunk)
    return tuple(found)


@memoized(20_000)
def is_slot(token: str) -> bool:
    """Return whether a token is a slot; no word or sign of a prompt is."""
    return SLOT.fullmatch(token) is not None


@memoized(20_000)
def is_sign(token: str) -> bool:
    """Return whether a token is compared exactly, because the embedder does not see what it is.

    All but words of `a` to `z`, numbers and slots: `+`, `C++`, `in-`, `b2b`, `US`, `caf\u00e9`.
    """
    return _PLAIN.fullmatch(token) is None and not is_slot(token)


@memoized(20_000)
def _parts(chunk: str) -> tuple[str, ...]:
    pieces = _PIECE.findall(chunk)
    found: list[str] = []
    for at, piece in enumerate(pieces):
        before = pieces[at - 1] if at else ""
        after = pieces[at + 1] if at + 1 < len(pieces) else ""
        found += _of_piece(piece, before, after)
    return tuple(found)


def _of_piece(piece: str, before: str, after: str) -> tuple[str, ...]:
    bare = piece.rstrip(_MARKS)
    if bare or before:
        piece = bare if _is_said_once(piece[len(bare) :]) else piece
    if piece[:1] == "<" and len(piece) > 2:
        return (piece.removesuffix("'s"),)
    if _WORD.fullmatch(piece):
        return _spelled_out(piece)
    # Beside a slot a hyphen joins as between words: "30-day" is `<number>-day` in a template.
    joined = piece.removeprefix("-") if before[-1:] == ">" else piece
    joined = joined.removesuffix("-") if after[:1] == "<" and len(after) > 2 else joined
    if _COMPOUND.fullmatch(joined):
        return tuple(_compound(piece))
    return (piece,) if piece else ()


def _is_said_once(marks: str) -> bool:
    """Return whether no mark stands there twice, as in `etc.,`: "..." and "??" are what is said."""
    return len(set(marks)) == len(marks)


def _compound(piece: str) -> list[str]:
    parts = piece.split("-")
    found: list[str] = []
    for i, part in enumerate(parts):
        if part in _BOUND or (len(part) == 1 and not _is_joined_letter(parts, i)):
            found.append(("-" if i else "") + part + ("-" if i < len(parts) - 1 else ""))
        elif part:
            found += _spelled_out(part)
    return found


def _is_joined_letter(parts: Sequence[str], at: int) -> bool:
    """Return whether a letter stands for a word beside a whole one: `x-axis`, `vitamin-c`.

    Not the article and the pronoun, which without a hyphen would say nothing; nor `A-` and `x-1`.
    """
    beside = (*parts[max(0, at - 1) : at], *parts[at + 1 : at + 2])
    letter = parts[at].isalpha() and parts[at] not in {"a", "i"}
    return letter and all(len(part) > 1 and part.isalpha() for part in beside)


def _spelled_out(token: str) -> tuple[str, ...]:
    if token in _NEGATED:
        return (_NEGATED[token], "not")
    if token.endswith("n't"):
        return (token[:-3], "not") if token[:-3] else ("not",)
    return (_CLITIC.sub("", token).removesuffix("'") or token,)


@memoized(10_000)
def phrase_of(text: str) -> tuple[str, ...]:
    """Return the singular words of a name or value in lower case, for a search in a prompt."""
    return tuple(singular(word) for word in tokens(text.lower().replace("_", " ")))


# ── phrases ──────────────────────────────────────────────────────────────────────────────────────

PIECE = re.compile(r"\w+|[^\w\s]")
"""A run of letters and digits, or one sign: what names and values are compared by."""


def phrase_key(phrase: str) -> str:
    """Return the form in which phrases are compared: lower case, one space between all tokens."""
    if phrase.isascii() and phrase.isalnum():
        return phrase.lower()
    return " ".join(PIECE.findall(lowered(phrase)))


MOST_OCCURRENCES = 100
"""Of one value in one text: a hundred "5" are told apart by nobody."""


def occurrences(lower: str, words: str) -> Iterator[tuple[int, int]]:
    """Yield where `words` stand in the lower-case text as whole words, at most a hundred times."""
    needle = lowered(words)
    at, count = lower.find(needle) if needle else -1, 0
    while at >= 0 and count < MOST_OCCURRENCES:
        end = at + len(needle)
        if _is_whole(lower, at, end):
            yield at, end
            count += 1
        at = lower.find(needle, end)


def _is_whole(lower: str, start: int, end: int) -> bool:
    """Return whether no word runs over either end of the span."""
    cut_before = start > 0 and _wordy(lower[start - 1]) and _wordy(lower[start])
    cut_after = end < len(lower) and _wordy(lower[end]) and _wordy(lower[end - 1])
    return not (cut_before or cut_after)


def _wordy(char: str) -> bool:
    return char.isalnum() or char == "_"
