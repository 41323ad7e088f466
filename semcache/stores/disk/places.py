"""Names of the rows of a disk store: text whose parts no tenant can spell across."""

import struct


def row(kind: str, *parts: str) -> str:
    """Return the name of a row: its kind and its parts, each escaped, between slashes."""
    return "/".join((kind, *map(escape, parts)))


def prefix(kind: str, *parts: str) -> str:
    """Return what the names of all rows below these parts begin with."""
    return row(kind, *parts) + "/"


def last_part(name: str) -> str:
    """Return the last part of a name, as it was given to `row`."""
    return unescape(name.rpartition("/")[2])


def escape(part: str) -> str:
    """Return `part` without a slash; different parts stay different."""
    return part.replace("%", "%25").replace("/", "%2F") or "%"  # an empty part would have no place


def unescape(part: str) -> str:
    """Return what `escape` was given."""
    return "" if part == "%" else part.replace("%2F", "/").replace("%25", "%")


def numbered(number: int) -> str:
    """Return the name of the row of a change; names sort as the numbers do."""
    return f"c/{number:016d}"


def sortable(number: float) -> str:
    """Return 16 hex digits that sort as the numbers do, negative ones too."""
    bits: int = struct.unpack(">Q", struct.pack(">d", number))[0]
    return f"{bits ^ (0xFFFFFFFFFFFFFFFF if bits >> 63 else 1 << 63):016x}"
