"""One call of an operation as one HTTP request."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote, urlencode

from semcache.canonical import Json, JsonObject, dumps
from semcache.errors import OperationRefused
from semcache.sources.openapi.exchange import Exchange, Request
from semcache.sources.openapi.spelling import Argument, Pairs, pairs, path_part, simple


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
