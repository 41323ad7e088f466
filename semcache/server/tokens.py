"""Who a caller is: bearer tokens, each of one tenant, with rights."""

import hashlib
import hmac
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Literal, NotRequired, TypeAlias, cast, get_args

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError, with_config
from typing_extensions import TypedDict

from semcache.cache.query import check_tenant
from semcache.canonical import as_object, loads
from semcache.errors import InvalidInput, InvalidSettings
from semcache.schemas import STRICT
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
            _check(f"token {number} of {len(tenants)}", token, holder)
        remember(*tenants)
        self._holders = tuple((_digest(token), holder) for token, holder in tenants.items())

    def __repr__(self) -> str:
        return f"Tokens({len(self._holders)} tokens)"

    @classmethod
    def read(cls, text: str) -> "Tokens":
        """Return the tokens of lines `token tenant [rights]`, where `#` begins a comment.

        Or of a JSON object: token → tenant, or → `{"tenant": …, "rights": […]}`.

        Raises:
            InvalidSettings: it is neither, or a token cannot be used; the message says which line
                or token it is, and shows no token.
        """
        listed = _in_json(text) if text.lstrip().startswith("{") else _in_lines(text)
        holders: dict[str, str | Holder] = {}
        for where, token, holder in listed:
            _check(where, token, holder)
            if token in holders:
                raise InvalidSettings(f"{where} has a token once more; expected each once")
            holders[token] = holder
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


_Listed: TypeAlias = Iterator[tuple[str, str, Holder]]
"""Where each token stands, the token, and its holder."""


def _in_lines(text: str) -> _Listed:
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        if len(words) not in {2, 3}:
            raise InvalidSettings(
                f"line {number} of the tokens has {len(words)} words; expected "
                "`token tenant`, or `token tenant read,write,ask`"
            )
        try:
            rights = rights_of(words[2].split(",")) if len(words) == 3 else USUAL
        except InvalidSettings as error:
            raise InvalidSettings(f"line {number} of the tokens: {error}") from None
        yield f"line {number} of the tokens", words[0], Holder(words[1], rights)


@with_config(ConfigDict(**STRICT, extra="forbid"))  # a misspelled member would grant what is usual
class _HolderDoc(TypedDict):
    tenant: str
    rights: NotRequired[Annotated[list[Right], Field(min_length=1)]]


_SCHEMA: TypeAdapter[str | _HolderDoc] = TypeAdapter(str | _HolderDoc)


def _in_json(text: str) -> _Listed:
    said = as_object(loads(text, what="the file of tokens"))
    for number, (token, holder) in enumerate(said.items(), start=1):
        where = f"token {number} of {len(said)}"
        try:
            found = _SCHEMA.validate_python(holder, strict=True)
        except ValidationError as error:
            # Neither what was found nor its place is shown as it is: both may be tokens.
            at = error.errors(include_input=False, include_url=False)[-1]["loc"]
            member = next((f" at {part!r}" for part in at if part in {"tenant", "rights"}), "")
            raise InvalidSettings(
                f'{where}{member}: expected a tenant, or {{"tenant", "rights"}} with rights of '
                f"{','.join(sorted(RIGHTS))}"
            ) from None
        if isinstance(found, str):
            yield where, token, Holder(found)
        else:
            yield where, token, Holder(found["tenant"], frozenset(found.get("rights", USUAL)))


def _check(where: str, token: str, holder: Holder) -> None:
    if len(token) < MIN_CHARS or not token.isascii() or not token.isprintable():
        raise InvalidSettings(  # the token itself stays out of the message
            f"{where} has {len(token)} characters; expected at least {MIN_CHARS}, printable ASCII"
        )
    try:
        check_tenant(holder.tenant)
    except InvalidInput:  # which shows the name: it may be a token that stands in a wrong place
        raise InvalidSettings(
            f"{where} is of no tenant; expected printable text of 1 to 256 characters"
        ) from None


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
