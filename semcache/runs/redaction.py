"""What may be kept of a value or event: no secrets, not what a caller hides, not too much."""

import math
import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from functools import lru_cache
from typing import Any, Final

from semcache.canonical import MAX_DEPTH, Json, JsonObject
from semcache.events import Event
from semcache.prompts.redaction import Redact, checked
from semcache.secrecy import HIDDEN, without_known

MAX_CHARS: Final = 2000
"""Characters of the texts of one value that are kept, all of them together."""

SHORTEST: Final = 6
"""Characters of the shortest text that can hold a secret that is told by its form."""

_NAMES = re.compile(
    r"(?:^|[_-])(?:pass(?:word|wd|phrase)?|pwd|secrets?|tokens?|api[_-]?keys?|access[_-]?keys?|"
    r"private[_-]?keys?|authorization|auth|credentials?|cookies?|session[_-]?id|bearer)$",
    re.IGNORECASE,
)
_COUNTED = re.compile(r"(?:prompt|completion|total|max|input|output)[_-]tokens$", re.IGNORECASE)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_SECRETS = re.compile(
    r"""
    \b(?:sk|pk|rk)[-_][A-Za-z0-9_-]{8,}            # OpenAI, Anthropic, Stripe
    | \bgh[pousr]_[A-Za-z0-9]{20,} | \bgithub_pat_\w{20,}
    | \bxox[abprs]-[A-Za-z0-9-]{10,}               # Slack
    | \bA(?:KI|SI)A[A-Z0-9]{16}\b                  # AWS
    | \bAIza[\w-]{30,}                             # Google
    | \beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*            # JSON Web Token
    | -----BEGIN\ [A-Z ]*PRIVATE\ KEY-----[\s\S]*?(?:-----END\ [A-Z ]*PRIVATE\ KEY-----|\Z)
    | (?<=://)[^\s/:@]+:[^\s/@]+(?=@)              # user:password of a URL
    | (?i:(?<=bearer\ )|(?<=basic\ ))[\w.~+/=-]{6,}
    | (?i:(?<=password[=:])|(?<=api_key[=:])|(?<=apikey[=:])|(?<=token[=:])|(?<=secret[=:]))
      [^\s&"',;]+
    """,
    re.VERBOSE,
)


def hidden(text: str) -> str:
    """Return `text` with `<redacted>` for what looks like a secret, and for those we were given."""
    return text if len(text) < SHORTEST else _SECRETS.sub(HIDDEN, without_known(text))


@lru_cache(maxsize=4096)  # the same few names come with every call
def is_secret_name(name: str) -> bool:
    """Return whether what is called `name` is a secret: `api_key`, `userPassword`, `token`."""
    spelled = _CAMEL.sub("_", name)
    return bool(_NAMES.search(spelled)) and not _COUNTED.search(spelled)


def kept(value: object, *, max_chars: int = MAX_CHARS) -> Json:
    """Return a copy of what may be kept of `value`: JSON, without secrets, and bounded.

    A text is cut, a list and an object end, where the room is used up, and say so. What is no JSON
    (NaN, a set, a cycle) becomes a text that names its type. Cost: the room, not the value.
    """
    return _Keeping(max_chars).of(value, 0, ())


class _Keeping:
    """One value, and the room that is left for it."""

    def __init__(self, room: int) -> None:
        self.room = room

    def of(self, value: object, depth: int, above: tuple[int, ...]) -> Json:
        copy: Json = f"<{type(value).__name__}>"
        if value is None or isinstance(value, bool | int | float):
            copy = _scalar(value)
            self.room -= len(str(copy))
        elif isinstance(value, str):
            copy = self.text(value)
        elif depth > MAX_DEPTH or id(value) in above:
            copy = "<cycle or too deep>"
        elif isinstance(value, Mapping):
            copy = self.mapping(value, depth + 1, (*above, id(value)))
        elif isinstance(value, list | tuple):
            copy = self.items(value, depth + 1, (*above, id(value)))
        return copy

    def text(self, text: str) -> str:
        cut = text[: max(self.room, 0) + 200]  # a secret across the edge is still seen whole
        shown = hidden(cut).encode("utf-8", "replace").decode()
        if len(shown) > self.room or len(cut) < len(text):
            shown = f"{shown[: max(self.room, 0)]}… ({len(text):,} characters)"
        self.room -= len(shown)
        return shown

    def mapping(self, value: Mapping[object, object], depth: int, above: tuple[int, ...]) -> Json:
        copy: JsonObject = {}
        for number, (key, item) in enumerate(value.items()):
            if self.room <= 0:
                copy["…"] = f"{len(value) - number} more"
                break
            name = self.text(key if isinstance(key, str) else f"<{type(key).__name__}>")
            secret = is_secret_name(name) and item not in (None, "", {})
            copy[name] = HIDDEN if secret else self.of(item, depth, above)
        return copy

    def items(
        self, value: list[object] | tuple[object, ...], depth: int, above: tuple[int, ...]
    ) -> Json:
        copy: list[Json] = []
        for number, item in enumerate(value):
            if self.room <= 0:
                copy.append(f"… {len(value) - number} more")
                break
            copy.append(self.of(item, depth, above))
        return copy


def _scalar(value: float | bool | None) -> Json:  # noqa: FBT001 - a value, not a switch
    if isinstance(value, float) and not math.isfinite(value):
        return f"<{value}>"
    if isinstance(value, int) and value.bit_length() > 64:
        return f"<integer of {value.bit_length():,} bits>"
    return value


SAID = frozenset(["name", "input", "output", "error", "notes", "reason", "details", "what"])
"""Fields of events that may quote a prompt, its values, or what an operation answered."""


def redacted_event(event: Event, redact: Redact) -> Event:
    """Return `event` with every text in it that quotes something as `redact` leaves it."""
    if not is_dataclass(event):
        return event
    changes: dict[str, Any] = {
        f.name: redacted_json(getattr(event, f.name), redact)
        for f in fields(event)
        if f.name in SAID
    }
    return replace(event, **changes) if changes else event


def redacted_json(value: Json, redact: Redact) -> Json:
    """Return a copy of `value` whose texts and keys are as `redact` leaves them; numbers too.

    A number that would be changed as a text becomes one.
    """
    match value:
        case dict():
            return {checked(redact, k): redacted_json(v, redact) for k, v in value.items()}
        case list():
            return [redacted_json(item, redact) for item in value]
        case None | bool():
            return value
        case str():
            return checked(redact, value)
        case _:
            text = str(value)
            shown = checked(redact, text)
            return value if shown == text else shown
