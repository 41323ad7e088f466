"""HTTP requests to a service with its credentials, and what comes back, under bounds."""

import threading
from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import urlsplit

from semcache.canonical import loads
from semcache.errors import (
    InvalidJson,
    InvalidSettings,
    OutputTooLarge,
    SourceRejected,
    SourceUnavailable,
)
from semcache.process.imports import ensure_imported
from semcache.secrecy import remember, without
from semcache.sources.documents import body_of, missing

if TYPE_CHECKING:
    import httpx


@dataclass(frozen=True, slots=True)
class Auth:
    """Credentials for the requests to one service; combine several by `|`.

    They are in no repr, log, error, schema or fingerprint of ours.
    """

    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Header → its value."""
    query: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Parameter of the query string → its value."""

    def __post_init__(self) -> None:
        for name, value in {**self.headers, **self.query}.items():
            if not name or not value or not all(map(str.isprintable, (name, value))):
                # The value stays out of the message: it is a secret, even if it is malformed.
                raise InvalidSettings(
                    f"the credential {name!r} is empty or holds a line break or control character; "
                    "expected printable text, without the white space around it"
                )
        remember(*self.headers.values(), *self.query.values())

    @classmethod
    def bearer(cls, token: str) -> "Auth":
        """Return `Authorization: Bearer token`."""
        return cls(headers={"Authorization": f"Bearer {token}"})

    @classmethod
    def basic(cls, user: str, password: str) -> "Auth":
        """Return `Authorization: Basic` for a user and password, by RFC 7617."""
        pair = b64encode(f"{user}:{password}".encode()).decode("ascii")
        return cls(headers={"Authorization": f"Basic {pair}"})

    @classmethod
    def header(cls, name: str, value: str) -> "Auth":
        """Return one header, such as `X-API-Key`."""
        return cls(headers={name: value})

    @classmethod
    def parameter(cls, name: str, value: str) -> "Auth":
        """Return one parameter of the query string, such as `api_key`."""
        return cls(query={name: value})

    def __or__(self, other: "Auth") -> "Auth":
        return Auth({**self.headers, **other.headers}, {**self.query, **other.query})

    @property
    def names(self) -> frozenset[tuple[str, str]]:
        """Where credentials go, as (`header` or `query`, name in lower case)."""
        headers = {("header", name.lower()) for name in self.headers}
        return frozenset(headers | {("query", name.lower()) for name in self.query})


Credentials: TypeAlias = Auth | Callable[[], Auth]
"""What authenticates a request; a function is asked anew for each, so that tokens may expire."""


def current(credentials: Credentials) -> Auth:
    """Return what holds for a request made now."""
    return credentials if isinstance(credentials, Auth) else credentials()


MAX_EXCERPT = 500  # characters of an error's body that are told
MAX_ERROR_BYTES = 8_192  # of an error's body that are read


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
            ensure_imported("httpx")
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
        """Return the answer: JSON, text, or None if it is empty. Raises as `HttpCall`."""
        if not self.response.is_success:
            raise self._rejected()
        body = self._read(self.max_bytes)
        if len(body) > self.max_bytes:
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
        body = self._read(MAX_ERROR_BYTES)[:MAX_ERROR_BYTES]
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
        text = without(text, *self.auth.headers.values(), *self.auth.query.values())
        return " ".join(text.split())[:MAX_EXCERPT]

    def _read(self, limit: int) -> bytes:
        return body_of(self.response, limit, self.timeout_s, what=f"the answer to {self._shown}")
