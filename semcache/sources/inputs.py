"""The inputs of an operation of an OpenAPI document, as they are collected."""

from semcache.canonical import Json, JsonObject, as_object


class Inputs:
    """Collects the inputs of one operation."""

    def __init__(self) -> None:
        self._properties: JsonObject = {}
        self._required: list[Json] = []

    @property
    def names(self) -> set[str]:
        """The inputs so far."""
        return set(self._properties)

    def add(self, name: str, schema: Json, description: str, required: bool) -> None:  # noqa: FBT001 - as the document says
        """Take one more input."""
        described = as_object(schema)
        if description and "description" not in described:
            described = {**described, "description": description}
        self._properties[name] = described
        if required:
            self._required.append(name)

    def schema(self, definitions: JsonObject) -> JsonObject:
        """Return the JSON Schema of the input object."""
        schema: JsonObject = {
            "type": "object",
            "properties": self._properties,
            "additionalProperties": False,
        }
        if self._required:
            schema["required"] = self._required
        return with_definitions(schema, definitions)


def with_definitions(schema: JsonObject, definitions: JsonObject) -> JsonObject:
    """Return a schema with what it refers to."""
    return {**schema, "$defs": definitions} if definitions else schema
