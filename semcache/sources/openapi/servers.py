"""The servers of an OpenAPI document: which address an operation is called at."""

import re
from collections.abc import Mapping
from urllib.parse import urljoin, urlsplit

from semcache.canonical import JsonObject, as_object
from semcache.errors import InvalidOperation, InvalidSettings
from semcache.sources.documents import Documents

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
