"""Who a caller is: bearer tokens, each of one tenant, with rights."""

import hashlib
import hmac
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, cast, get_args

from semcache.canonical import Json, loads
from semcache.errors import InvalidSettings
from semcache.secrecy import remember

Right = Literal["read", "write", "ask", "metrics"]
"""What a caller may do: look things up; store and remove plans; have prompts answered, which may
ask models and run operations; read the counts of all tenants together. Who may ask or write may
also judge what was found."""
RIGHTS: frozenset[Right] = frozenset(get_args(Right))
USUAL: frozenset[Right] = frozenset({"read", "ask"})
"""The rights of a token that names none. A plan that somebody stores is run by who asks after him,
so that writing must be granted by name."""
MIN_CHARS = 16


@dataclass(frozen=True, slots=True)
class Holder:
    """Who a caller is."""

    tenant: str
    rights: frozenset[Right] = USUAL


def rights_of(words: Iterable[str]) -> frozenset[Right]:
    """Return the rights that are named.

    Raises:
        InvalidSettings: one of them is none, or there are none.
    """
    named = frozenset(words)
    if not named or not named <= RIGHTS:
        # The words stay out of the message: one may be a token that stands in a wrong place.
        raise InvalidSettings(
            f"a token has {len(named - RIGHTS)} unknown rights of {len(named)}; expected some of "
            f"{','.join(sorted(RIGHTS))}"
        )
    return cast("frozenset[Right]", named)


class Tokens:
    """Bearer tokens → holders. Keeps digests alone, so that no repr, log or dump shows a token."""

    def __init__(self, holders: Mapping[str, str | Holder]) -> None:
        """Take token → holder, or the name of a tenant for one with the usual rights.

        Raises:
            InvalidSettings: no token, one that is short enough to guess, or a tenant without name.
        """
        tenants = {token: h if isinstance(h, Holder) else Holder(h) for token, h in holders.items()}
        if not tenants:
            raise InvalidSettings("there are no tokens; expected at least one, as token → tenant")
        for number, (token, holder) in enumerate(tenants.items(), start=1):
            # The token itself stays out of the message.
            if len(token) < MIN_CHARS or not token.isascii() or not token.isprintable():
                raise InvalidSettings(
                    f"token {number} of {len(tenants)} has {len(token)} characters; expected at "
                    f"least {MIN_CHARS}, printable ASCII"
                )
            if not holder.tenant:
                raise InvalidSettings(f"token {number} of {len(tenants)} is of no tenant")
        remember(*tenants)
        self._holders = tuple((_digest(token), holder) for token, holder in tenants.items())

    def __repr__(self) -> str:
        return f"Tokens({len(self._holders)} tokens)"

    @classmethod
    def read(cls, text: str) -> "Tokens":
        """Return the tokens of lines `token tenant [rights]`, where `#` begins a comment.

        Or of a JSON object: token → tenant, or → `{"tenant": …, "rights": […]}`.

        Raises:
            InvalidSettings: it is neither, or a token cannot be used.
        """
        if text.lstrip().startswith("{"):
            found = loads(text, what="the tokens")
            return cls(_of_json(found if isinstance(found, dict) else {}))
        holders: dict[str, str | Holder] = {}
        for number, line in enumerate(text.splitlines(), start=1):
            words = line.partition("#")[0].split()
            if not words:
                continue
            if len(words) not in {2, 3}:
                raise InvalidSettings(
                    f"line {number} of the tokens has {len(words)} words; expected "
                    "`token tenant`, or `token tenant read,write,ask`"
                )
            rights = rights_of(words[2].split(",")) if len(words) == 3 else USUAL
            holders[words[0]] = Holder(words[1], rights)
        return cls(holders)

    @property
    def tenants(self) -> frozenset[str]:
        """The tenants of the tokens."""
        return frozenset(holder.tenant for _, holder in self._holders)

    def holder(self, token: str) -> Holder | None:
        """Return who holds `token`; None if nobody does. Takes as long for each token."""
        asked, found = _digest(token), None
        for digest, holder in self._holders:
            if hmac.compare_digest(digest, asked):
                found = holder
        return found


def _of_json(found: Mapping[str, Json]) -> dict[str, str | Holder]:
    holders: dict[str, str | Holder] = {}
    for token, said in found.items():
        match said:
            case str():
                holders[token] = said
            case {"tenant": str(tenant), **more} if set(more) <= {"rights"}:
                holders[token] = Holder(tenant, _listed(more["rights"]) if more else USUAL)
            case _:
                raise InvalidSettings(
                    'the tokens are no JSON object of token → tenant, or → {"tenant", "rights"}'
                )
    return holders


def _listed(rights: object) -> frozenset[Right]:
    return rights_of(map(str, rights) if isinstance(rights, list) else ())


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
