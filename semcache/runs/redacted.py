"""Events as they may be written down, where a caller says what may not."""

from dataclasses import fields, is_dataclass, replace
from typing import Any

from semcache.canonical import Json
from semcache.events import Event
from semcache.prompts.redaction import Redact, checked

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
