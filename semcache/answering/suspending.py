"""Suspending: a run that a person must answer first is kept, and taken up with the answers."""

from collections.abc import Mapping

from semcache.answering.job import Chosen, Job
from semcache.catalog.builtin import NeedsInput, Question
from semcache.catalog.catalog import Catalog
from semcache.errors import InputNeeded
from semcache.planners.questions import Interview
from semcache.planners.waiting import Suspended, Waiting


class Suspending:
    """Keeps runs that wait for answers. Safe from several threads."""

    def __init__(self, waiting: Waiting | None) -> None:
        self._waiting = waiting

    def keep(
        self,
        job: Job,
        chosen: Chosen,
        interview: Interview,
        questions: tuple[Question, ...],
        *,
        catalog: Catalog,
    ) -> NeedsInput:
        """Keep a run; return what a person must be asked.

        Raises:
            InputNeeded: no runs are kept here.
        """
        held = Suspended(
            prompt=job.prompt,
            run=job.run,
            plan=chosen.plan,
            key=chosen.key,
            planned=chosen.planned,
            allow_writes=job.allow_writes is not False,
            questions=tuple(question.given for question in questions),
            answers=interview.answers,
            made=interview.made(catalog),
        )
        return self._kept().keep(job.tenant, held, questions)

    def take(
        self, tenant: str, token: str, answers: Mapping[str, object], *, catalog: Catalog
    ) -> tuple[Suspended, Interview]:
        """Return the run that waits under a token, which no longer does, and what was said in it.

        Raises:
            InvalidParameter: nobody waits under it, or an answer will not do; it still waits.
            StoreUnavailable: what waits cannot be read.
            InputNeeded: no runs are kept here.
        """
        waiting = self._kept()
        held = waiting.get(tenant, token)
        interview = Interview(answers, answers=held.answers, made=held.made)
        interview.check(held.questions, catalog)
        waiting.take(tenant, token)
        return held, interview

    def _kept(self) -> Waiting:
        if self._waiting is None:
            raise InputNeeded(
                "the plan asks a person, and this SemCache keeps no runs that wait; give it an "
                "`ask`, or a `waiting`"
            )
        return self._waiting
