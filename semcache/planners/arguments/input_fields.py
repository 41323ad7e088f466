"""Input fields: what an operation takes, one property of its input schema each."""

from dataclasses import dataclass

from semcache.binding.types import choices, types
from semcache.canonical import Json, JsonObject, as_object

MAX_PLACES = 2000
"""Properties of one operation that are looked at, required ones first; nobody fills more."""


@dataclass(frozen=True, slots=True)
class InputField:
    """One property of an operation's input."""

    name: str
    """As the schema spells it."""
    schema: JsonObject
    """What its value must be."""
    required: bool
    types: frozenset[str]
    """JSON types that it takes, without null; empty if the schema does not say."""
    description: str = ""

    @property
    def has_default(self) -> bool:
        """Whether the schema says what is taken if nothing is given."""
        return "default" in self.schema

    @property
    def takes_text(self) -> bool:
        """Whether text goes in as it is."""
        return not self.types or "string" in self.types


def places(schema: JsonObject) -> tuple[InputField, ...]:
    """Return the places of an input schema, required ones first, then in the schema's order.

    What cannot be read is left out; of a schema with more than two thousand only the first.
    """
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return ()
    listed = schema.get("required")
    required = set(map(str, listed)) if isinstance(listed, list) else set[str]()
    first = [name for name in properties if name in required]
    names = [*first, *(name for name in properties if name not in required)][:MAX_PLACES]
    return tuple(
        _place(name, properties[name], schema, required=name in required) for name in names
    )


def _place(name: str, described: Json, root: JsonObject, *, required: bool) -> InputField:
    one = as_object(described)
    texts = (part.get("description") for part in choices(one, root))
    text = next((text for text in texts if isinstance(text, str)), "")
    return InputField(name, one, required, frozenset(types(one, root) - {"null"}), text)
