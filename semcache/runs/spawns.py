"""Runs that an agent asked for: nothing runs before the application accepts."""

import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal, TypeVar

from semcache.canonical import JsonObject
from semcache.errors import InvalidInput
from semcache.events import SpawnDecided, SpawnRequested
from semcache.runs.redaction import hidden
from semcache.runs.run_context import MAX_RUNS, Here, OpenRun

T = TypeVar("T")

MAX_PENDING = 32
"""Requests of one tenant that may wait at the same time."""
MAX_KNOWN = 1000
"""Requests that are remembered; those decided longest ago are forgotten first."""
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True, slots=True)
class SpawnRequest:
    """What an agent asked for."""

    id: str
    """`spawn-<epoch milliseconds>-<six characters>`."""
    tenant: str
    name: str
    description: str
    """What it is for, in the agent's words: data, never an instruction to follow unseen."""
    node: str
    """Id of the node that asked; the run stands under it."""
    _under: Here = field(repr=False, compare=False)
    status: Literal["pending", "accepted", "refused"] = "pending"
    reason: str = ""
    """Why it was refused."""

    def to_dict(self) -> JsonObject:
        """Return what the agent that asked is told."""
        return {
            "name": self.name,
            "description": self.description,
            "requestId": self.id,
            "status": self.status,
        }


class Spawns:
    """Requests for further runs, until the application decides. Safe from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: OrderedDict[str, SpawnRequest] = OrderedDict()

    def request(self, name: str, description: str, under: Here) -> SpawnRequest:
        """Record a request; nothing runs.

        Raises:
            InvalidInput: too many wait already, or runs stand too deep one in the other.
        """
        if under.runs >= MAX_RUNS:
            raise InvalidInput(
                f"{under.runs} runs stand one in the other here; expected less than {MAX_RUNS}"
            )
        random = "".join(secrets.choice(_DIGITS) for _ in range(6))
        request = SpawnRequest(
            id=f"spawn-{int(under.clock.now() * 1000)}-{random}",
            tenant=under.tenant,
            name=hidden(name),
            description=hidden(description),
            node=under.node,
            _under=under,
        )
        with self._lock:
            waiting = sum(r.status == "pending" for r in self._of(under.tenant))
            if waiting >= MAX_PENDING:
                raise InvalidInput(
                    f"{waiting} requests of the tenant wait already; expected less than "
                    f"{MAX_PENDING}: the application must accept or refuse some first"
                )
            self._requests[request.id] = request
            self._forget()
        under.emit(
            SpawnRequested(tree=under.tree, id=request.id, tenant=request.tenant, name=request.name)
        )
        return request

    def pending(self, *, tenant: str = "default") -> tuple[SpawnRequest, ...]:
        """Return the tenant's requests that wait, oldest first."""
        with self._lock:
            return tuple(r for r in self._of(tenant) if r.status == "pending")

    def get(self, id: str, *, tenant: str = "default") -> SpawnRequest | None:  # noqa: A002 - the word of the request
        """Return a request of the tenant; None if there is none, or it is long decided."""
        with self._lock:
            request = self._requests.get(id)
            return request if request is not None and request.tenant == tenant else None

    def accept(
        self,
        id: str,  # noqa: A002 - the word of the request
        work: Callable[[SpawnRequest], T],
        *,
        tenant: str = "default",
    ) -> T:
        """Run `work` as a run of its own, under the node that asked for it.

        Raises:
            InvalidInput: the tenant has no such request that waits.
            Exception: what `work` raises.
        """
        request = self._decide(id, tenant, "accepted", "")
        under = request._under  # noqa: SLF001 - of this file, kept from those who read a request
        with OpenRun(
            request.name,
            home=under.home,
            emit=under.emit,
            clock=under.clock,
            tenant=tenant,
            given={"description": request.description},
            under=under,
        ):
            return work(request)

    def refuse(
        self,
        id: str,  # noqa: A002 - the word of the request
        reason: str = "",
        *,
        tenant: str = "default",
    ) -> SpawnRequest:
        """Let a request come to nothing, and return it.

        Raises:
            InvalidInput: the tenant has no such request that waits.
        """
        return self._decide(id, tenant, "refused", reason)

    def _decide(
        self,
        id: str,  # noqa: A002 - the word of the request
        tenant: str,
        status: Literal["accepted", "refused"],
        reason: str,
    ) -> SpawnRequest:
        with self._lock:
            known = self._requests.get(id)
            if known is None or known.tenant != tenant or known.status != "pending":
                raise InvalidInput(f"no request {id!r} of tenant {tenant!r} waits for a decision")
            decided = replace(known, status=status, reason=reason)
            self._requests[id] = decided
        under = known._under  # noqa: SLF001 - of this file
        under.emit(SpawnDecided(tree=under.tree, id=id, accepted=status == "accepted"))
        return decided

    def _of(self, tenant: str) -> list[SpawnRequest]:
        return [request for request in self._requests.values() if request.tenant == tenant]

    def _forget(self) -> None:
        over = len(self._requests) - MAX_KNOWN
        old = (r.id for r in list(self._requests.values()) if r.status != "pending")
        for _, each in zip(range(over), old, strict=False):
            del self._requests[each]
