"""Volatile fields: what a plan has anew each time, such as a call's random id or a thought.

They are taken out of a plan before it is kept, and are neither compared nor served.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

from semcache.binding.texts.json_text import respelled
from semcache.canonical import Json, Pointer, loads, pointer_text
from semcache.errors import InvalidInput, InvalidJson
from semcache.plans.document import LISTED

Ignore: TypeAlias = Iterable[str] | Callable[[str], bool]
"""Paths, or what says of a path whether it is volatile.

A path goes from the root by keys and positions, `/tool_calls/0/id`; `*` stands for any one of them,
`**` for any number. One that does not begin with `/` is a key at any depth: `thought`. Paths go on
inside a text that is JSON: `/tool_calls/*/function/arguments/thought`.
"""

_OUT = object()


@dataclass(frozen=True, slots=True)
class Volatile:
    """Which fields of plans are volatile."""

    is_volatile: Callable[[str], bool]

    @classmethod
    def of(cls, ignore: Ignore) -> "Volatile":
        """Return the fields that `ignore` names.

        Raises:
            InvalidInput: it is neither paths nor something to call.
        """
        if callable(ignore):
            return cls(ignore)
        paths: list[object] = [] if isinstance(ignore, str) else list(ignore)
        if isinstance(ignore, str) or not all(isinstance(each, str) and each for each in paths):
            raise InvalidInput(
                f"ignore is {ignore!r}; expected a list of paths such as '/tool_calls/*/id', or a "
                "function that takes a path"
            )
        patterns = [_pattern(str(path)) for path in paths]
        if not patterns:
            return NOTHING
        return cls(lambda path: any(pattern.fullmatch(path) for pattern in patterns))

    def without(self, plan: Json) -> Json:
        """Return `plan` without its volatile fields.

        A member of an object goes; an item of a list becomes null, so that the others stay where
        they are.
        """
        if isinstance(plan, dict) and plan.keys() == {LISTED}:
            return {LISTED: self.without(plan[LISTED])}
        found = self._kept(plan, ())
        return None if found is _OUT else found  # type: ignore[return-value]  # else it is JSON

    def _kept(self, value: Json, at: Pointer) -> object:
        if at and self.is_volatile(pointer_text(at)):
            return _OUT
        if isinstance(value, dict):
            members = {key: self._kept(item, (*at, key)) for key, item in value.items()}
            return {key: item for key, item in members.items() if item is not _OUT}
        if isinstance(value, list):
            items = [self._kept(item, (*at, i)) for i, item in enumerate(value)]
            return [None if item is _OUT else item for item in items]
        return self._kept_text(value, at) if isinstance(value, str) else value

    def _kept_text(self, text: str, at: Pointer) -> str:
        if text.lstrip()[:1] not in {"{", "["}:
            return text
        try:
            inner = loads(text)
        except InvalidJson:
            return text
        kept = self._kept(inner, at) if isinstance(inner, dict | list) else inner
        return text if kept == inner else respelled(text, kept)  # type: ignore[arg-type]  # JSON


def _pattern(path: str) -> re.Pattern[str]:
    parts = path.split("/")[1:] if path.startswith("/") else ["**", path]
    spelled = "".join(
        {"**": "(?:/[^/]*)*", "*": "/[^/]*"}.get(part, f"/{re.escape(part)}") for part in parts
    )
    return re.compile(spelled)


NOTHING = Volatile(lambda _: False)
"""No field is volatile."""
