"""What a run does goes to its tree and to who listens, without what is to be hidden."""

from collections.abc import Iterator
from contextlib import contextmanager

from semcache.cache.plan_cache import PlanCache
from semcache.errors import SemCacheError
from semcache.events import Event, Phase, PhaseFinished
from semcache.ports import Clock
from semcache.runs.recorder import Runs
from semcache.runs.redaction import redacted_event
from semcache.runs.run_context import Here, OpenRun
from semcache.runs.run_context import node as open_node
from semcache.runs.tree import Node
from semcache.semcache.answer import Job


class RunEvents:
    """Opens runs and times their phases. Safe from several threads."""

    def __init__(self, cache: PlanCache, runs: Runs, clock: Clock) -> None:
        self.runs = runs
        """The latest runs of each tenant, as trees."""
        self._cache = cache
        self._clock = clock

    def emit(self, event: Event) -> None:
        """Hand an event to the trees and to the observer."""
        if self._cache.redact is not None:
            event = redacted_event(event, self._cache.redact)
        self.runs(event)
        self._cache.emit(event)

    @contextmanager
    def timed(self, phase: Phase, job: Job) -> Iterator[None]:
        """Tell how long the block takes, as a phase and a node of the run."""
        start, failed = self._clock.monotonic(), ""
        try:
            if phase == "execute":  # its attempts are nodes already
                yield
            else:
                with open_node(phase):
                    yield
        except SemCacheError as error:
            failed = type(error).__name__
            raise
        finally:
            took = self._clock.monotonic() - start
            self.emit(
                PhaseFinished(
                    tenant=job.tenant, run=job.run, phase=phase, seconds=took, error=failed
                )
            )

    def opened(self, job: Job) -> OpenRun:
        """Return the run of a job, to open by `with`."""
        given = None if job.params is None else {"params": job.params}
        return self.open(job.prompt, tenant=job.tenant, id=job.run, given=given)

    def open(
        self,
        name: str,
        *,
        tenant: str,
        id: str = "",  # noqa: A002 - the word of the node
        given: object = None,
    ) -> OpenRun:
        """Return a run to open by `with`, whose tree holds what is run inside."""
        return OpenRun(
            name,
            home=self.runs,
            emit=self.emit,
            clock=self._clock,
            tenant=tenant,
            id=id,
            given=given,
        )

    def standing(self, at: Node, *, tenant: str) -> Here:
        """Return where code would stand that runs in the node `at`."""
        above = sum(node.kind == "run" for node in (at, *at.above()))
        root = next((node for node in reversed(tuple(at.above()))), at)
        return Here(
            tree=root.id,
            run=at.run,
            node=at.id,
            tenant=tenant,
            depth=at.depth,
            runs=above,
            home=self.runs,
            emit=self.emit,
            clock=self._clock,
            writes=[],
        )
