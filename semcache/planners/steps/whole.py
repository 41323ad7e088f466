"""Decomposition of nothing: a prompt as one step, where the caller says what its values are."""

from semcache.planners.arguments.operation_index import VERBS
from semcache.planners.steps.intents import Decomposition, Deferred, SubIntent
from semcache.ports import PlanRequest
from semcache.prompts.tokens import tokens

# Words that part steps, put one under a condition, or ask for something to be done to a result.
_MORE = frozenset(
    "then afterwards otherwise if unless sort sorted filter filtered group grouped sum".split()
)


class Whole:
    """Takes a prompt as one step if the caller gives values by name. Satisfies `Decomposer`.

    People talk around what they want ("I'd like a movie night, something by Hitchcock"), and no
    pattern reads that. Which operation takes the values that the caller holds tells it all the
    same; what no operation clearly does is refused by the resolver. Put it after the patterns,
    where there is no model. It defers where a word says that there is more than one step.
    """

    name = "whole-1"

    def decompose(self, request: PlanRequest) -> Decomposition | Deferred:
        """Return the prompt as one step, or that the caller gives no values."""
        if request.grounding is not None:
            return Deferred("whole", "the domain has rules for this, which words do not tell")
        if not request.params:
            return Deferred("whole", "the caller gives no values by name, so words alone decide")
        said = tokens(request.prompt)
        if more := _MORE.intersection(said):
            return Deferred("whole", f"{min(more)!r} may begin a further step")
        verb = next((word for word in said if word in VERBS), "")
        step = SubIntent(
            id="step1",
            goal=request.prompt,
            kind="api_call",
            verb=verb,
            action=VERBS.get(verb, "other"),
            params=request.params,
            confidence=0.7,
            why="the caller gives the values",
        )
        return Decomposition(request.prompt, (step,), 0.7, "whole")
