"""A call of an operation as an HTTP request: its address, and values in the styles of OpenAPI."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import quote, urlencode, urljoin, urlsplit

from semcache.canonical import Json, JsonObject, as_object, dumps
from semcache.errors import InvalidOperation, InvalidSettings, OperationRefused
from semcache.sources.documents import Documents
from semcache.sources.openapi.exchange import Exchange, Request

PLACE = re.compile(r"\{([^{}]+)\}")
"""A name in braces, in a path or in an address."""


class Servers:
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
            name, variable = found[1], as_object(declared.get(found[1]))
            chosen = self._variables.get(name, variable.get("default"))
            allowed = variable.get("enum")
            if not isinstance(chosen, str) or (isinstance(allowed, list) and chosen not in allowed):
                raise InvalidSettings(
                    f"the variable {name!r} of the server's address is {chosen!r}; "
                    f"expected {allowed or 'text'}: give it by `variables`"
                )
            return chosen

        return PLACE.sub(value, str(server.get("url", "/")))

    def _variables_of(self, server: JsonObject) -> JsonObject:
        return as_object(server.get("variables"))


def _first_server(level: JsonObject) -> JsonObject:
    servers = level.get("servers")
    return as_object(servers[0]) if isinstance(servers, list) and servers else {}


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


Where = Literal["path", "query", "header", "cookie"]
Pairs = list[tuple[str, str]]
"""Names and values of a query string or of cookies, not encoded."""


@dataclass(frozen=True, slots=True)
class Argument:
    """How one input of an operation travels in the request."""

    input: str
    """Its name in the input of the operation."""
    name: str
    """Its name on the wire."""
    where: Where
    style: str
    """How lists and objects are spelled, by OpenAPI's names: `form`, `simple`, `deepObject`."""
    explode: bool
    """Whether each item of a list has a pair of its own."""
    as_json: bool = False
    """Whether the value is spelled as JSON, whatever it is."""
    members: frozenset[str] | None = None
    """Members that an object here may have; None: any."""
    taken: frozenset[str] = frozenset()
    """Names on the wire that its members may not have: they are of others."""


def pairs(argument: Argument, value: Json) -> Pairs:
    """Return the pairs of a query string or cookie for one value."""
    if argument.as_json:
        return [(argument.name, dumps(value))]
    if isinstance(value, list):
        return _list_pairs(argument, value)
    if isinstance(value, dict):
        return _object_pairs(argument, value)
    # A null is what is not given: a query string has no word for it.
    return [] if value is None else [(argument.name, _text(value))]


def _list_pairs(argument: Argument, value: list[Json]) -> Pairs:
    if argument.explode and argument.style == "form":
        return [(argument.name, _text(item)) for item in value]
    separator = {"spaceDelimited": " ", "pipeDelimited": "|"}.get(argument.style, ",")
    return [(argument.name, _joined(argument, map(_text, value), separator))]


def _object_pairs(argument: Argument, value: JsonObject) -> Pairs:
    for key in value:
        _check_member(argument, key)
    if argument.style == "deepObject":
        return [(f"{argument.name}[{key}]", _text(item)) for key, item in value.items()]
    if argument.explode:
        return [(key, _text(item)) for key, item in value.items()]
    said = (text for key, item in value.items() for text in (key, _text(item)))
    return [(argument.name, _joined(argument, said, ","))]


def _check_member(argument: Argument, key: str) -> None:
    """Refuse a member that would be a parameter of its own: a value says no more than itself."""
    foreign = argument.members is not None and key not in argument.members
    spread = argument.explode and argument.style != "deepObject"
    nested = argument.style == "deepObject" and not {"[", "]"}.isdisjoint(key)
    if foreign or nested or (spread and key.lower() in argument.taken):
        known = "" if argument.members is None else f": {', '.join(sorted(argument.members))}"
        raise OperationRefused(
            f"{argument.input!r} has a member {key!r}, which would be sent as a parameter of its "
            f"own; expected those that the operation describes{known}"
        )


def _joined(argument: Argument, texts: Iterable[str], separator: str) -> str:
    """Return texts as one; none may hold what parts them, or it would be read as several."""
    said = list(texts)
    for text in said:
        if separator in text:
            raise OperationRefused(
                f"{argument.input!r} holds {text[:80]!r}; {separator!r} parts values there and has "
                "no other spelling"
            )
    return separator.join(said)


def simple(argument: Argument, value: Json) -> str:
    """Return a value in OpenAPI's style `simple`, nothing encoded."""
    if argument.as_json:
        return dumps(value)
    if isinstance(value, list):
        return _joined(argument, map(_text, value), ",")
    if isinstance(value, dict):
        if argument.explode:
            return _joined(argument, (f"{key}={_text(item)}" for key, item in value.items()), ",")
        return _joined(argument, (t for k, v in value.items() for t in (k, _text(v))), ",")
    return "" if value is None else _text(value)


def path_part(argument: Argument, value: Json) -> str:
    """Return a value as one part of a path: every character that could end the part is encoded."""
    if argument.style == "simple" and not argument.as_json and isinstance(value, list):
        return ",".join(quote(_text(item), safe="") for item in value)
    text = quote(simple(argument, value), safe="")
    prefix = {"label": ".", "matrix": f";{quote(argument.name, safe='')}="}.get(argument.style, "")
    return prefix + text if text else ""


def _text(value: Json) -> str:
    return value if isinstance(value, str) else dumps(value)


@dataclass(frozen=True, slots=True)
class Body:
    """How the body of the request is made, always as JSON."""

    media_type: str
    whole: str = ""
    """The input that is the body; empty if its members are inputs themselves."""
    members: Mapping[str, str] = field(default_factory=dict)
    """Input → member of the body."""
    required: bool = False


@dataclass(frozen=True, slots=True)
class HttpCall:
    """The code behind an operation of an HTTP service."""

    name: str
    """The operation's."""
    method: str
    """In upper case."""
    server: str
    """What the path is appended to, without a slash at its end."""
    path: str
    """With `{name}` where a value goes."""
    arguments: tuple[Argument, ...]
    body: Body | None
    exchange: Exchange

    def __call__(self, values: JsonObject) -> object:
        """Return what the service answers to `values`: JSON, text, or None for an empty answer.

        Raises:
            OperationRefused: a value cannot stand where it has to; nothing was sent.
            SourceRejected: the service answered with an error.
            SourceUnavailable: it is unreachable, too late, or answered what cannot be read.
            OutputTooLarge: the answer is over the bound.
        """
        given = {a: values[a.input] for a in self.arguments if a.input in values}
        query = [pair for a, v in given.items() if a.where == "query" for pair in pairs(a, v)]
        request = Request(
            name=self.name,
            method=self.method,
            shown=f"{self.method} {self.path}",
            server=self.server,
            target=self._path(given) + (f"?{urlencode(query, quote_via=quote)}" if query else ""),
            headers=self._headers(given),
            body=self._body(values),
        )
        return self.exchange.send(request)

    def _path(self, given: Mapping[Argument, Json]) -> str:
        path = self.path
        for argument in (a for a in self.arguments if a.where == "path"):
            text = path_part(argument, given.get(argument))
            # `..` is a step up in a path and has no other spelling; empty would be another route.
            if text in {"", ".", ".."}:
                raise OperationRefused(
                    f"{argument.input!r} of operation {self.name!r} is {text!r}; "
                    "expected what can be one part of a path"
                )
            path = path.replace(f"{{{argument.name}}}", text)
        return path

    def _headers(self, given: Mapping[Argument, Json]) -> dict[str, str]:
        headers = {"Accept": "application/json, text/*;q=0.5, */*;q=0.1"}
        cookies: Pairs = []
        for argument, value in given.items():
            if argument.where == "header":
                headers[argument.name] = self._line(argument, simple(argument, value))
            elif argument.where == "cookie":
                cookies += pairs(argument, value)
        if cookies:
            headers["Cookie"] = "; ".join(f"{k}={quote(v, safe='')}" for k, v in cookies)
        return headers

    def _line(self, argument: Argument, text: str) -> str:
        if not (text.isascii() and text.isprintable()):
            raise OperationRefused(
                f"{argument.input!r} of operation {self.name!r} is {text[:80]!r}; "
                "expected printable ASCII, for it travels in a header"
            )
        return text.strip()

    def _body(self, values: JsonObject) -> tuple[str, bytes] | None:
        if self.body is None:
            return None
        if self.body.whole:
            if self.body.whole not in values:
                return None
            return self.body.media_type, dumps(values[self.body.whole]).encode()
        members = {m: values[i] for i, m in self.body.members.items() if i in values}
        if not members and not self.body.required:
            return None
        return self.body.media_type, dumps(members).encode()
