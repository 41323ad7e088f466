"""A quick yes to values that fit a JSON Schema: a hundredth of the time of a full validation.

Values fit nearly always, so the full validator is asked only where this one is not sure. It knows
the keywords that operations use and is not sure of any value under a keyword that it does not know;
a yes from here is a yes from `jsonschema` as well, which a property test holds it to.
"""

import re
from collections.abc import Callable

from semcache.canonical import Json, JsonObject, as_object, same

Check = Callable[[Json], bool]
"""Whether a value surely fits; False if it does not, or if that is not sure."""

_TYPES: dict[str, Check] = {
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: type(value) is int,  # 1.0 is one too, but that is for the validator
    "number": lambda value: type(value) in {int, float},
    "string": lambda value: isinstance(value, str),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
}
# Keywords that no value can break: notes for readers, and formats, which are not asserted.
_NOTES = frozenset({
    "$comment", "$defs", "$schema", "default", "deprecated", "description", "examples", "format",
    "readOnly", "title", "writeOnly",
})  # fmt: skip
# Read together, since what is additional depends on what is declared.
_OF_OBJECTS = frozenset({"properties", "required", "additionalProperties"})


def quick_check(schema: JsonObject) -> Check:
    """Return the check of `schema`; of what is no schema, one that is never sure."""
    return _Compiler(schema).check(schema)


def _always(_: Json) -> bool:
    return True


def _never(_: Json) -> bool:
    return False


def _all(checks: list[Check]) -> Check:
    if len(checks) == 1:
        return checks[0]

    def fits(value: Json) -> bool:
        for check in checks:  # noqa: SIM110 - all() with a generator takes twice the time
            if not check(value):
                return False
        return True

    return fits


class _Compiler:
    """Turns a schema into nested functions, once."""

    def __init__(self, root: JsonObject) -> None:
        definitions = root.get("$defs")
        self.definitions = as_object(definitions)
        self.open: set[str] = set()
        """Definitions being read; one inside itself is left to the full validator."""

    def check(self, schema: Json) -> Check:
        if schema is True:
            return _always
        if not isinstance(schema, dict):
            return _never
        checks = [
            self.keyword(name, argument)
            for name, argument in schema.items()
            if name not in _NOTES | _OF_OBJECTS
        ]
        if not _OF_OBJECTS.isdisjoint(schema):
            checks.append(self.of_object(schema))
        return _all(checks) if checks else _always

    def keyword(self, name: str, argument: Json) -> Check:
        read = _KEYWORDS.get(name)
        return read(self, argument) if read else _of_size(name, argument)

    def of_items(self, schema: Json) -> Check:
        check = self.check(schema)
        return lambda value: not isinstance(value, list) or all(map(check, value))

    def of_any(self, schemas: Json) -> Check:
        if not isinstance(schemas, list):
            return _never
        checks = [self.check(schema) for schema in schemas]
        return lambda value: any(check(value) for check in checks)

    def referred(self, reference: Json) -> Check:
        name = str(reference).removeprefix("#/$defs/")
        if name == reference or name in self.open or name not in self.definitions:
            return _never
        self.open.add(name)
        check = self.check(self.definitions[name])
        self.open.discard(name)
        return check

    def of_object(self, schema: JsonObject) -> Check:
        declared, required = schema.get("properties", {}), schema.get("required", [])
        if not isinstance(declared, dict) or not isinstance(required, list):
            return _never
        members = {name: self.check(member) for name, member in declared.items()}
        other = self.check(schema.get("additionalProperties", True))

        def fits(value: Json) -> bool:
            if not isinstance(value, dict):
                return True
            if not all(name in value for name in required):
                return False
            return all(members.get(name, other)(member) for name, member in value.items())

        return fits


def _of_type(_: _Compiler, name: Json) -> Check:
    return _TYPES.get(name, _never) if isinstance(name, str) else _never


def _of_enum(_: _Compiler, values: Json) -> Check:
    if not isinstance(values, list):
        return _never
    texts = frozenset(value for value in values if isinstance(value, str))
    others = [value for value in values if not isinstance(value, str)]

    def listed(value: Json) -> bool:
        return value in texts if isinstance(value, str) else any(same(value, o) for o in others)

    return listed


def _of_const(_: _Compiler, constant: Json) -> Check:
    return lambda value: same(value, constant)


def _of_pattern(_: _Compiler, pattern: Json) -> Check:
    try:
        found = re.compile(str(pattern)).search
    except re.error:
        return _never
    return lambda value: not isinstance(value, str) or found(value) is not None


def _of_size(name: str, bound: Json) -> Check:
    if isinstance(bound, bool) or not isinstance(bound, (int, float)) or name not in _SIZES:
        return _never
    measured, fits = _SIZES[name]

    def check(value: Json) -> bool:
        size = measured(value)
        return size is None or fits(size, bound)

    return check


def _amount(value: Json) -> float | None:
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _characters(value: Json) -> float | None:
    return len(value) if isinstance(value, str) else None


def _count(value: Json) -> float | None:
    return len(value) if isinstance(value, list) else None


def _at_least(size: float, bound: float) -> bool:
    return size >= bound


def _at_most(size: float, bound: float) -> bool:
    return size <= bound


_KEYWORDS: dict[str, Callable[[_Compiler, Json], Check]] = {
    "type": _of_type,
    "enum": _of_enum,
    "const": _of_const,
    "pattern": _of_pattern,
    "items": _Compiler.of_items,
    "anyOf": _Compiler.of_any,
    "$ref": _Compiler.referred,
}
_Measure = Callable[[Json], float | None]
_SIZES: dict[str, tuple[_Measure, Callable[[float, float], bool]]] = {
    "minimum": (_amount, _at_least),
    "maximum": (_amount, _at_most),
    "exclusiveMinimum": (_amount, lambda size, bound: size > bound),
    "exclusiveMaximum": (_amount, lambda size, bound: size < bound),
    "minLength": (_characters, _at_least),
    "maxLength": (_characters, _at_most),
    "minItems": (_count, _at_least),
    "maxItems": (_count, _at_most),
}
