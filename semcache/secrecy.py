"""Secrets that this process was given, and texts without them, however they are spelled there.

A service that refuses a request may quote it: URL-encoded, as base64, inside JSON. What was given
as a credential is cut out of errors, run trees and traces in all of these spellings.
"""

import json
import re
from base64 import b64decode, b64encode, urlsafe_b64encode
from binascii import Error as NotBase64
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from html import escape
from urllib.parse import quote, quote_plus, unquote, urlsplit

from semcache.process.forks import Lock

HIDDEN = "<redacted>"
"""What stands in the place of a secret."""
SHORTEST = 6
"""Characters of the shortest secret that is looked for everywhere: shorter ones stand in words."""
REMEMBERED = 1_000
"""Secrets that are remembered, those given longest ago first forgotten: tokens are renewed."""


_ENCODED: tuple[Callable[[str], str], ...] = (
    escape,
    lambda text: escape(text).replace("&#x27;", "&#39;").replace("&quot;", "&#34;"),
    lambda text: json.dumps(text)[1:-1],
    lambda text: json.dumps(text, ensure_ascii=False)[1:-1],
    lambda text: json.dumps(text)[1:-1].replace("/", "\\/"),
    lambda text: json.dumps(text, ensure_ascii=False)[1:-1].replace("/", "\\/"),
    lambda text: repr(text)[1:-1],
    lambda text: quote(text, safe=""),
    quote,
    quote_plus,
    lambda text: _in_small_letters(quote(text, safe="")),
    lambda text: _in_small_letters(quote(text)),
    lambda text: _in_small_letters(quote_plus(text)),
)
"""How a text is written inside another one."""


def _in_small_letters(quoted: str) -> str:
    return re.sub(r"%[0-9A-F]{2}", lambda code: code.group().lower(), quoted)


def spellings(secret: str) -> frozenset[str]:
    """Return the ways in which a service may write `secret` back.

    Two of them in a row as well: an address within an address, JSON that JSON holds.
    """
    found = {secret}
    for _ in range(2):
        found |= {encode(text) for text in found for encode in _ENCODED}
    data = secret.encode("utf-8", "surrogatepass")
    found |= {data.hex(), data.hex().upper()}
    # Inside a longer text it may begin at any of the three bytes that four letters stand for; the
    # letters at its edges are made of its neighbors' bits too, and left out.
    for before in range(3):
        first = (0, 2, 3)[before]
        length = (before + len(data)) * 8 // 6
        for encode in (b64encode, urlsafe_b64encode):
            found.add(encode(bytes(before) + data).decode("ascii")[first:length])
    return frozenset(text for text in found if len(text) >= min(SHORTEST, len(secret)))


def parts(value: str) -> set[str]:
    """Return what of a credential is secret: all of it, and what follows its scheme.

    The scheme is the first word: `Bearer`, `Basic`, `Token`. Of `Basic` the password is, too.
    """
    said = value.partition(" ")[2]
    found = {value, said}
    try:
        _, _, password = b64decode(said or value, validate=True).decode().partition(":")
        found.add(password)
    except (NotBase64, UnicodeDecodeError, ValueError):
        pass  # not `Basic`
    return {part for part in found if len(part) >= min(SHORTEST, len(value))}


def without(text: str, *secrets: str) -> str:
    """Return `text` without these secrets, of any length, in any spelling."""
    return _pattern({part for secret in secrets for part in parts(secret)}).sub(HIDDEN, text)


def _pattern(secrets: Iterable[str]) -> re.Pattern[str]:
    return _either({each for secret in secrets for each in spellings(secret)})


def _either(written: set[str]) -> re.Pattern[str]:
    # Longer ones first: a secret may be a part of another.
    texts = sorted(written - {""}, key=len, reverse=True)
    return re.compile("|".join(map(re.escape, texts)) or r"(?!)")


class KnownSecrets:
    """The secrets of this process. Safe from several threads."""

    def __init__(self) -> None:
        self._secrets: OrderedDict[str, None] = OrderedDict()
        self._pattern: re.Pattern[str] | None = None
        self._starts: frozenset[str] = frozenset()
        """The first letters of all spellings: a thousand are looked for in a tenth of a millisecond
        a kilobyte, where the pattern takes 30."""
        self._lock = Lock()

    def remember(self, *secrets: str) -> None:
        """Take in more; the ones given longest ago make room."""
        with self._lock:
            for secret in secrets:
                if len(secret) >= SHORTEST and secret not in self._secrets:
                    self._secrets[secret] = None
                    self._pattern = None
            while len(self._secrets) > REMEMBERED:
                self._secrets.popitem(last=False)

    def cut(self, text: str) -> str:
        """Return `text` without any of them, however they are spelled there."""
        pattern = self._pattern
        if pattern is None:
            with self._lock:
                known = {part for secret in self._secrets for part in parts(secret)}
                written = {each for part in known for each in spellings(part)}
                self._starts = frozenset(each[:SHORTEST] for each in written)
                pattern = self._pattern = _either(written)
        starts = self._starts
        if not any(text[i : i + SHORTEST] in starts for i in range(len(text) - SHORTEST + 1)):
            return text
        return pattern.sub(HIDDEN, text)


KNOWN = KnownSecrets()
"""What this process was given; tests put another in its place."""
_OPEN = frozenset(
    "accept accept-charset accept-encoding accept-language cache-control connection content-type"
    " host traceparent tracestate user-agent x-request-id".split()
)
"""Headers whose values everybody may see."""
_SECRET_NAME = re.compile(
    "key|token|secret|pass|pwd|cred|auth|cookie|session|dsn|_url$", re.IGNORECASE
)
"""Names of variables whose values are secret; of others a value may be any word: "production"."""


def remember(*secrets: str) -> None:
    """Cut these out of whatever is told or kept from now on; empty and very short ones are not."""
    KNOWN.remember(*secrets)


def remember_headers(headers: Mapping[str, str]) -> None:
    """Remember the values of the headers of requests, but for those that everybody may see."""
    remember(*(value for name, value in headers.items() if name.lower() not in _OPEN))


def remember_environment(variables: Mapping[str, str]) -> None:
    """Remember the values of environment variables whose names say that they are secret."""
    for name, value in variables.items():
        if _SECRET_NAME.search(name):
            remember(value)
            remember_url(value)


def remember_url(url: str) -> None:
    """Remember the password of a URL, as it is written there and as it is meant."""
    try:
        password = urlsplit(url).password or ""
    except ValueError:  # it is none
        return
    remember(password, unquote(password))


def without_known(text: str) -> str:
    """Return `text` without any secret that this process was given."""
    return KNOWN.cut(text)
