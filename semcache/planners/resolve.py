"""Resolving: the operation that does a step, by rules, by words, or as the decomposition says.

A score is what speaks for an operation: its verb, its noun, its summary and how surely it takes the
values that were said, each in [0, 1]. "list issues" is `list_issues` and not `list_issue_types`,
because every word of a name that was not said counts against it. Where two operations score alike
the answer is the question which one; where none scores enough, there is none.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from semcache.catalog.catalog import Catalog
from semcache.catalog.operation import Operation
from semcache.errors import NormalizationError, PlanningError
from semcache.planners.catalog_planner import CatalogPlanner
from semcache.planners.fitting import Fit, Unfit, breaches, fitted
from semcache.planners.intents import SubIntent
from semcache.planners.operation_index import (
    READING,
    VERBS,
    Indexes,
    Known,
    OperationIndex,
    content,
    known_as,
)
from semcache.planners.placing import is_guess
from semcache.planners.resolution import (
    Asked,
    NoTool,
    Referral,
    Resolution,
    Resolved,
    Resolver,
    Source,
)
from semcache.planners.rules import RuleNormalizer
from semcache.planners.synonyms import GENERAL, Synonyms, words
from semcache.ports import Normalizer, Planner, PlanRequest
from semcache.prompts.parameter import Parameter
from semcache.prompts.words import (
    AGGREGATION,
    COMPARISON,
    DIRECTION,
    NEGATION,
    ORDER,
    PREPOSITIONS,
    REQUESTS,
    singular,
    tokens,
)

ENOUGH = 0.6
"""Scores below are no resolution."""
AMBIGUOUS = 0.1
"""Two scores nearer than this are a question, not an answer."""
CANDIDATES = 40
"""Operations that are looked at for one step, of however many."""
FITTED = 12
"""Of these, the ones whose inputs are tried."""

# Words that make another question of the same values.
_TURNING = (NEGATION | COMPARISON | DIRECTION | AGGREGATION | ORDER) - PREPOSITIONS - {"up"}
_OWN_VERB = 0.7
"""Least evidence of the noun where the verb itself says what is done: "transfer 500 to B-2"."""


@dataclass(frozen=True, slots=True)
class Weights:
    """What each piece of evidence counts; they add up to 1."""

    verb: float
    noun: float
    told: float
    values: float


WORDS = Weights(0.25, 0.45, 0.15, 0.15)
"""For a step whose values were only found in its words."""
NAMED = Weights(0.2, 0.3, 0.15, 0.35)
"""For a caller who gives the values by name: which operation takes them says much."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """An operation that fits a step, and what speaks for it."""

    fit: Fit
    score: float
    why: str


@dataclass(frozen=True, slots=True)
class Said:
    """What a step says, in words as operations are named."""

    verb: str
    action: str
    words: tuple[str, ...]
    """Singular content words of the step, its verb included, without values of open classes."""

    @classmethod
    def of(cls, intent: SubIntent, catalog: Catalog, given: Sequence[Parameter] = ()) -> "Said":
        """Return what `intent` says; words that the catalog has synonyms for count as these too.

        `given` are the values of the caller, whose words are values and nothing else.
        """
        text = intent.goal
        for param in sorted(intent.params, key=lambda one: -len(one.mention or "")):
            # A listed value may be a noun as well: `issue` is a type of item somewhere.
            if param.mention and (is_guess(param.name) or param in given):
                text = text.replace(param.mention, " , ", 1)
        said = list(content(text))
        found = {*said, *(singular(word) for word in tokens(text))}
        for word, meant in catalog.synonyms.items():
            if {singular(one) for one in tokens(word)} <= found:
                said += content(meant)
        verb = intent.verb or next((word for word in said if word in VERBS), "")
        action = intent.action if intent.action != "other" else VERBS.get(verb, "other")
        return cls(verb.lower(), action, tuple(dict.fromkeys(said)))


def verb_evidence(said: Said, known: Known) -> float | None:
    """Return how well verbs agree, in [0, 1]; None if one shows something and the other does it."""
    if said.verb == known.verb or known.verb in said.words:
        return 1.0
    reading = said.action in READING
    if said.action != "other" and reading != known.reads:
        return None
    if said.verb and not known.reads:  # to cancel is not to delete
        return 1.0 if said.action == known.action != "other" else None
    if "other" in {said.action, known.action}:  # verbs of their own, and not the same one
        return 0.2 if said.verb else 0.5
    if said.action == known.action:
        return 1.0
    return 0.5 if reading else None


def noun_evidence(said: Said, known: Known, index: OperationIndex) -> float:
    """Return how much of an operation's noun was said, and of what was said is its noun, in [0, 1].

    Words that few operations have count more than those that all have.
    """
    own = set(known.nouns)
    named = {word for word in said.words if word not in VERBS and word != said.verb}
    if not own or not named:
        return 0.0

    def weight(words: set[str]) -> float:
        return sum(index.rarity(word) for word in words)

    shared = weight(own & named)
    if not shared:
        return 0.0
    # What else was said may be about values and inputs: it counts only if a name could have it.
    others = {word for word in named - own if index.is_noun(word)}
    precision, recall = shared / weight(own), shared / (shared + weight(others))
    return 2 * precision * recall / (precision + recall)


def told_evidence(said: Said, known: Known) -> float:
    """Return which share of what was said the operation tells of in any way, in [0, 1]."""
    words = [word for word in said.words if word != said.verb and word not in VERBS]
    if not words:
        return 1.0
    tells = known.told | known.inputs | {*known.nouns, known.verb}
    return sum(word in tells for word in words) / len(words)


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
        scored = [
            entry for one in near if (entry := _scored(said, one, index, weights)) is not None
        ]
        scored.sort(key=lambda entry: (-entry.score, entry.known.operation.name))
        found, unfit = [], []
        for entry in scored[:FITTED]:
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


@dataclass(frozen=True, slots=True)
class Scored:
    """An operation and what its words alone count."""

    known: Known
    score: float
    why: str


def _scored(said: Said, known: Known, index: OperationIndex, weights: Weights) -> Scored | None:
    verb = verb_evidence(said, known)
    if verb is None:
        return None
    noun, told = noun_evidence(said, known, index), told_evidence(said, known)
    if known.action == "other" and known.verb in said.words:
        noun = max(noun, _OWN_VERB)
    score = weights.verb * verb + weights.noun * noun + weights.told * told
    return Scored(known, score, f"verb {verb:.2f}, noun {noun:.2f}, summary {told:.2f}")


def accounted(fit: Fit, intent: SubIntent, said: Said, asked: Asked) -> Fit | Unfit:
    """Return the fit if the operation accounts for every word of the step; else why not.

    "list stale issues" is not `list_issues`: what it says of the issues would be lost. Nor is "list
    issues" `list_issue_types`, though no other operation should be there. A caller who gives the
    values says with them what matters, so that further words are just talk; but not those that
    turn it round, compare or count: "not in toys" is none of the toys.
    """
    if intent.suggested:
        return fit
    known = fit.known
    filled = [*fit.input, *(wire.property for wire in fit.wires)]
    topics = {word for name in filled for word in words(name)}
    tells = known.told | {*known.nouns, known.verb, said.verb}
    values = {word for param in fit.params for word in content(param.mention or "")}
    known_words = tells | topics | values | fit.accounts | VERBS.keys() | REQUESTS
    # Two words for one thing: who accounts for one of them accounts for the other.
    for word, meant in asked.catalog.synonyms.items():
        both = {*(singular(one) for one in tokens(word))}, {*content(meant)}
        if any(one <= known_words for one in both):
            known_words |= both[0] | both[1]
    odd = [word for word in said.words if word not in known_words]
    if asked.params:
        odd = [word for word in odd if word in _TURNING]
    if odd:
        return Unfit(known, f"it does not account for {', '.join(map(repr, odd))}")
    unsaid = [word for word in known.nouns if word not in said.words]
    asks_for = content(intent.noun)[-1:]
    if unsaid and not asked.params and known.inputs.issuperset(asks_for) and asks_for:
        return Unfit(known, f"it takes a {asks_for[0]!r} and gives {' '.join(known.nouns)!r}")
    if unsaid and len(unsaid) < len(known.nouns) and not asked.params:
        return Unfit(known, f"it is about {', '.join(map(repr, unsaid))} too, which was not said")
    return fit


def _named(intent: SubIntent) -> list[str]:
    return [word for param in intent.params for word in content(param.name)]


def chosen(
    intent: SubIntent,
    found: Sequence[Candidate],
    unfit: Sequence[tuple[float, Unfit]],
    *,
    source: Source,
    enough: float,
    ambiguous: float,
) -> Resolved:
    """Return the best candidate if it is good enough and alone, else the question to ask."""
    best = found[0] if found and found[0].score >= enough else None
    bar = best.score if best is not None else enough
    # One that only lacks a value, and would have been better than all others, is what was meant.
    if unfit and unfit[0][0] > bar and (unfit[0][1].missing or unfit[0][1].options):
        return missing(intent, unfit[0][1])
    if best is None:
        nearest = ", ".join(repr(one.fit.known.operation.name) for one in found[:3])
        reasons = "; ".join(f"{one.known.operation.name!r}: {one.why}" for _, one in unfit[:3])
        told = f" (nearest: {nearest})" if nearest else ""
        told += f" ({reasons})" if reasons else ""
        return none(intent, f"no operation clearly does {intent.goal!r}{told}")
    rivals = [one for one in found[1:] if one.score > best.score - ambiguous]
    if rivals:
        names = tuple(one.fit.known.operation.name for one in (best, *rivals))
        told = ", ".join(map(repr, names))
        return Referral(
            intent=intent.id,
            kind="which",
            question=f"Which of {told} is meant by {intent.goal!r}?",
            options=names,
        )
    return resolution(intent, best.fit, score=best.score, source=source, why=best.why)


def resolution(
    intent: SubIntent, fit: Fit, *, score: float, source: Source, why: str
) -> Resolution:
    """Return a fit as the resolution of a step."""
    return Resolution(
        intent=intent.id,
        operation=fit.known.operation.name,
        input=fit.input,
        params=fit.params,
        wires=fit.wires,
        score=round(min(score, 1.0), 3),
        source=source,
        why=why,
    )


def missing(intent: SubIntent, unfit: Unfit) -> Referral:
    """Return the question for the value that an operation lacks, or for where one goes."""
    name = unfit.known.operation.name
    if unfit.options:
        told = ", ".join(map(repr, unfit.options))
        return Referral(
            intent=intent.id,
            kind="which",
            question=f"Which of {told} of {name!r} is {unfit.value!r}?",
            options=unfit.options,
            operation=name,
        )
    told = " and ".join(map(repr, unfit.missing))
    return Referral(
        intent=intent.id,
        kind="missing",
        question=f"What is {told} for {intent.goal!r}?",
        operation=name,
        missing=unfit.missing,
    )


def none(intent: SubIntent, question: str) -> Referral:
    """Return that nothing does a step."""
    return Referral(intent=intent.id, kind="none", question=question)


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


def checked(made: Fit | Unfit, asked: Asked) -> Fit | Unfit:
    """Return a fit whose values the operation's schema takes; else why it does not."""
    broken = breaches(made, asked) if isinstance(made, Fit) else ()
    return Unfit(made.known, f"its input would be refused: {broken[0]}") if broken else made


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
            input=given if isinstance(given, dict) else {},
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
