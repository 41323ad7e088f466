"""A store that did not answer when it was opened."""

import os
from contextlib import closing
from typing import cast

import pytest

from semcache.errors import StoreError, StoreUnavailable, WrongKey
from semcache.ports import PlanStore
from semcache.stores.memory import MemoryStore
from semcache.stores.proxies import LateStore
from semcache.testing import make_record
from tests.waiting import until


class Opening:
    """Opens a store, or raises while there is an error to raise."""

    def __init__(self, error: StoreError) -> None:
        self.error: StoreError | None = error
        self.made: list[PlanStore] = []

    def __call__(self) -> PlanStore:
        if self.error is not None:
            raise self.error
        self.made.append(MemoryStore())
        return self.made[-1]


def late(opening: Opening) -> PlanStore:
    return cast("PlanStore", LateStore(opening, StoreUnavailable("it is locked"), retry_s=0.001))


def test_until_it_is_opened_every_call_says_why_it_is_not() -> None:
    opening = Opening(StoreUnavailable("it is full"))
    with closing(late(opening)) as store:
        assert failure(store) in {"it is locked", "it is full"}
        until(lambda: failure(store) == "it is full")
        opening.error = None
        until(lambda: answers(store))
        store.put(make_record("a"))
        assert opening.made[0].count("acme") == 1
        assert len(opening.made) == 1


def answers(store: PlanStore) -> bool:
    try:
        store.tenants()
    except StoreError:
        return False
    return True


def test_what_time_does_not_mend_is_tried_no_more_and_said_to_all() -> None:
    opening = Opening(WrongKey("it was encrypted with another key"))
    with closing(late(opening)) as store:
        until(lambda: "another key" in failure(store))
        opening.error = None
        with pytest.raises(WrongKey):
            store.get("acme", "a")


def failure(store: PlanStore) -> str:
    with pytest.raises(StoreError) as raised:
        store.tenants()
    return str(raised.value)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing forks here")
def test_a_forked_child_opens_it_by_itself() -> None:
    opening = Opening(StoreUnavailable("it is locked"))
    with closing(late(opening)) as store:
        child = os.fork()
        if not child:
            try:
                opening.error = None
                until(lambda: answers(store), within_s=30)
                os._exit(0)
            finally:
                os._exit(1)
        assert os.waitpid(child, 0)[1] == 0
