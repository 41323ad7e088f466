from collections.abc import Callable

import pytest

from semcache.canonical import Json, JsonObject
from semcache.prompts.mentions import Mention

Say = Callable[..., Mention]
Routes = Callable[..., JsonObject]


@pytest.fixture
def say() -> Say:
    """Return a maker of mentions; offsets do not matter to binding."""

    def make(
        text: str,
        kind: str = "number",
        value: Json = None,
        *,
        name: str = "",
        relative: bool = False,
    ) -> Mention:
        worth = text if value is None else value
        source = "given" if name else "recognized"
        return Mention(0, len(text), text, kind, worth, source, name, relative)  # type: ignore[arg-type]  # a Source

    return make


@pytest.fixture
def routes() -> Routes:
    """Return a maker of one-call routes plans."""

    def make(inputs: JsonObject, operation: str = "find") -> JsonObject:
        return {
            "start_node": {"route": "call"},
            "call": {"operation": operation, "input": inputs, "route": "end"},
            "end": {"completed": True, "vars": {"answer": "$.call"}},
        }

    return make
