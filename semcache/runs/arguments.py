"""What a tool is called with: described to models as JSON Schema, and read strictly."""

from collections.abc import Mapping
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from semcache.canonical import JsonObject
from semcache.errors import InvalidInput
from semcache.schemas import faults


class Arguments(BaseModel):
    """The arguments of a tool; one that it does not have is refused, and none is converted."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Nothing(Arguments):
    """No arguments."""


A = TypeVar("A", bound=Arguments)


def schema_of(model: type[Arguments]) -> JsonObject:
    """Return the JSON Schema of the arguments, under the names that a caller gives them."""
    said = model.model_json_schema(by_alias=True)
    properties: JsonObject = {}
    for name, field in said.get("properties", {}).items():
        properties[name] = {key: value for key, value in field.items() if key != "title"}
    return {
        "type": "object",
        "properties": properties,
        "required": list(said.get("required", [])),
        "additionalProperties": False,
    }


def read(model: type[A], name: str, arguments: Mapping[str, object] | None) -> A:
    """Return the arguments that the tool `name` was called with; None stands for none.

    Raises:
        InvalidInput: they are not what it takes.
    """
    try:
        return model.model_validate(dict(arguments or {}))
    except ValidationError as error:
        told = "; ".join(faults(error)[:5])
        raise InvalidInput(f"the arguments of {name} do not fit: {told}") from error
