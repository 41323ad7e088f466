"""The endpoints of an OpenAPI document: each path and method becomes an operation."""

import logging
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import get_args

from semcache.canonical import Json, JsonObject, as_list, as_object
from semcache.catalog.operation import Operation
from semcache.errors import InvalidOperation
from semcache.sources.definitions import Definitions, Uses, shortened
from semcache.sources.documents import Documents, Located
from semcache.sources.openapi.exchange import Exchange
from semcache.sources.openapi.http_call import PLACE, Argument, Body, HttpCall, Servers, Where

log = logging.getLogger(__name__)

METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")
READS = frozenset({"get", "head", "options"})
MAX_OPERATIONS = 5_000
# Headers that the request sets itself, by OpenAPI's own word on parameters.
_OWN_HEADERS = frozenset({"accept", "authorization", "content-type"})
_STYLES = {"path": "simple", "query": "form", "header": "simple", "cookie": "form"}
_JSON = re.compile(
    r"^(?:application/json|[\w.-]+/[\w.-]+\+json|\*/\*|application/\*)(?:;|$)", re.IGNORECASE
)


def version(documents: Documents) -> str:
    """Return the version of OpenAPI that a document says it has.

    Raises:
        InvalidOperation: it is not 3.0, 3.1 or 3.2.
    """
    said = documents.root.get("openapi")
    if not isinstance(said, str) or not said.startswith("3."):
        raise InvalidOperation(
            f"the document has `openapi`: {said!r}; expected OpenAPI 3.0, 3.1 or 3.2"
        )
    return said


@dataclass(frozen=True, slots=True)
class _Parameter:
    """A parameter as the document has it."""

    argument: Argument
    schema: Json
    base: str
    description: str
    required: bool


class _Inputs:
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
        return _with_definitions(schema, definitions)


def _with_definitions(schema: JsonObject, definitions: JsonObject) -> JsonObject:
    """Return a schema with what it refers to."""
    return {**schema, "$defs": definitions} if definitions else schema


class Endpoints:
    """Makes operations of one document."""

    def __init__(
        self,
        documents: Documents,
        servers: Servers,
        exchange: Exchange,
        secrets: frozenset[tuple[str, str]],
    ) -> None:
        self._documents = documents
        self._definitions = Definitions(documents, old=version(documents).startswith("3.0"))
        self._servers = servers
        self._exchange = exchange
        self._secrets = secrets
        self._names: set[str] = set()

    def read(self) -> tuple[list[Operation], dict[str, str]]:
        """Return the operations, and for what could not become one, why.

        Raises:
            InvalidOperation: there are more than `MAX_OPERATIONS`.
        """
        operations: list[Operation] = []
        skipped: dict[str, str] = {}
        for path, item, method, node in self._endpoints():
            name = self._name(path, method, node.value)
            try:
                operations.append(self._operation(name, path, item, method, node))
            except _Unsupported as error:
                skipped[name] = str(error)
            if len(self._names) > MAX_OPERATIONS:
                raise InvalidOperation(
                    f"the document has over {MAX_OPERATIONS:,} operations; hand in a part of it"
                )
        for name, why in skipped.items():
            log.warning("operation %r is left out: %s", name, why)
        return operations, skipped

    def _endpoints(self) -> Iterator[tuple[str, Located, str, "Located"]]:
        for path, node in as_object(self._documents.root.get("paths")).items():
            item = self._documents.follow(node, self._documents.base)
            for method in METHODS if path.startswith("/") else ():
                if isinstance(operation := as_object(item.value).get(method), dict):
                    yield path, item, method, Located(operation, item.base, "")

    def _name(self, path: str, method: str, node: Json) -> str:
        """Return the `operationId`, else method and path; numbered if that was there already."""
        given = as_object(node).get("operationId")
        name = given.strip() if isinstance(given, str) else ""
        name = name or _named(method, path)
        numbered = (f"{name}_{number}" for number in range(2, MAX_OPERATIONS + 3))
        chosen = next(one for one in (name, *numbered) if one not in self._names)
        self._names.add(chosen)
        return chosen

    def _operation(
        self, name: str, path: str, item: Located, method: str, node: Located
    ) -> Operation:
        described = as_object(node.value)
        parameters = self._parameters(path, item, node)
        uses = Uses()
        inputs = _Inputs()
        for parameter in parameters:
            schema = self._definitions.schema(parameter.schema, parameter.base, uses)
            inputs.add(parameter.argument.input, schema, parameter.description, parameter.required)
        body = self._body(described, node.base, inputs, uses)
        operation = Operation(
            name=name,
            summary=_summary(described, name),
            input_schema=inputs.schema(self._definitions.gathered(uses)),
            output_schema=self._output(described, node.base),
            effect="read" if method in READS else "write",
            call=HttpCall(
                name=name,
                method=method.upper(),
                server=self._servers.of(as_object(item.value), described),
                path=path,
                arguments=tuple(parameter.argument for parameter in parameters),
                body=body,
                exchange=self._exchange,
            ),
        )
        key = next((p.argument.input for p in parameters if _takes_key(p.argument)), None)
        return operation if key is None else operation.keyed(key)

    def _parameters(self, path: str, item: Located, node: Located) -> list[_Parameter]:
        """Return the parameters; the operation's own replace the path's of the same name."""
        found: dict[tuple[str, str], tuple[JsonObject, str]] = {}
        for owner in (item, node):
            for one in as_list(as_object(owner.value).get("parameters")):
                located = self._documents.follow(one, owner.base)
                described = as_object(located.value)
                where, name = described.get("in"), described.get("name")
                if where in get_args(Where) and isinstance(name, str) and name:
                    found[str(where), name] = described, located.base
        # A place in the path that no parameter declares must be filled all the same.
        for name in PLACE.findall(path):
            found.setdefault(("path", name), ({"schema": {"type": "string"}}, node.base))
        kept = {key: one for key, one in found.items() if not self._is_own(*key)}
        names = [name for _, name in kept]
        made = [
            _parameter(where, name, *one, alone=names.count(name) == 1)
            for (where, name), one in kept.items()
        ]
        return [replace(one, argument=self._bounded(one, kept)) for one in made]

    def _bounded(self, parameter: _Parameter, kept: Collection[tuple[str, str]]) -> Argument:
        """Return the argument, whose value may be no other argument and no credential."""
        located = self._documents.follow(parameter.schema, parameter.base)
        schema = as_object(located.value)
        properties = as_object(schema.get("properties"))
        described = properties and not schema.get("additionalProperties")
        argument = parameter.argument
        taken = {name.lower() for where, name in {*kept, *self._secrets} if where == argument.where}
        return replace(
            argument,
            members=frozenset(properties) if described else None,
            # A member may have the name of its own parameter, as the style `form` spells it.
            taken=frozenset(
                taken - {name.lower() for name in properties}
                | ({name for where, name in self._secrets if where == argument.where})
            ),
        )

    def _is_own(self, where: str, name: str) -> bool:
        lower = name.lower()
        return (where, lower) in self._secrets or (where == "header" and lower in _OWN_HEADERS)

    def _body(self, described: JsonObject, base: str, inputs: _Inputs, uses: Uses) -> Body | None:
        if "requestBody" not in described:
            return None
        located = self._documents.follow(described["requestBody"], base)
        request = as_object(located.value)
        required = request.get("required") is True
        kind, media = _json_media(request)
        if media is None:
            if not required:
                return None
            kinds = ", ".join(as_object(request.get("content"))) or "nothing"
            raise _Unsupported(f"its body is {kinds}; only JSON can be sent")
        members = self._members(media.get("schema"), located.base)
        if members and not inputs.names & members.properties.keys():
            return self._flat(members, kind, inputs, uses, required=required)
        whole = _free("body", inputs.names)
        schema = self._definitions.schema(media.get("schema", {}), located.base, uses)
        inputs.add(whole, schema, shortened(request.get("description")), required)
        return Body(kind, whole=whole, required=required)

    def _flat(
        self, members: "_Members", kind: str, inputs: _Inputs, uses: Uses, *, required: bool
    ) -> Body:
        for name, schema in members.properties.items():
            converted = self._definitions.schema(schema, members.base, uses)
            inputs.add(name, converted, "", required and name in members.required)
        return Body(kind, members={name: name for name in members.properties}, required=required)

    def _members(self, schema: Json, base: str) -> "_Members | None":
        """Return the members of a plain object schema that a caller sets; None for any other."""
        located = self._documents.follow(schema, base)
        found = as_object(located.value)
        properties = as_object(found.get("properties"))
        opened = found.get("additionalProperties", False) is not False
        keywords = {keyword for keyword in found if not keyword.startswith("x-")}
        if not properties or opened or not keywords <= _PLAIN:
            return None
        set_by_us = {
            name: node
            for name, node in properties.items()
            if not self._is_read_only(node, located.base)
        }
        listed = found.get("required")
        required = frozenset(map(str, listed)) if isinstance(listed, list) else frozenset[str]()
        return _Members(set_by_us, required, located.base) if set_by_us else None

    def _is_read_only(self, node: Json, base: str) -> bool:
        return as_object(self._documents.follow(node, base).value).get("readOnly") is True

    def _output(self, described: JsonObject, base: str) -> JsonObject:
        """Return the schema of the first answer that is a success, empty if it is unknown."""
        for status, node in as_object(described.get("responses")).items():
            if not status.startswith("2"):
                continue
            located = self._documents.follow(node, base)
            _, media = _json_media(as_object(located.value))
            if media is None:
                continue
            uses = Uses()
            schema = self._definitions.schema(media.get("schema", {}), located.base, uses)
            return _with_definitions(as_object(schema), self._definitions.gathered(uses))
        return {}


class _Unsupported(Exception):
    """An operation asks for what we cannot send; the others are none the worse for it."""


# Of a schema whose members become inputs; with any other keyword it is one input, whole.
_PLAIN = frozenset({
    "additionalProperties", "description", "example", "examples", "externalDocs", "properties",
    "required", "title", "type", "xml",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Members:
    """The members of a body."""

    properties: JsonObject
    required: frozenset[str]
    base: str
    """URI of the document that they are in."""


def _parameter(
    where: str, name: str, described: JsonObject, base: str, *, alone: bool
) -> _Parameter:
    _, media = _json_media(described)
    style = str(described.get("style") or _STYLES[where])
    explode = described.get("explode")
    place = next(one for one in get_args(Where) if one == where)
    argument = Argument(
        input=name if alone else f"{where}_{name}",
        name=name,
        where=place,
        style=style,
        explode=explode if isinstance(explode, bool) else style == "form",
        as_json=media is not None,
    )
    schema = media.get("schema", {}) if media is not None else described.get("schema", {})
    required = where == "path" or described.get("required") is True
    return _Parameter(argument, schema, base, shortened(described.get("description")), required)


def _takes_key(argument: Argument) -> bool:
    """Return whether it is the header of draft-ietf-httpapi-idempotency-key-header."""
    return argument.where == "header" and argument.name.lower() == "idempotency-key"


def _json_media(owner: JsonObject) -> tuple[str, JsonObject | None]:
    """Return the JSON media type of a `content` and what it holds; None if there is none."""
    for kind, media in as_object(owner.get("content")).items():
        if _JSON.match(kind):
            sent = kind if "*" not in kind else "application/json"
            return sent, as_object(media)
    return "", None


def _named(method: str, path: str) -> str:
    """Return `get_users_orders_by_id` for GET /users/{id}/orders."""
    words = [re.sub(r"\W+", "_", part).strip("_") for part in path.split("/") if "{" not in part]
    places = [re.sub(r"\W+", "_", place).strip("_") for place in PLACE.findall(path)]
    by = ["by", *places] if places else []
    return "_".join(word for word in (method, *words, *by) if word)


def _summary(described: JsonObject, name: str) -> str:
    told = [shortened(described.get(key)) for key in ("summary", "description")]
    return next(filter(None, told), name.replace("_", " "))


def _free(name: str, taken: set[str]) -> str:
    return name if name not in taken else _free(f"request_{name}", taken)
