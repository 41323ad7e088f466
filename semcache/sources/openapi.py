"""Operations from an OpenAPI 3.x document: each path and method becomes something a plan can call.

Parameters and the members of a JSON body become inputs of one flat object; enums become closed sets
of the catalog. GET, HEAD and OPTIONS read, anything else writes unless the caller knows better.
"""

import logging
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import get_args
from urllib.parse import urljoin, urlsplit

from semcache.canonical import Json, JsonObject
from semcache.catalog.catalog import Catalog
from semcache.catalog.operation import Effect, Operation
from semcache.closing import Closing
from semcache.errors import InvalidOperation, InvalidSettings
from semcache.sources.auth import Auth, Credentials
from semcache.sources.definitions import Definitions, Uses, shortened
from semcache.sources.documents import Documents, Located
from semcache.sources.http import Argument, Body, Exchange, HttpCall, Where, origin
from semcache.sources.told import Told

log = logging.getLogger(__name__)

METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")
READS = frozenset({"get", "head", "options"})
MAX_OPERATIONS = 5_000
# Headers that the request sets itself, by OpenAPI's own word on parameters.
_OWN_HEADERS = frozenset({"accept", "authorization", "content-type"})
_STYLES = {"path": "simple", "query": "form", "header": "simple", "cookie": "form"}
_PLACE = re.compile(r"\{([^{}]+)\}")
_JSON = re.compile(
    r"^(?:application/json|[\w.-]+/[\w.-]+\+json|\*/\*|application/\*)(?:;|$)", re.IGNORECASE
)


class OpenApiService(Closing):
    """A service that an OpenAPI document describes. Safe from several threads.

    Use it as a context manager, or close it: it keeps connections open between calls.
    """

    def __init__(self, catalog: Catalog, *, skipped: Mapping[str, str], exchange: Exchange) -> None:
        self.catalog = catalog
        """The operations, by `operationId`, else by method and path: `get_orders_by_id`."""
        self.skipped = dict(skipped)
        """Operations that could not be made → why."""
        self._exchange = exchange

    @classmethod
    def open(
        cls,
        source: Mapping[str, object] | str | Path,
        *,
        auth: Credentials | None = None,
        base_url: str | None = None,
        variables: Mapping[str, str] | None = None,
        effects: Mapping[str, Effect] | None = None,
        idempotency_keys: Mapping[str, str] | None = None,
        remote_references: bool = False,
        timeout_s: float = 30.0,
        max_response_bytes: int = 10 * 2**20,
    ) -> "OpenApiService":
        """Return the service that `source` describes: a file, a URL, or the document itself.

        Nothing is asked of the service before the first call; a URL is fetched now.

        Args:
            source: The document, JSON or YAML.
            auth: Credentials, or what gives them at each call. They go to the service's own
                origin and nowhere else.
            base_url: Address to call instead of the document's servers.
            variables: Values for the variables of the server's address.
            effects: Operation → its effect, where the method says otherwise: a POST that searches.
            idempotency_keys: Operation → the argument that takes its key, so that a write can be
                tried again. A header parameter `Idempotency-Key` needs no telling.
            remote_references: Whether references to other documents are followed.
            timeout_s: Seconds without an answer before a call is given up.
            max_response_bytes: Bytes that one answer may have.

        Raises:
            InvalidOperation: it is no OpenAPI 3 document, too large, or refers to what is not
                there, to itself in a circle, or to another document without leave.
            InvalidSettings: an argument cannot be used.
            SourceUnavailable: it cannot be read.
            MissingExtra: `semcache[openapi]` is not installed.
        """
        documents = Documents.open(source, remote=remote_references)
        _version(documents)
        servers = _Servers(documents, base_url, dict(variables or {}))
        exchange = Exchange(
            auth=auth or Auth(),
            trusted=origin(servers.of({}, {})),
            timeout_s=timeout_s,
            max_bytes=max_response_bytes,
        )
        reader = _Reader(documents, servers, exchange, _secrets(documents, auth))
        operations, skipped = reader.read()
        told = Told(effects or {}, idempotency_keys or {})
        told.check({operation.name for operation in operations})
        return cls(Catalog(map(told.applied, operations)), skipped=skipped, exchange=exchange)

    def close(self) -> None:
        """Close the connections; calling it twice is fine."""
        self._exchange.close()

    def __repr__(self) -> str:
        return f"OpenApiService({len(self.catalog)} operations, {len(self.skipped)} skipped)"


def _version(documents: Documents) -> str:
    version = documents.root.get("openapi")
    if not isinstance(version, str) or not version.startswith("3."):
        raise InvalidOperation(
            f"the document has `openapi`: {version!r}; expected OpenAPI 3.0, 3.1 or 3.2"
        )
    return version


class _Servers:
    """Which address an operation is called at."""

    def __init__(
        self, documents: Documents, base_url: str | None, variables: Mapping[str, str]
    ) -> None:
        self._documents = documents
        self._base_url = base_url
        self._variables = variables
        known = self._variables_of(_first_server(documents.root))
        for name in variables:
            if name not in known:
                raise InvalidSettings(
                    f"`variables` names {name!r}; the server's address has: "
                    f"{', '.join(map(repr, known)) or 'none'}"
                )

    def of(self, path: JsonObject, operation: JsonObject) -> str:
        """Return the address for an operation, without a slash at its end."""
        if self._base_url is not None:
            return _address(self._base_url, "`base_url`", InvalidSettings)
        levels = (_first_server(level) for level in (operation, path, self._documents.root))
        server = next((one for one in levels if one), {})
        url = urljoin(self._documents.base, self._filled(server))
        return _address(url, "the server of the document", InvalidOperation)

    def _filled(self, server: JsonObject) -> str:
        declared = self._variables_of(server)

        def value(found: re.Match[str]) -> str:
            name, variable = found[1], _object(declared.get(found[1]))
            chosen = self._variables.get(name, variable.get("default"))
            allowed = variable.get("enum")
            if not isinstance(chosen, str) or (isinstance(allowed, list) and chosen not in allowed):
                raise InvalidSettings(
                    f"the variable {name!r} of the server's address is {chosen!r}; "
                    f"expected {allowed or 'text'}: give it by `variables`"
                )
            return chosen

        return _PLACE.sub(value, str(server.get("url", "/")))

    def _variables_of(self, server: JsonObject) -> JsonObject:
        return _object(server.get("variables"))


def _first_server(level: JsonObject) -> JsonObject:
    servers = level.get("servers")
    return _object(servers[0]) if isinstance(servers, list) and servers else {}


def _address(url: str, what: str, refuse: type[InvalidOperation] | type[InvalidSettings]) -> str:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in {"http", "https"} and parts.hostname and (parts.port or 1)
    except ValueError:
        usable = False
    # The address may hold a password: it is told only if it does not.
    if not usable or "@" in url:
        shown = "an address with a user or password" if "@" in url else repr(url)
        raise refuse(
            f"{what} is {shown}; expected http:// or https:// and a host, credentials by `auth`. "
            "`base_url` overrides what the document says"
        )
    return url.partition("?")[0].partition("#")[0].rstrip("/")


def _secrets(documents: Documents, auth: Credentials | None) -> frozenset[tuple[str, str]]:
    """Return the parameters that carry credentials: no plan may see or set them."""
    components = _object(documents.root.get("components"))
    found = set(auth.names) if isinstance(auth, Auth) else set()
    for node in _object(components.get("securitySchemes")).values():
        scheme = _object(documents.follow(node, documents.base).value)
        if scheme.get("type") == "apiKey":
            found.add((str(scheme.get("in")), str(scheme.get("name")).lower()))
    return frozenset(found)


@dataclass(frozen=True, slots=True)
class _Parameter:
    """A parameter as the document has it."""

    argument: Argument
    schema: Json
    base: str
    description: str
    required: bool


class _Reader:
    """Makes operations of one document."""

    def __init__(
        self,
        documents: Documents,
        servers: _Servers,
        exchange: Exchange,
        secrets: frozenset[tuple[str, str]],
    ) -> None:
        self._documents = documents
        self._definitions = Definitions(documents, old=_version(documents).startswith("3.0"))
        self._servers = servers
        self._exchange = exchange
        self._secrets = secrets
        self._names: set[str] = set()

    def read(self) -> tuple[list[Operation], dict[str, str]]:
        """Return the operations, and for what could not become one, why."""
        operations: list[Operation] = []
        skipped: dict[str, str] = {}
        for path, item, method, node in self._endpoints():
            name = self._name(path, method, node.value)
            try:
                operations.append(self._operation(name, path, item, method, node))
            except _Unsupported as error:
                skipped[name] = str(error)
            if len(self._names) > MAX_OPERATIONS:
                raise InvalidOperation(f"the document has over {MAX_OPERATIONS} operations")
        for name, why in skipped.items():
            log.warning("operation %r is left out: %s", name, why)
        return operations, skipped

    def _endpoints(self) -> Iterator[tuple[str, Located, str, "Located"]]:
        for path, node in _object(self._documents.root.get("paths")).items():
            item = self._documents.follow(node, self._documents.base)
            for method in METHODS if path.startswith("/") else ():
                if isinstance(operation := _object(item.value).get(method), dict):
                    yield path, item, method, Located(operation, item.base, "")

    def _name(self, path: str, method: str, node: Json) -> str:
        """Return the `operationId`, else method and path; numbered if that was there already."""
        given = _object(node).get("operationId")
        name = given.strip() if isinstance(given, str) else ""
        name = name or _named(method, path)
        numbered = (f"{name}_{number}" for number in range(2, MAX_OPERATIONS + 3))
        chosen = next(one for one in (name, *numbered) if one not in self._names)
        self._names.add(chosen)
        return chosen

    def _operation(
        self, name: str, path: str, item: Located, method: str, node: Located
    ) -> Operation:
        described = _object(node.value)
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
                server=self._servers.of(_object(item.value), described),
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
            listed = _object(owner.value).get("parameters")
            for one in listed if isinstance(listed, list) else ():
                located = self._documents.follow(one, owner.base)
                described = _object(located.value)
                where, name = described.get("in"), described.get("name")
                if where in get_args(Where) and isinstance(name, str) and name:
                    found[str(where), name] = described, located.base
        # A place in the path that no parameter declares must be filled all the same.
        for name in _PLACE.findall(path):
            found.setdefault(("path", name), ({"schema": {"type": "string"}}, node.base))
        kept = {key: one for key, one in found.items() if not self._is_own(*key)}
        names = [name for _, name in kept]
        return [
            _parameter(where, name, *one, alone=names.count(name) == 1)
            for (where, name), one in kept.items()
        ]

    def _is_own(self, where: str, name: str) -> bool:
        lower = name.lower()
        return (where, lower) in self._secrets or (where == "header" and lower in _OWN_HEADERS)

    def _body(self, described: JsonObject, base: str, inputs: "_Inputs", uses: Uses) -> Body | None:
        if "requestBody" not in described:
            return None
        located = self._documents.follow(described["requestBody"], base)
        request = _object(located.value)
        required = request.get("required") is True
        kind, media = _json_media(request)
        if media is None:
            if not required:
                return None
            kinds = ", ".join(_object(request.get("content"))) or "nothing"
            raise _Unsupported(f"its body is {kinds}; only JSON can be sent")
        members = self._members(media.get("schema"), located.base)
        if members and not inputs.names & members.properties.keys():
            return self._flat(members, kind, inputs, uses, required=required)
        whole = _free("body", inputs.names)
        schema = self._definitions.schema(media.get("schema", {}), located.base, uses)
        inputs.add(whole, schema, shortened(request.get("description")), required)
        return Body(kind, whole=whole, required=required)

    def _flat(
        self, members: "_Members", kind: str, inputs: "_Inputs", uses: Uses, *, required: bool
    ) -> Body:
        for name, schema in members.properties.items():
            converted = self._definitions.schema(schema, members.base, uses)
            inputs.add(name, converted, "", required and name in members.required)
        return Body(kind, members={name: name for name in members.properties}, required=required)

    def _members(self, schema: Json, base: str) -> "_Members | None":
        """Return the members of a plain object schema that a caller sets; None for any other."""
        located = self._documents.follow(schema, base)
        found = _object(located.value)
        properties = _object(found.get("properties"))
        opened = found.get("additionalProperties", False) is not False
        keywords = {keyword for keyword in found if not keyword.startswith("x-")}
        if not properties or opened or not keywords <= _PLAIN:
            return None
        set_by_us = {
            name: node
            for name, node in properties.items()
            if _object(self._documents.follow(node, located.base).value).get("readOnly") is not True
        }
        listed = found.get("required")
        required = frozenset(map(str, listed)) if isinstance(listed, list) else frozenset[str]()
        return _Members(set_by_us, required, located.base) if set_by_us else None

    def _output(self, described: JsonObject, base: str) -> JsonObject:
        """Return the schema of the first answer that is a success, empty if it is unknown."""
        for status, node in _object(described.get("responses")).items():
            if not status.startswith("2"):
                continue
            located = self._documents.follow(node, base)
            _, media = _json_media(_object(located.value))
            if media is None:
                continue
            uses = Uses()
            schema = self._definitions.schema(media.get("schema", {}), located.base, uses)
            return _with_definitions(_object(schema), self._definitions.gathered(uses))
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
        described = schema if isinstance(schema, dict) else {}
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
    return {**schema, "$defs": definitions} if definitions else schema


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
    for kind, media in _object(owner.get("content")).items():
        if _JSON.match(kind):
            sent = kind if "*" not in kind else "application/json"
            return sent, _object(media)
    return "", None


def _named(method: str, path: str) -> str:
    """Return `get_users_orders_by_id` for GET /users/{id}/orders."""
    words = [re.sub(r"\W+", "_", part).strip("_") for part in path.split("/") if "{" not in part]
    places = [re.sub(r"\W+", "_", place).strip("_") for place in _PLACE.findall(path)]
    by = ["by", *places] if places else []
    return "_".join(word for word in (method, *words, *by) if word)


def _summary(described: JsonObject, name: str) -> str:
    told = [shortened(described.get(key)) for key in ("summary", "description")]
    return next(filter(None, told), name.replace("_", " "))


def _free(name: str, taken: set[str]) -> str:
    return name if name not in taken else _free(f"request_{name}", taken)


def _object(value: Json) -> JsonObject:
    return value if isinstance(value, dict) else {}
