"""Resolving: the operation that does a step, or the question which one, or what it lacks.

An operation does a step if it accounts for every word and every value of it, and takes nothing that
was not said (`arguments.step_account`). Of several the nearest is taken: its own verb before
another of the same meaning. Where two are as near the answer is the question which one.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from semcache.canonical import as_object
from semcache.catalog.builtin import ASK_USER
from semcache.catalog.catalog import Catalog
from semcache.errors import InvalidOperation
from semcache.planners.arguments.fit import Fit, Unfit, breaches, fitted
from semcache.planners.arguments.operation_index import (
    IndexedOperation,
    content,
    index_of,
    known_as,
)
from semcache.planners.arguments.step_account import StepAccount, account_of, speaks_of_one
from semcache.planners.arguments.synonyms import words
from semcache.planners.steps.intents import SubIntent
from semcache.planners.steps.resolution import (
    NoTool,
    Referral,
    Resolution,
    ResolutionContext,
    Resolved,
    Resolver,
    Source,
    unclear,
    which,
)
from semcache.planners.transforms import LIMIT
from semcache.prompts.tokens import tokens
from semcache.prompts.words import singular

CANDIDATES = 60
"""Operations that are looked at for one step, those with the likeliest words, of however many."""


@dataclass(frozen=True, slots=True)
class CandidateOperation:
    """An operation that accounts for a step."""

    fit: Fit
    account: StepAccount

    @property
    def name(self) -> str:
        """Its name."""
        return self.fit.known.operation.name


class WordResolver:
    """Resolves by the words of names, summaries and inputs. Satisfies `Resolver`."""

    def resolve(self, intent: SubIntent, asked: ResolutionContext) -> Resolved:
        """Return the one operation that accounts for the step, or the question; see `Resolver`."""
        return self.among(self._near(intent, asked), intent, asked)

    def among(
        self, operations: Iterable[IndexedOperation], intent: SubIntent, asked: ResolutionContext
    ) -> Resolved:
        """Return the same of some operations."""
        found: list[CandidateOperation] = []
        lacking: list[tuple[StepAccount, Unfit]] = []
        asking: list[CandidateOperation] = []
        odd: list[str] = []
        for known in operations:
            made = checked(fitted(intent, known, asked), asked)
            if isinstance(made, Fit):
                made = linked(made, intent, asked)
            account = self._account(intent, known, made, asked)
            if isinstance(made, Fit) and made.verbatim and not account.whole:
                worded = self._account(intent, known, made, asked, verbatim=True)
                if worded.whole:
                    asking.append(CandidateOperation(made, worded))
                    continue
            if isinstance(made, Unfit) and not (made.missing or made.options):
                odd.append(f"{known.operation.name!r}: {made.why}")
            elif not account.whole:
                odd.append(f"{known.operation.name!r}: {_told(account)}")
            elif isinstance(made, Unfit):
                lacking.append((account, made))
            else:
                found.append(CandidateOperation(made, account))
        # What takes the words as they stand would take any: only where nothing else does the step.
        return _chosen(intent, found or ([] if lacking else asking), lacking, odd)

    def _near(self, intent: SubIntent, asked: ResolutionContext) -> Iterator[IndexedOperation]:
        """Yield the operations that have the likeliest words of a step."""
        said = [*content(intent.goal), *(word for one in intent.params for word in words(one.name))]
        known = {*said, *(singular(word) for word in tokens(intent.goal))}
        for word, meant in asked.catalog.synonyms.items():
            if {singular(one) for one in tokens(word)} <= known:
                said += content(meant)
        for one in index_of(asked.catalog).near(said, CANDIDATES):
            builtin = one.operation.name == ASK_USER or one.operation.name.startswith("data.")
            if not builtin:
                yield one

    def _account(
        self,
        intent: SubIntent,
        known: IndexedOperation,
        made: Fit | Unfit,
        asked: ResolutionContext,
        *,
        verbatim: bool = False,
    ) -> StepAccount:
        # "her claims" says whose: the value that the step before was to give, and is asked for.
        lacking = made.missing if isinstance(made, Unfit) and intent.depends_on else ()
        wired = [wire.property for wire in made.wires] if isinstance(made, Fit) else lacking
        return account_of(
            intent.goal, known, made.placed, asked.catalog, wired=wired, verbatim=verbatim
        )


def _told(account: StepAccount) -> str:
    if account.odd:
        return f"it does not account for {', '.join(map(repr, account.odd))}"
    return f"it is about {', '.join(map(repr, account.unsaid))} too, which was not said"


def _chosen(
    intent: SubIntent,
    found: Sequence[CandidateOperation],
    lacking: Sequence[tuple[StepAccount, Unfit]],
    odd: Sequence[str],
) -> Resolved:
    """Return the nearest candidate if it is alone, else the question to ask."""
    if not found:
        if not lacking:
            reasons = f" ({'; '.join(odd[:3])})" if odd else ""
            return unclear(intent, f"no operation clearly does {intent.goal!r}{reasons}")
        nearest = min(lacking, key=lambda pair: (pair[0].rank, pair[1].known.operation.name))
        return missing(intent, nearest[1])
    rank = min(one.account.rank for one in found)
    # What is meant more likely and lacks a value is asked for it, before another is taken.
    nearer = [pair for pair in lacking if pair[0].rank < rank]
    if nearer:
        return missing(intent, min(nearer, key=lambda pair: pair[0].rank)[1])
    best = sorted((one for one in found if one.account.rank == rank), key=lambda one: one.name)
    # A name with a dot is a server's: the caller's own operation of that name goes before it.
    best = [one for one in best if "." not in one.name] or best
    if len(best) > 1:
        return which(intent, tuple(one.name for one in best), intent.goal)
    return resolution(intent, best[0].fit, source="catalog", why="every word is accounted for")


def checked(made: Fit | Unfit, asked: ResolutionContext) -> Fit | Unfit:
    """Return a fit whose values the operation's schema takes; else why it does not."""
    if isinstance(made, Unfit):
        return made
    try:
        broken = breaches(made, asked)
    except InvalidOperation as error:  # one broken schema keeps no other operation from its work
        return Unfit(made.known, str(error))
    return Unfit(made.known, f"its input would be refused: {broken[0]}") if broken else made


def linked(made: Fit, intent: SubIntent, asked: ResolutionContext) -> Fit | Unfit:
    """Return a fit that takes what the steps before it were to give; else what it lacks."""
    wired = {wire.step for wire in made.wires}
    filled = {*made.input, *(wire.property for wire in made.wires)}
    for step in intent.depends_on:
        before = asked.before.get(step)
        if before is None or step in wired or before.operation not in asked.catalog:
            continue
        nouns = set(known_as(asked.catalog.get(before.operation), asked.catalog).nouns)
        properties = as_object(made.known.operation.input_schema.get("properties"))
        open_ = [name for name in properties if name not in filled]
        meant = tuple(name for name in open_ if nouns.intersection(words(name)))
        if meant:
            return Unfit(made.known, f"nothing gives {meant[0]!r}", meant[:1], placed=made.placed)
    each = next((wire for wire in made.wires if wire.each), None)
    if each is not None and speaks_of_one(intent.goal) and not _is_one(asked.before[each.step]):
        return Unfit(made.known, f"{intent.goal!r} speaks of one thing, and there may be many")
    return made


def _is_one(before: Resolution) -> bool:
    """Return whether a step gives one thing at most."""
    return before.operation == LIMIT and any(one.value == 1 for one in before.params)


def resolution(intent: SubIntent, fit: Fit, *, source: Source, why: str) -> Resolution:
    """Return a fit as the resolution of a step."""
    return Resolution(
        intent=intent.id,
        operation=fit.known.operation.name,
        input=fit.input,
        params=fit.params,
        wires=fit.wires,
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


class SuggestedResolver:
    """Resolves to the operation that the decomposition names, if it exists and takes the values.

    A name may lack the part before its last dot where only one operation ends so. Satisfies
    `Resolver`.
    """

    def resolve(self, intent: SubIntent, asked: ResolutionContext) -> Resolved:
        """Return the suggested operation, what it lacks, or that there is none; see `Resolver`."""
        name = intent.suggested or ""
        names = _spelled(name, asked.catalog) if name else ()
        if len(names) > 1:
            return which(intent, names, name)
        if not names:
            why = asked.catalog.unknown(name) if name else "nothing is suggested"
            return unclear(intent, f"{why}; for {intent.goal!r}")
        known = known_as(asked.catalog.get(names[0]), asked.catalog)
        made = checked(fitted(intent, known, asked), asked)
        if isinstance(made, Fit):
            why = f"suggested by the decomposition as {name!r}"
            return resolution(intent, made, source="suggested", why=why)
        if made.missing or made.options:
            return missing(intent, made)
        return unclear(intent, f"{names[0]!r} cannot do {intent.goal!r}: {made.why}")


def _spelled(name: str, catalog: Catalog) -> tuple[str, ...]:
    """Return the operations that a suggested name can mean."""
    if name in catalog:
        return (name,)
    folded = [one for one in catalog.names if one.casefold() == name.casefold()]
    ending = [one for one in catalog.names if one.rpartition(".")[2] == name.rpartition(".")[2]]
    return tuple(folded or ending)


class Composite:
    """Asks resolvers in order and takes the first resolution. Satisfies `Resolver`.

    Where the decomposition says that no operation does a step, none is looked for. If nobody
    resolves it, the answer is the most useful question: what is missing, then which one, then that
    there is none.
    """

    def __init__(self, resolvers: Sequence[Resolver]) -> None:
        """Keep the resolvers, asked in this order."""
        self._resolvers = tuple(resolvers)

    def resolve(self, intent: SubIntent, asked: ResolutionContext) -> Resolved:
        """Return the first resolution, else the most useful question; see `Resolver`."""
        if intent.no_tool:
            return NoTool(intent.id, "the decomposition found no operation for it")
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
        return questions[-1] if questions else unclear(intent, "there is no resolver")
