"""The sales database of the demo, filled once for all tests of the room."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest

from semcache.demo import sales


@pytest.fixture(scope="session")
def database() -> Iterator[sqlite3.Connection]:
    with closing(sales.memory()) as connection:
        yield connection
