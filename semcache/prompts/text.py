"""The text of a prompt: what is accepted, and forms of it that keep every offset."""

import re
import unicodedata
from functools import lru_cache

from semcache.errors import InvalidPrompt

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
    if not any(char.isprintable() and not char.isspace() for char in text):
        raise InvalidPrompt(f"the prompt is blank ({text[:20]!r}); expected at least one word")
    composed = text if text.isascii() else unicodedata.normalize("NFC", text)
    return composed.strip()


def _check_encodable(text: str) -> None:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InvalidPrompt(
            f"the prompt has a lone surrogate at {error.start}; expected valid Unicode text"
        ) from error


@lru_cache(maxsize=16)
def lowered(text: str) -> str:
    """Return `text` in lower case, character for character, so that offsets stay the same.

    The few characters whose lower case is longer (`İ`) are left as they are. Kept for the last
    texts: six recognizers ask about each prompt.
    """
    lower = text.lower()
    if len(lower) == len(text):
        return lower
    return "".join(low if len(low := char.lower()) == 1 else char for char in text)


_LETTERS = re.compile(r"[a-z]+")


@lru_cache(maxsize=16)
def letter_runs(lower: str) -> frozenset[str]:
    """Return the runs of `a` to `z` in a lower-case text, each once.

    One look at them tells most recognizers that there is nothing for them. Kept for the last texts,
    since each recognizer asks about the same one.
    """
    return frozenset(_LETTERS.findall(lower))
