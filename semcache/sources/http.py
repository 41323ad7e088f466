"""One HTTP request for one call of an operation, and what comes back, under bounds."""

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import TYPE_CHECKING, Literal
from urllib.parse import quote, urlencode, urlsplit

from semcache.canonical import Json, JsonObject, dumps, loads
from semcache.errors import (
    InvalidJson,
    OperationRefused,
    OutputTooLarge,
    SourceRejected,
    SourceUnavailable,
)
from semcache.sources.auth import Auth, Credentials, current
from semcache.sources.documents import missing

if TYPE_CHECKING:
    import httpx

MAX_EXCERPT = 500  # characters of an error's body that are told
MAX_ERROR_BYTES = 8_192  # of an error's body that are read

Where = Literal["path", "query", "header", "cookie"]
Pairs = list[tuple[str, str]]


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
    exchange: "Exchange"

    def __call__(self, values: JsonObject) -> object:
        """Return what the service answers to `values`: JSON, text, or None for an empty answer.

        Raises:
            OperationRefused: a value cannot stand where it has to; nothing was sent.
            SourceRejected: the service answered with an error.
            SourceUnavailable: it is unreachable, too late, or answered what cannot be read.
            OutputTooLarge: the answer is over the bound.
        """
        given = {a: values[a.input] for a in self.arguments if a.input in values}
        query = [pair for a, v in given.items() if a.where == "query" for pair in _pairs(a, v)]
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
            text = _joined(argument, given.get(argument))
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
                headers[argument.name] = self._line(argument, _plainly(argument, value))
            elif argument.where == "cookie":
                cookies += _pairs(argument, value)
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


def _pairs(argument: Argument, value: Json) -> Pairs:
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
    return [(argument.name, separator.join(map(_text, value)))]


def _object_pairs(argument: Argument, value: JsonObject) -> Pairs:
    if argument.style == "deepObject":
        return [(f"{argument.name}[{key}]", _text(item)) for key, item in value.items()]
    if argument.explode:
        return [(key, _text(item)) for key, item in value.items()]
    return [(argument.name, ",".join(f"{k},{_text(v)}" for k, v in value.items()))]


def _plainly(argument: Argument, value: Json) -> str:
    """Return a value in OpenAPI's style `simple`, nothing encoded."""
    if argument.as_json:
        return dumps(value)
    if isinstance(value, list):
        return ",".join(map(_text, value))
    if isinstance(value, dict):
        between = "=" if argument.explode else ","
        return ",".join(f"{key}{between}{_text(item)}" for key, item in value.items())
    return "" if value is None else _text(value)


def _joined(argument: Argument, value: Json) -> str:
    """Return a value as one part of a path: every character that could end the part is encoded."""
    if argument.style == "simple" and not argument.as_json and isinstance(value, list):
        return ",".join(quote(_text(item), safe="") for item in value)
    text = quote(_plainly(argument, value), safe="")
    prefix = {"label": ".", "matrix": f";{quote(argument.name, safe='')}="}.get(argument.style, "")
    return prefix + text if text else ""


def _text(value: Json) -> str:
    return value if isinstance(value, str) else dumps(value)


@dataclass(frozen=True, slots=True)
class Request:
    """What is sent, without credentials."""

    name: str
    """Of the operation."""
    method: str
    shown: str
    """Method and path as errors name them: without values."""
    server: str
    target: str
    """Path and query, encoded."""
    headers: Mapping[str, str]
    body: tuple[str, bytes] | None
    """Media type and bytes."""


class Exchange:
    """Sends requests to a service and reads bounded answers. Safe from several threads."""

    def __init__(
        self,
        *,
        auth: Credentials,
        trusted: str,
        timeout_s: float,
        max_bytes: int,
    ) -> None:
        """Keep what is asked for; nothing is connected before the first request.

        Args:
            auth: Credentials.
            trusted: Origin that may see them; requests elsewhere carry none.
            timeout_s: Seconds to connect, and seconds without a byte, before a call is given up.
            max_bytes: Bytes that one answer may have.
        """
        self._auth = auth
        self._trusted = trusted
        self._timeout_s = timeout_s
        self._max_bytes = max_bytes
        self._client: httpx.Client | None = None
        self._lock = threading.Lock()

    def send(self, request: Request) -> object:
        """Return what the service answers; see `HttpCall`."""
        try:
            import httpx  # noqa: PLC0415 - an extra
        except ImportError as error:
            raise missing(error) from error
        kind, content = request.body or ("", None)
        headers = {**request.headers, **({"Content-Type": kind} if kind else {})}
        try:
            url = httpx.URL(request.server + request.target)
            auth = current(self._auth) if origin(url) == self._trusted else Auth()
            with self._opened().stream(
                request.method,
                url,
                headers=headers,
                content=content,
                extensions={_CREDENTIALS: auth},
            ) as response:
                return _Answer(request, response, auth, self._max_bytes, self._timeout_s).value()
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError) as error:
            raise SourceUnavailable(
                f"{request.shown} of operation {request.name!r} had no answer: {_why(error)}"
            ) from error

    def close(self) -> None:
        """Close the connections; calling it twice is fine, and a later request opens new ones."""
        with self._lock:
            client, self._client = self._client, None
        if client is not None:
            client.close()

    def _opened(self) -> "httpx.Client":
        with self._lock:
            if self._client is None:
                self._client = _client(self._timeout_s)
            return self._client


_CREDENTIALS = "semcache_credentials"
"""Under which a request carries its credentials to the transport."""


def origin(url: "httpx.URL | str") -> str:
    """Return scheme, host and port of an http address, as one text."""
    parts = urlsplit(str(url))
    port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    return f"{parts.scheme}://{parts.hostname}:{port}"


def _client(timeout_s: float) -> "httpx.Client":
    """Return a client that follows no redirects, keeps no cookies, and reads no environment."""
    import httpx  # noqa: PLC0415 - an extra

    class Authorized(httpx.BaseTransport):
        """Adds the credentials below the client: above, it writes each address to its log."""

        def __init__(self) -> None:
            self._inner = httpx.HTTPTransport()

        def handle_request(self, request: httpx.Request) -> httpx.Response:
            auth = request.extensions.get(_CREDENTIALS, Auth())
            headers = request.headers.copy()
            headers.update(auth.headers)
            return self._inner.handle_request(
                httpx.Request(
                    request.method,
                    request.url.copy_merge_params(dict(auth.query)) if auth.query else request.url,
                    headers=headers,
                    stream=request.stream,
                    extensions={"timeout": request.extensions["timeout"]},
                )
            )

        def close(self) -> None:
            self._inner.close()

    return httpx.Client(
        transport=Authorized(),
        cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
        timeout=timeout_s,
        trust_env=False,
    )


def _why(error: Exception) -> str:
    """Return what went wrong; of an error that may quote what was sent, its kind alone."""
    import httpx  # noqa: PLC0415 - an extra

    if isinstance(error, httpx.ConnectError) and str(error):
        return f"{type(error).__name__}: {error}"
    return type(error).__name__


@dataclass(frozen=True, slots=True)
class _Answer:
    """One response, not read yet."""

    request: Request
    response: "httpx.Response"
    auth: Auth
    max_bytes: int
    timeout_s: float

    def value(self) -> object:
        """Return the answer: JSON, text, or None if it is empty."""
        if not self.response.is_success:
            raise self._rejected()
        body, whole = self._read(self.max_bytes)
        if not whole:
            raise OutputTooLarge(f"the answer to {self._shown} is over {self.max_bytes:,} bytes")
        if self.request.method == "HEAD" or not body.strip():
            return None
        return self._parsed(body)

    def _parsed(self, body: bytes) -> object:
        kind = self.response.headers.get("content-type", "").partition(";")[0].strip().lower()
        try:
            text = body.decode(self.response.charset_encoding or "utf-8")
            if kind.endswith(("/json", "+json")) or not kind:
                return loads(text, what=f"the answer to {self._shown}")
        except (UnicodeDecodeError, LookupError, InvalidJson) as error:
            raise SourceUnavailable(
                f"the answer to {self._shown} cannot be read as {kind or 'JSON'}: {error}"
            ) from error
        return text

    @property
    def _shown(self) -> str:
        return f"{self.request.shown} of operation {self.request.name!r}"

    def _rejected(self) -> SourceRejected:
        body, _ = self._read(MAX_ERROR_BYTES)
        status = self.response.status_code
        excerpt = self._excerpt(body.decode("utf-8", errors="replace"))
        moved = "; redirects are not followed" if self.response.is_redirect else ""
        return SourceRejected(
            f"the service answered {status} to {self._shown}{moved}"
            f"{': ' if excerpt else ''}{excerpt}",
            status=status,
            excerpt=excerpt,
        )

    def _excerpt(self, text: str) -> str:
        """Return the beginning of an error's body; some services echo what they were sent."""
        for secret in (*self.auth.headers.values(), *self.auth.query.values()):
            for part in {secret, secret.rpartition(" ")[2]}:
                text = text.replace(part, "***")
        return " ".join(text.split())[:MAX_EXCERPT]

    def _read(self, limit: int) -> tuple[bytes, bool]:
        """Return the first bytes of the body, and whether that is all of it."""
        deadline = time.monotonic() + self.timeout_s
        body = bytearray()
        for chunk in self.response.iter_bytes():
            body += chunk
            if len(body) > limit:
                return bytes(body[:limit]), False
            # Each single read has its timeout; this ends an answer that drips for ever.
            if time.monotonic() > deadline:
                raise SourceUnavailable(
                    f"the answer to {self._shown} was not whole after {self.timeout_s:g} s"
                )
        return bytes(body), True
