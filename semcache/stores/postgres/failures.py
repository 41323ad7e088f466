"""What the errors of psycopg mean for who uses the store."""

from collections.abc import Callable

import psycopg
from psycopg import errors

from semcache.errors import InvalidInput, StoreCorrupt, StoreError, StoreUnavailable
from semcache.stores.postgres.watchdog import NoAnswer


def failure(error: psycopg.Error | UnicodeEncodeError, *, where: str) -> StoreError | InvalidInput:
    """Return our error for what went wrong in the database that messages name `where`."""
    if isinstance(error, UnicodeEncodeError):
        return InvalidInput(
            f"text for the store holds a lone surrogate at {error.start}; "
            "expected valid Unicode text"
        )
    for kinds, made in _FAILURES:
        if isinstance(error, kinds):
            return made(where, said(error))
    passing = isinstance(error, psycopg.OperationalError)  # it ends, has no room, or is gone
    return StoreUnavailable(f"{where} failed: {said(error)}", passing=passing)


def said(error: Exception) -> str:
    """Return the first line of what the server or the driver says."""
    return str(error).strip().partition("\n")[0]


_Failure = Callable[[str, str], StoreError | InvalidInput]
_FAILURES: list[tuple[tuple[type[psycopg.Error], ...], _Failure]] = [
    (
        (errors.QueryCanceled, errors.LockNotAvailable),
        lambda where, said: StoreUnavailable(f"{where} took too long: {said}", passing=True),
    ),
    (
        (errors.InsufficientPrivilege,),
        lambda where, said: StoreUnavailable(f"{where} denies access: {said}"),
    ),
    (
        (errors.UndefinedTable, errors.UndefinedColumn, errors.UndefinedFunction),
        lambda where, said: StoreCorrupt(
            f"{where} lacks what semcache made there: {said}; restore it from a copy, or name "
            "another schema"
        ),
    ),
    (
        (psycopg.DataError,),
        lambda _, said: InvalidInput(f"text for the store cannot be kept by PostgreSQL: {said}"),
    ),
    (
        (NoAnswer,),
        lambda where, said: StoreUnavailable(f"{where} cannot be reached: {said}", passing=True),
    ),
]
"""Kinds of errors → what they mean; the first that fits counts."""
