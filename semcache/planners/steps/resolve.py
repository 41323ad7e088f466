"""Resolving: the operation that does a step, by rules, by words, or as the decomposition says.

A score is what speaks for an operation: its verb, its noun, its summary and how surely it takes the
values that were said, each in [0, 1]. "list issues" is `list_issues` and not `list_issue_types`,
because every word of a name that was not said counts against it. Where two operations score alike
the answer is the question which one; where none scores enough, there is none.
"""

from collections.abc import Callable, Sequence

from semcache.canonical import as_object
from semcache.catalog.catalog import Catalog
from semcache.catalog.operation import Operation
from semcache.errors import NormalizationError, PlanningError
from semcache.planners.arguments.fitting import Fit, Unfit, fitted
from semcache.planners.arguments.operation_index import (
    Indexes,
    Known,
    OperationIndex,
    content,
    known_as,
)
from semcache.planners.arguments.placing import is_guess
from semcache.planners.arguments.synonyms import GENERAL, Synonyms
from semcache.planners.arguments.word_evidence import NAMED, WORDS, Said, scored
from semcache.planners.rules.catalog_planner import CatalogPlanner
from semcache.planners.rules.normalizer import RuleNormalizer
from semcache.planners.steps.choosing import (
    Candidate,
    accounted,
    checked,
    chosen,
    missing,
    none,
    resolution,
)
from semcache.planners.steps.intents import SubIntent
from semcache.planners.steps.resolution import (
    Asked,
    NoTool,
    Referral,
    Resolution,
    Resolved,
    Resolver,
)
from semcache.ports import Normalizer, Planner, PlanRequest

ENOUGH = 0.6
"""Scores below are no resolution."""
AMBIGUOUS = 0.1
"""Two scores nearer than this are a question, not an answer."""
CANDIDATES = 40
"""Operations that are looked at for one step, of however many."""
FITTED = 12
"""Of these, the ones whose inputs are tried."""


class WordResolver:
    """Resolves by the words of names, summaries and inputs. Satisfies `Resolver`."""

    def __init__(
        self,
        *,
        enough: float = ENOUGH,
        ambiguous: float = AMBIGUOUS,
        synonyms: Synonyms = GENERAL,
        indexes: Indexes | None = None,
        among: Callable[[Operation], bool] | None = None,
    ) -> None:
        """Keep what is asked for.

        Args:
            enough: Score in [0, 1] from which an operation is taken.
            ambiguous: Difference of scores up to which two operations are one too many.
            synonyms: Names of inputs that mean the same.
            indexes: Shared by resolvers of one planner; None: own ones.
            among: Which operations to look at, such as those of one MCP server; None: all.
        """
        self._enough = enough
        self._ambiguous = ambiguous
        self._synonyms = synonyms
        self._indexes = indexes or Indexes()
        self._among = among

    def resolve(self, intent: SubIntent, asked: Asked) -> Resolved:
        """Return the best operation by its words, or which ones it could be; see `Resolver`."""
        index = self._indexes.of(asked.catalog)
        said = Said.of(intent, asked.catalog, asked.params)
        near = [
            one
            for one in index.near([*said.words, *_named(intent)], CANDIDATES)
            if self._among is None or self._among(one.operation)
        ]
        found, unfit = self.candidates(intent, said, near, asked, index)
        return chosen(
            intent, found, unfit, source="catalog", enough=self._enough, ambiguous=self._ambiguous
        )

    def candidates(
        self,
        intent: SubIntent,
        said: Said,
        near: Sequence[Known],
        asked: Asked,
        index: OperationIndex,
    ) -> tuple[list[Candidate], list[tuple[float, Unfit]]]:
        """Return the operations that fit a step, and those that nearly do, best first."""
        weights = NAMED if any(not is_guess(one.name) for one in asked.params) else WORDS
        entries = [
            entry for one in near if (entry := scored(said, one, index, weights)) is not None
        ]
        entries.sort(key=lambda entry: (-entry.score, entry.known.operation.name))
        found, unfit = [], []
        for entry in entries[:FITTED]:
            made = checked(fitted(intent, entry.known, asked, synonyms=self._synonyms), asked)
            if isinstance(made, Fit):
                made = accounted(made, intent, said, asked)
            if isinstance(made, Unfit):
                unfit.append((entry.score + weights.values / 2, made))
            else:
                why = f"{entry.why}, values {made.quality:.2f}"
                found.append(Candidate(made, entry.score + weights.values * made.quality, why))
        found.sort(key=lambda one: (-one.score, one.fit.known.operation.name))
        return found, sorted(unfit, key=lambda pair: -pair[0])


def _named(intent: SubIntent) -> list[str]:
    return [word for param in intent.params for word in content(param.name)]


class SuggestedResolver:
    """Resolves to the operation that the decomposition names, if it exists and takes the values.

    A name may lack the part before its last dot where only one operation ends so. Satisfies
    `Resolver`.
    """

    def __init__(self, *, synonyms: Synonyms = GENERAL) -> None:
        """Keep the names of inputs that mean the same."""
        self._synonyms = synonyms

    def resolve(self, intent: SubIntent, asked: Asked) -> Resolved:
        """Return the suggested operation, what it lacks, or that there is none; see `Resolver`."""
        name = intent.suggested or ""
        names = _spelled(name, asked.catalog) if name else ()
        if len(names) > 1:
            told = ", ".join(map(repr, names))
            question = f"Which of {told} is meant by {name!r}?"
            return Referral(intent=intent.id, kind="which", question=question, options=names)
        if not names:
            why = asked.catalog.unknown(name) if name else "nothing is suggested"
            return none(intent, f"{why}; for {intent.goal!r}")
        known = known_as(asked.catalog.get(names[0]))
        made = checked(fitted(intent, known, asked, synonyms=self._synonyms), asked)
        if isinstance(made, Fit):
            why = f"suggested by the decomposition as {name!r}"
            return resolution(intent, made, score=0.95, source="suggested", why=why)
        if made.missing or made.options:
            return missing(intent, made)
        return none(intent, f"{names[0]!r} cannot do {intent.goal!r}: {made.why}")


def _spelled(name: str, catalog: Catalog) -> tuple[str, ...]:
    """Return the operations that a suggested name can mean."""
    if name in catalog:
        return (name,)
    folded = [one for one in catalog.names if one.casefold() == name.casefold()]
    ending = [one for one in catalog.names if one.rpartition(".")[2] == name.rpartition(".")[2]]
    return tuple(folded or ending)


class RulesResolver:
    """Resolves a step that the catalog's own words account for in full. Satisfies `Resolver`.

    The step is read as a prompt of its own by rules and planned as one call: that knows filters,
    ranges, orders and limits, which no mapping of names does.
    """

    def __init__(
        self,
        normalizer: Normalizer | None = None,
        planner: Planner | None = None,
        *,
        most: int = 300,
    ) -> None:
        """Keep what is asked for.

        Args:
            normalizer: Reads the step; None: rules over the catalog.
            planner: Plans it as one call; None: the catalog planner.
            most: Operations of a catalog that rules read, since each is a frame of its own.
        """
        self._normalizer = normalizer or RuleNormalizer()
        self._planner = planner or CatalogPlanner()
        self._most = most

    def resolve(self, intent: SubIntent, asked: Asked) -> Resolved:
        """Return the one call that the step is, or why rules cannot tell; see `Resolver`."""
        if intent.depends_on or len(asked.catalog) > self._most:
            return none(intent, f"rules do not read {intent.goal!r}: it needs more than its words")
        # A name that only says of what kind a value is would be a field that there is not.
        named = tuple(one for one in intent.params if not is_guess(one.name))
        try:
            schema = self._normalizer.normalize(intent.goal, catalog=asked.catalog, params=named)
            made = self._planner.plan(PlanRequest(intent.goal, schema, asked.catalog, named))
        except (NormalizationError, PlanningError) as why:
            return none(intent, str(why))
        body = made.plan.to_dict()
        call = next(node for node in body.values() if isinstance(node, dict) and "input" in node)
        given = call["input"]
        return Resolution(
            intent=intent.id,
            operation=str(call["operation"]),
            input=as_object(given),
            params=made.params,
            score=0.95,
            source="rules",
            why=f"every word is accounted for: {schema.key}",
        )


class Composite:
    """Asks resolvers in order and takes the first resolution. Satisfies `Resolver`.

    Where the decomposition says that no operation does a step, none is looked for. If nobody
    resolves it, the answer is the most useful question: what is missing, then which one, then that
    there is none.
    """

    def __init__(self, resolvers: Sequence[Resolver]) -> None:
        """Keep the resolvers, asked in this order."""
        self._resolvers = tuple(resolvers)

    def resolve(self, intent: SubIntent, asked: Asked) -> Resolved:
        """Return the first resolution, else the most useful question; see `Resolver`."""
        if intent.no_tool:
            return NoTool(intent.id, intent.why or "the decomposition found no operation for it")
        questions: list[Referral] = []
        for resolver in self._resolvers:
            found = resolver.resolve(intent, asked)
            if not isinstance(found, Referral):
                return found
            questions.append(found)
        for kind in ("missing", "which"):
            for question in questions:
                if question.kind == kind:
                    return question
        return questions[-1] if questions else none(intent, "there is no resolver")
