"""A PostgreSQL store of the test's own, and one that tells how it hears of changes."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from semcache.stores.postgres.store import PostgresStore
from tests.conftest import Postgres


class ListeningStore(PostgresStore):
    """A store that tells whether it listens."""

    @property
    def hears(self) -> bool:
        """Whether it says the number of the last change without asking the server."""
        return self._listener is not None and self._listener.known() is not None


@pytest.fixture
def store(postgres: Postgres, schema: str) -> Iterator[PostgresStore]:
    with closing(PostgresStore.open(postgres.dsn, schema=schema)) as store:
        yield store
