from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from typing import Any

import httpx
import pytest

from semcache.server.calls import Calls
from semcache.server.rest.app import rest_app
from semcache.server.tokens import Holder, Tokens
from tests.listening import serving

Door = Callable[..., httpx.Client]
"""Tenant or token → a client of the door that holds that token."""

HOLDERS = {
    "acme-token-0123456789": Holder("acme", frozenset({"read", "write", "ask"})),
    "initech-token-0123456789": Holder("initech", frozenset({"read", "write", "ask"})),
    "reader-token-0123456789": Holder("acme", frozenset({"read"})),
    "metrics-token-0123456789": Holder("operator", frozenset({"metrics"})),
}


@pytest.fixture
def serve() -> Iterator[Callable[..., Door]]:
    """Return what serves calls on loopback, and gives clients by the name before `-token`."""
    with ExitStack() as stack:

        def serve(calls: Calls, **options: Any) -> Door:
            address = stack.enter_context(serving(rest_app(calls, Tokens(HOLDERS), **options)))

            @cache
            def client(name: str = "acme") -> httpx.Client:
                token = f"{name}-token-0123456789"
                headers = {"Authorization": f"Bearer {token}"} if name else {}
                made = httpx.Client(base_url=address, headers=headers, timeout=60, trust_env=False)
                return stack.enter_context(made)

            return client

        yield serve


@pytest.fixture
def door(calls: Calls, serve: Callable[..., Door]) -> Door:
    return serve(calls)
