"""Choosing: the one operation that does a step, or the question which one, or what it lacks."""

from collections.abc import Sequence
from dataclasses import dataclass

from semcache.errors import InvalidOperation
from semcache.planners.arguments.fitting import Fit, Unfit, breaches
from semcache.planners.arguments.operation_index import VERBS, content
from semcache.planners.arguments.synonyms import words
from semcache.planners.arguments.word_evidence import Said
from semcache.planners.steps.intents import SubIntent
from semcache.planners.steps.resolution import Asked, Referral, Resolution, Resolved, Source
from semcache.prompts.tokens import tokens
from semcache.prompts.words import (
    AGGREGATION,
    COMPARISON,
    DIRECTION,
    NEGATION,
    ORDER,
    PREPOSITIONS,
    REQUESTS,
    singular,
)

# Words that make another question of the same values.
_TURNING = (NEGATION | COMPARISON | DIRECTION | AGGREGATION | ORDER) - PREPOSITIONS - {"up"}


@dataclass(frozen=True, slots=True)
class Candidate:
    """An operation that fits a step, and what speaks for it."""

    fit: Fit
    score: float
    why: str


def checked(made: Fit | Unfit, asked: Asked) -> Fit | Unfit:
    """Return a fit whose values the operation's schema takes; else why it does not."""
    if isinstance(made, Unfit):
        return made
    try:
        broken = breaches(made, asked)
    except InvalidOperation as error:  # one broken schema keeps no other operation from its work
        return Unfit(made.known, str(error))
    return Unfit(made.known, f"its input would be refused: {broken[0]}") if broken else made


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
