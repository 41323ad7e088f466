"""Who a caller is: bearer tokens, each of one tenant."""

import hashlib
import hmac
from collections.abc import Mapping

from semcache.canonical import loads
from semcache.errors import InvalidSettings

MIN_CHARS = 16


class Tokens:
    """Bearer tokens → tenants. Keeps digests alone, so that no repr, log or dump shows a token."""

    def __init__(self, tenants: Mapping[str, str]) -> None:
        """Take token → tenant.

        Raises:
            InvalidSettings: no token, one that is short enough to guess, or a tenant without name.
        """
        if not tenants:
            raise InvalidSettings("there are no tokens; expected at least one, as token → tenant")
        for number, (token, tenant) in enumerate(tenants.items(), start=1):
            # The token itself stays out of the message.
            if len(token) < MIN_CHARS or not token.isascii() or not token.isprintable():
                raise InvalidSettings(
                    f"token {number} of {len(tenants)} has {len(token)} characters; expected at "
                    f"least {MIN_CHARS}, printable ASCII"
                )
            if not tenant:
                raise InvalidSettings(f"token {number} of {len(tenants)} is of no tenant")
        self._tenants = tuple((_digest(token), tenant) for token, tenant in tenants.items())

    def __repr__(self) -> str:
        return f"Tokens({len(self._tenants)} tokens)"

    @classmethod
    def read(cls, text: str) -> "Tokens":
        """Return the tokens of a JSON object, or of lines `token tenant`; `#` begins a comment.

        Raises:
            InvalidSettings: it is neither, or a token cannot be used.
        """
        if text.lstrip().startswith("{"):
            found = loads(text, what="the tokens")
            if not isinstance(found, dict) or not all(isinstance(t, str) for t in found.values()):
                raise InvalidSettings("the tokens are no JSON object of token → tenant")
            return cls({token: str(tenant) for token, tenant in found.items()})
        tenants: dict[str, str] = {}
        for number, line in enumerate(text.splitlines(), start=1):
            words = line.partition("#")[0].split()
            if not words:
                continue
            if len(words) != 2:
                raise InvalidSettings(
                    f"line {number} of the tokens has {len(words)} words; expected `token tenant`"
                )
            tenants[words[0]] = words[1]
        return cls(tenants)

    def tenant(self, token: str) -> str | None:
        """Return whose `token` is; None if nobody's. Takes as long for each token."""
        asked, found = _digest(token), None
        for digest, tenant in self._tenants:
            if hmac.compare_digest(digest, asked):
                found = tenant
        return found


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
