"""Names: quoted text, addresses, codes and identifiers in a prompt."""

import re
from collections.abc import Iterator

from semcache.prompts.recognizers.numbers import GLUED_UNIT
from semcache.prompts.recognizers.recognition import Recognition
from semcache.prompts.words import CLOSED_CLASS

_DIGIT = re.compile(r"[0-9]")
_QUOTED = re.compile(
    r'"(?P<a>[^"\n]+)"|``\s?(?P<e>[^`\n]+?)\s?\'\'|\u201c(?P<b>[^\u201c\u201d]+)[\u201d"]|\u00ab\s?(?P<c>[^\u00ab\u00bb]+?)\s?\u00bb'
)
_SINGLE_QUOTE = re.compile("['`\u2018\u2019](?!\\d0s)")  # "'90s" opens nothing


def quotes(text: str) -> Iterator[Recognition]:
    """Yield quoted text with its quotes; the value is what stands between them.

    A single quote opens only before a word and closes only after one, so that "Sofia's" and
    "haven't" stay whole; single quotes may be nested.
    """
    for match in _QUOTED.finditer(text):
        inner = next(group for group in match.groups() if group is not None)
        if inner.strip():
            yield Recognition(*match.span(), "quoted", inner)
    yield from _single_quotes(text)


def _single_quotes(text: str) -> Iterator[Recognition]:
    opened: list[int] = []
    for match in _SINGLE_QUOTE.finditer(text):
        at = match.start()
        before, after = text[at - 1 : at] or " ", text[at + 1 : at + 2] or " "
        if opened and not before.isspace() and not after.isalnum() and opened[-1] < at - 1:
            start = opened.pop()
            if text[start + 1 : at].lower() != "n":  # rock 'n' roll
                yield Recognition(start, at + 1, "quoted", text[start + 1 : at])
        elif not before.isalnum() and before != "'" and not after.isspace() and after != "'":
            opened.append(at)


_URL = re.compile(r"\b(?:https?|ftp|file|s3)://[^\s<>\"']+|\bwww\.[^\s<>\"']+", re.IGNORECASE)
_EMAIL = re.compile(r"(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)+")


def addresses(text: str) -> Iterator[Recognition]:
    """Yield e-mail addresses and URLs, without the punctuation that ends a sentence."""
    if "@" in text:
        for match in _EMAIL.finditer(text):
            yield Recognition(*match.span(), "email", match[0])
    if "://" in text or "www." in text.lower():
        for match in _URL.finditer(text):
            url = match[0].rstrip(".,;:!?)]}")
            yield Recognition(match.start(), match.start() + len(url), "url", url)


CODE_SIGNS = re.compile(
    r"[0-9_/#](?:(?<=[_/#])|(?<=[^\W\d][0-9])|(?<=[^\W\d][-.:][0-9])|[^\W\d]|[-.][0-9]+[-.][0-9])"
)
_CHUNK = re.compile(r"(?<![\w$€£¥₹.])#?(?:(?:~|\.\.?)?/)?\w+(?:[-_./:]+\w+)*")
_DIGIT_GROUPS = re.compile(r"[0-9]+(?:[-.][0-9]+){2,}")
_HAS_LETTER = re.compile(r"[^\W\d_]")
_COUNTED_WORD = re.compile(r"[0-9]+(?:st|nd|rd|th|s)?(?:-[^\W\d_]+)+|[0-9]+(?:st|nd|rd|th)")
_MEASURE = re.compile(rf"[0-9]+(?:\.[0-9]+)?(?![A-Z]$)(?i:{GLUED_UNIT.pattern})")
_WORD_COUNT = re.compile(r"([^\W\d_]+)-([0-9]+)")


def codes(text: str) -> Iterator[Recognition]:
    """Yield order numbers and the like (`code`) and names in programs or paths (`identifier`)."""
    for match in _CHUNK.finditer(text):
        kind = _code_kind(match[0])
        if kind:
            yield Recognition(*match.span(), kind, match[0])


def _code_kind(chunk: str) -> str:
    """Return `code`, `identifier`, or the empty text for what is neither."""
    if "_" in chunk.strip("_") and (chunk[0].isalpha() and not chunk.isupper()):
        return "identifier"
    if _DIGIT.search(chunk) is not None:
        return "code" if _is_code(chunk) else ""
    if "_" in chunk.strip("_"):
        return "identifier"
    return "identifier" if "/" in chunk and _is_path(chunk) else ""


def _is_code(chunk: str) -> bool:
    if chunk[0] == "#":
        return True
    if "/" in chunk and not _is_path(chunk):
        return False
    if _HAS_LETTER.search(chunk) is None:
        return _DIGIT_GROUPS.fullmatch(chunk) is not None
    if _COUNTED_WORD.fullmatch(chunk) or _MEASURE.fullmatch(chunk):
        return False  # "30-minute", "20-year-old", "500ml"; but seat "14C" is a code
    if (named := _WORD_COUNT.fullmatch(chunk)) is not None:
        # "SKU-123" and "sku-123", but not "top-5"
        return named[1].isupper() or (len(named[2]) > 2 and named[1].lower() not in CLOSED_CLASS)
    # "b2b" and "mp3" are words; "A1" and "ord456" are codes
    return chunk.isupper() or sum(map(str.isdecimal, chunk)) > 1


def _is_path(chunk: str) -> bool:
    parts = [part for part in chunk.split("/") if part.strip(".~")]
    return all(len(part) > 1 and part.lower() not in CLOSED_CLASS for part in parts)
