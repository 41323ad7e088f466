"""A planner that leaves to a model what only a model can take into account."""

from semcache.errors import PlanningError
from semcache.ports import Planned, Planner, PlanRequest


class Deferring:
    """Plans unless something was said in plain words that the plan must heed.

    That is how the last plan failed, and the constraints of a grounding. A planner that works by
    rules would make the same plan again, or one that breaks a constraint. Satisfies
    `ports.Planner`; safe from several threads if the planner is.
    """

    def __init__(self, planner: Planner) -> None:
        self._planner = planner

    def __repr__(self) -> str:
        return f"Deferring({self._planner!r})"

    def plan(self, request: PlanRequest) -> Planned:
        """Return the plan of the planner. Raises as it does.

        Raises:
            PlanningError: there is something to heed that the planner cannot read.
        """
        if request.failure:
            raise PlanningError(
                "the last plan failed, and a planner by rules would make the same again"
            )
        if request.grounding is not None and request.grounding.grounding.constraints:
            raise PlanningError(
                f"the grounding {request.grounding.grounding.name!r} has constraints, which a "
                "planner by rules cannot read"
            )
        return self._planner.plan(request)
