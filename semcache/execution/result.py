"""The result of a plan as text for a person."""

import json

from semcache.canonical import Json

NO_RESULT = "Execution completed but no result was produced."


def to_text(value: Json) -> str:
    """Return the `answer` of a result, else its `message`, else all of it as indented JSON.

    An answer or message that is no text is told as JSON on one line. By the document of OneMCP.
    """
    if value is None:
        return NO_RESULT
    for name in ("answer", "message"):
        told = value.get(name) if isinstance(value, dict) else None
        if told is not None:
            return told if isinstance(told, str) else _json(told, indent=None)
    return _json(value, indent=2)


def _json(value: Json, *, indent: int | None) -> str:
    separators = (",", ":") if indent is None else (",", ": ")
    return json.dumps(value, ensure_ascii=False, indent=indent, separators=separators)
