"""Goals: the intents that a plan serves are kept beside it, followed, and learned from."""

from semcache.answering.job import Chosen, Job
from semcache.answering.stages import Stages
from semcache.planners.progress import IntentLog, fresh
from semcache.planners.steps.intent_graph import IntentGraph
from semcache.planners.steps.intents import serves


class Goals:
    """The intents of runs and plans; without a log none are kept. Safe from several threads."""

    def __init__(self, log: IntentLog | None, stages: Stages) -> None:
        self._log = log
        self._stages = stages

    def of_run(self, run: str, tenant: str) -> IntentGraph | None:
        """Return the intents of a run; None if there are none, or they cannot be read now."""
        with self._stages.cache.guarded(tenant):
            return self.kept(run, tenant)
        return None

    def kept(self, run: str, tenant: str) -> IntentGraph | None:
        """Return the intents of a run; None if there are none.

        Raises:
            StoreUnavailable: they cannot be read.
        """
        return None if self._log is None else self._log.get(tenant, run)

    def of_plan(self, job: Job, chosen: Chosen) -> IntentGraph | None:
        """Return the intents of a plan, as they were kept when it was made; None if it has none."""
        if chosen.graph is not None or self._log is None or not chosen.entry:
            return chosen.graph
        if not serves(chosen.plan):
            return None
        kept = self.of_run(chosen.entry, job.tenant)
        return None if kept is None else fresh(kept, chosen.plan, job.prompt)

    def keep(self, job: Job, chosen: Chosen, graph: IntentGraph | None) -> None:
        """Keep the intents of a run, of a new plan also for its later runs; and learn from them."""
        if graph is None or self._log is None:
            return
        with self._stages.cache.guarded(job.tenant):
            if chosen.planned:
                self._log.keep(job.tenant, job.run, graph)
                if chosen.entry:
                    self._log.keep(job.tenant, chosen.entry, graph)
            if chosen.planned or graph.goal.status == "failed":
                self._log.learn(job.tenant, graph, self._stages.catalog)
