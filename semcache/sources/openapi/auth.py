"""What a service wants to see with each request: given at run time, shown nowhere."""

from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from semcache.errors import InvalidSettings
from semcache.secrecy import remember


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
