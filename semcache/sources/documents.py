"""Reading OpenAPI documents: from a file, a URL or a dict, with what they refer to, in bounds."""

import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urldefrag, urljoin, urlsplit
from urllib.request import url2pathname

from semcache.canonical import MAX_DEPTH, Json, JsonObject, loads, plain
from semcache.errors import InvalidJson, InvalidOperation, MissingExtra, SourceUnavailable
from semcache.files import binary, unreadable

if TYPE_CHECKING:
    import httpx
    from referencing import Registry

MAX_VALUES = 2_000_000  # in one document: YAML aliases make much out of little
MAX_BYTES = 32 * 2**20  # of one document; GitHub's own description has 12 MB
MAX_DOCUMENTS = 50  # that one document may refer to
MAX_HOPS = 20  # from reference to reference
FETCH_TIMEOUT_S = 30.0
EXPECTED = "an OpenAPI document, as JSON or YAML"

Fetch = Callable[[str], bytes]
"""From a URL to the bytes there, in bounded time and size."""


@dataclass(frozen=True, slots=True)
class Located:
    """A value of a document, and where it stands."""

    value: Json
    base: str
    """URI of the document that it is in; empty for a dict. References in it start from here."""
    uri: str
    """Its own URI if a reference led here, else empty."""


class Documents:
    """One document and, with the caller's leave, those that it refers to. One thread at a time."""

    def __init__(self, base: str, root: JsonObject, *, remote: bool, fetch: Fetch) -> None:
        self.base = base
        """URI of the document itself; empty for a dict."""
        self.root = root
        """The document."""
        self._remote = remote
        self._fetch = fetch
        self._known = {base}
        self._registry = _with(_registry(), base, root)

    @classmethod
    def open(
        cls,
        source: Mapping[str, object] | str | Path,
        *,
        remote: bool = False,
        fetch: Fetch | None = None,
    ) -> "Documents":
        """Return the document in a file, at a URL, or given as an object.

        `remote`: whether references to other documents are followed.

        Raises:
            InvalidOperation: it is neither JSON nor YAML, or too large.
            SourceUnavailable: it cannot be read.
        """
        fetch = fetch or fetched
        if isinstance(source, Mapping):
            return cls(
                "", _object(_checked(source, "the document"), ""), remote=remote, fetch=fetch
            )
        base = str(source) if _is_url(str(source)) else Path(source).absolute().as_uri()
        return cls(base, _read(base, fetch), remote=remote, fetch=fetch)

    def follow(self, value: Json, base: str) -> Located:
        """Return `value`, or what it refers to if it is a reference, or a reference to one.

        Raises:
            InvalidOperation: a reference leads nowhere, in a circle, or to another document
                without leave.
            SourceUnavailable: another document cannot be read.
        """
        uri, seen = "", set[str]()
        while isinstance(value, dict) and isinstance(reference := value.get("$ref"), str):
            uri = urljoin(base, reference)
            if uri in seen or len(seen) >= MAX_HOPS:
                raise InvalidOperation(
                    f"the reference {reference!r} leads in a circle, or over more than {MAX_HOPS} "
                    "other references"
                )
            seen.add(uri)
            value, base = self._at(uri, reference), urldefrag(uri)[0]
        return Located(value, base, uri)

    def _at(self, uri: str, reference: str) -> Json:
        from referencing.exceptions import Unresolvable  # noqa: PLC0415 - an extra

        document = urldefrag(uri)[0]
        if document not in self._known:
            self._admit(document, reference)
        try:
            found: Json = self._registry.resolver(document).lookup(uri).contents
        except (Unresolvable, ValueError, TypeError, KeyError) as error:
            raise InvalidOperation(
                f"the reference {reference!r} leads to nothing that is in the document"
            ) from error
        return found

    def _admit(self, document: str, reference: str) -> None:
        if not self._remote:
            raise InvalidOperation(
                f"the reference {reference!r} leads to another document; "
                "pass `remote_references=True` to follow it, if you trust the one it is in"
            )
        # A document from the net must not make us read the files of this machine.
        if not _is_url(document) and not self.base.startswith("file:"):
            raise InvalidOperation(
                f"the reference {reference!r} leads to a file or nowhere; expected an http address"
            )
        if len(self._known) > MAX_DOCUMENTS:
            raise InvalidOperation(f"the document refers to over {MAX_DOCUMENTS} others")
        self._registry = _with(self._registry, document, _read(document, self._fetch))
        self._known.add(document)


def _registry() -> "Registry[Json]":
    try:
        from referencing import Registry  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise missing(error) from error
    registry: Registry[Json] = Registry()
    return registry


def _with(registry: "Registry[Json]", uri: str, root: JsonObject) -> "Registry[Json]":
    from referencing import Specification  # noqa: PLC0415 - an extra

    # Opaque: an OpenAPI document is no JSON Schema, and `$id` in it means nothing here.
    extended: Registry[Json] = registry.with_resource(
        uri, Specification.OPAQUE.create_resource(root)
    )
    return extended


def missing(error: ImportError) -> MissingExtra:
    """Return what to tell someone who has not installed what OpenAPI documents need."""
    return MissingExtra(
        f"OpenAPI documents need a package that is not installed ({error.name}); "
        "install `semcache-plans[openapi]`"
    )


def _is_url(text: str) -> bool:
    return urlsplit(text).scheme in {"http", "https"}


def _read(uri: str, fetch: Fetch) -> JsonObject:
    body = fetch(uri) if _is_url(uri) else _file(uri)
    what = f"the OpenAPI document {_place(uri)!r}"
    return _object(_checked(_parsed(body, what), what), what)


def _place(uri: str) -> str:
    """Return where a document is, without a query string, which may hold a key."""
    parts = urlsplit(uri)
    return url2pathname(parts.path) if parts.scheme == "file" else f"{parts.hostname}{parts.path}"


def _file(uri: str) -> bytes:
    path = Path(url2pathname(urlsplit(uri).path))
    try:
        with path.open("rb") as file:
            body = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise SourceUnavailable(unreadable(path, error, expected=EXPECTED)) from error
    return _bounded(body, uri)


def _bounded(body: bytes, uri: str) -> bytes:
    if len(body) > MAX_BYTES:
        raise InvalidOperation(f"the OpenAPI document {_place(uri)!r} is over {MAX_BYTES:,} bytes")
    return body


def fetched(url: str) -> bytes:
    """Return the bytes at `url`, read within half a minute.

    Raises:
        SourceUnavailable: it cannot be had.
        InvalidOperation: it is over the bound.
    """
    try:
        import httpx  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise missing(error) from error
    try:
        with (
            httpx.Client(timeout=FETCH_TIMEOUT_S, follow_redirects=True, trust_env=False) as client,
            client.stream("GET", url) as response,
        ):
            response.raise_for_status()
            what = f"the OpenAPI document {_place(url)!r}"
            return _bounded(body_of(response, MAX_BYTES, FETCH_TIMEOUT_S, what=what), url)
    except (httpx.HTTPError, httpx.InvalidURL, UnicodeError) as error:
        raise SourceUnavailable(
            f"the OpenAPI document {_place(url)!r} cannot be read: {_why(error)}"
        ) from error


def _why(error: Exception) -> str:
    """Return what went wrong, without the address: its query string may hold a key."""
    response = getattr(error, "response", None)
    if response is not None:
        return f"the server answered {response.status_code}"
    return type(error).__name__


def body_of(response: "httpx.Response", limit: int, timeout_s: float, *, what: str) -> bytes:
    """Return the body of a response, or of one over `limit` bytes some more than these.

    Raises:
        SourceUnavailable: it drips for longer than `timeout_s`; each single read has its own bound.
    """
    deadline = time.monotonic() + timeout_s
    body = bytearray()
    for chunk in response.iter_bytes():
        body += chunk
        if len(body) > limit:
            break
        if time.monotonic() > deadline:
            raise SourceUnavailable(f"{what} was not whole after {timeout_s:g} s")
    return bytes(body)


def _parsed(body: bytes, what: str) -> object:
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        found, way = binary(body) or ("not UTF-8 text", "write it as UTF-8")
        raise InvalidOperation(f"{what} is {found}; expected {EXPECTED}: {way}") from error
    if text.lstrip().startswith("{"):
        try:
            return loads(text, what=what)
        except InvalidJson as error:
            raise InvalidOperation(f"{error}; expected {EXPECTED}") from error
    return parsed(text, what)


def _checked(value: object, what: str) -> Json:
    """Return `value` as plain JSON, unless that would be endless."""
    if _size(value, {}) > MAX_VALUES:
        raise InvalidOperation(f"{what} has over {MAX_VALUES:,} values")
    try:
        return plain(_keyed(value), what=what)
    except InvalidJson as error:
        raise InvalidOperation(str(error)) from error


def _size(value: object, known: dict[int, int], depth: int = 0) -> int:
    """Return how many values there are; each shared part is measured once and counted each time."""
    if not isinstance(value, Mapping | list):
        return 1
    if known.get(id(value)) == 0:
        raise InvalidOperation("the document contains itself, by an alias of YAML")
    if depth > MAX_DEPTH:
        raise InvalidOperation(f"the document is nested deeper than {MAX_DEPTH} levels")
    if id(value) not in known:
        known[id(value)] = 0
        inner = value.values() if isinstance(value, Mapping) else value
        known[id(value)] = 1 + sum(_size(item, known, depth + 1) for item in inner)
    return known[id(value)]


def _keyed(value: object) -> object:
    """Return `value` with keys as text: YAML reads the status `200` as a number."""
    if isinstance(value, Mapping):
        return {
            str(key) if isinstance(key, int | float) else key: _keyed(item)
            for key, item in value.items()
        }
    return list(map(_keyed, value)) if isinstance(value, list) else value


def _object(value: Json, what: str) -> JsonObject:
    if not isinstance(value, dict):
        raise InvalidOperation(
            f"{what or 'the document'} is of type {type(value).__name__}; expected an object"
        )
    return value


# YAML as OpenAPI wants it: the JSON schema of YAML 1.2, so that `no` and dates are text.

_SCALARS = {
    "null": (r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    "bool": (r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    "int": (r"[-+]?(?:0|[1-9][0-9]*)", list("-+0123456789")),
    "float": (
        r"[-+]?(?:\.[0-9]+|[0-9]+\.[0-9]*|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?",
        list("-+.0123456789"),
    ),
    "merge": ("<<", ["<"]),
}
MAX_EVENTS = 4_000_000  # scalars, and beginnings and ends of lists and objects


@cache
def _loader() -> Any:  # noqa: ANN401 - a class, made of one that its package does not type
    """Return what makes null, booleans, numbers, text, lists and objects, and nothing else."""
    try:
        import yaml  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise missing(error) from error
    # PyYAML built without libyaml is ten times slower, otherwise the same.
    base = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    # A table of its own: the base class shares one with every other loader.
    loader: Any = type("Loader", (base,), {"yaml_implicit_resolvers": {}})
    for tag, (pattern, first) in _SCALARS.items():
        loader.add_implicit_resolver(
            f"tag:yaml.org,2002:{tag}", re.compile(f"^(?:{pattern})$"), first
        )
    return loader


def parsed(text: str, what: str) -> object:
    """Return what YAML spells; parts that it names twice are shared.

    Raises:
        InvalidOperation: it is not YAML, too deep, or too large; `what` names it.
        MissingExtra: PyYAML is not installed.
    """
    loader = _loader()
    import yaml  # noqa: PLC0415 - an extra

    try:
        deep = _is_too_deep(yaml.parse(text, loader))
        value: object = None if deep else yaml.load(text, loader)  # noqa: S506 - a SafeLoader with fewer types
    except (yaml.YAMLError, ValueError, TypeError, RecursionError) as error:
        why = " ".join(str(error).split())[:200]
        raise InvalidOperation(f"{what} is neither JSON nor YAML: {why}") from error
    if deep:
        raise InvalidOperation(
            f"{what} is nested deeper than {MAX_DEPTH} levels, or has over {MAX_EVENTS:,} parts"
        )
    return value


def _is_too_deep(events: Iterable[object]) -> bool:
    """Return whether building it is out of the question: libyaml recurses until C's stack ends.

    Events are read one by one, so this takes as long as reading, and no memory.
    """
    from yaml import CollectionEndEvent, CollectionStartEvent  # noqa: PLC0415 - an extra

    depth = 0
    for count, event in enumerate(events):
        depth += isinstance(event, CollectionStartEvent)
        depth -= isinstance(event, CollectionEndEvent)
        if depth > MAX_DEPTH or count > MAX_EVENTS:
            return True
    return False
