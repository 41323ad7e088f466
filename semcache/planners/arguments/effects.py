"""Whether a prompt asks for a change: an operation that writes must be said by its own verb."""

import re
from collections.abc import Iterator

from semcache.canonical import as_list, as_object
from semcache.catalog.catalog import Catalog
from semcache.catalog.operation import Operation
from semcache.planners.arguments.operation_index import READING, VERBS, known_as
from semcache.prompts.tokens import tokens
from semcache.prompts.words import (
    AUXILIARIES,
    CONJUNCTIONS,
    FUNCTION_WORDS,
    NEGATION,
    POLITENESS,
    QUESTIONS,
    REQUESTS,
    SCOPE,
)

# Verbs of operations that say only that something is done: what is done, their nouns say
# (`create_payment` for "pay", `update_issue` for "close").
_LIGHT = frozenset(
    "create add new make insert post put set update edit modify change patch submit perform "
    "process issue execute run call invoke do send start register record".split()
)
_CLAUSES = re.compile(
    r"[,;:.!?\n]|\b(?:" + "|".join(w for w in CONJUNCTIONS if w.isalpha()) + r")\b"
)
_OPENERS = FUNCTION_WORDS | POLITENESS | SCOPE
_ASKING = QUESTIONS | (AUXILIARIES - {"let", "lets", "need", "needs", "must"})
_REACH = 3  # words behind a negation that it may turn round: "do not ever cancel"
_SHORTEST = 3  # letters of a word that may begin another: "pay", "payment"


def says_write(prompt: str, operation: Operation, catalog: Catalog) -> bool:
    """Return whether `prompt` asks for the change that an operation makes.

    It does if it has the verb of the operation (or a synonym by the catalog or by
    CCOS's table of verbs), not turned round by a negation, and does not only ask whether it could
    be done. For a verb that says little ("update"), a clause may begin with a word of what the
    operation is about ("close", where a status can be `closed`).
    """
    if _only_asks(prompt):
        return False
    known = known_as(operation, catalog)
    said = _unnegated(prompt)
    verbs = {known.verb, *tokens(operation.summary.lower())[:1]}  # as a rule it begins with one
    verbs |= {
        word for word, meant in catalog.synonyms.items() if meant in (known.verb, operation.name)
    }
    actions = {known.action} - READING - {"other", "execute"}
    for word in said:
        if any(word in _forms(verb) for verb in verbs):
            return True
        if actions & {VERBS.get(base) for base in _bases(word)}:
            return True
    # `vacuum_start`: a name that ends in its verb is asked for by a clause that begins with it.
    if {one.verb for one in known.phrasings} & {*_heads(prompt)}:
        return True
    about = {*known.nouns, *known.inputs, *known.told, *_choices(operation)}
    return known.verb in _LIGHT and any(_akin(head, about) for head in _heads(prompt))


def excluded_words(prompt: str) -> Iterator[str]:
    """Yield the word after each negation, grammar aside: `closed` of "that are not closed"."""
    words = tokens(prompt.lower())
    for at, word in enumerate(words):
        if word in NEGATION:
            after = (one for one in words[at + 1 :] if one not in FUNCTION_WORDS)
            yield next(after, "")


def _only_asks(prompt: str) -> bool:
    """Return whether a prompt asks whether, how or why, and requests nothing."""
    words = [word for word in tokens(prompt.lower()) if word not in POLITENESS]
    return len(words) > 1 and words[0] in _ASKING and words[1] != "you"


def _unnegated(prompt: str) -> Iterator[str]:
    since = _REACH + 1
    for word in tokens(prompt.lower()):
        since = 0 if word in NEGATION else since + 1
        if since > _REACH:
            yield word


def _heads(prompt: str) -> Iterator[str]:
    """Yield the first word of each clause that is no grammar and no verb of showing."""
    for clause in _CLAUSES.split(prompt.lower()):
        head = next((word for word in tokens(clause) if word not in _OPENERS), "")
        if head and head not in REQUESTS | NEGATION and VERBS.get(head) not in READING:
            yield head


def _akin(head: str, about: set[str]) -> bool:
    return any(
        head == word
        or (len(head) >= _SHORTEST and word.startswith(head))
        or (len(word) > _SHORTEST and head.startswith(word))
        for word in about
    )


def _choices(operation: Operation) -> Iterator[str]:
    """Yield the words of the values that the inputs of an operation list."""
    for schema in as_object(operation.input_schema.get("properties")).values():
        for one in as_list(as_object(schema).get("enum")):
            yield from tokens(str(one).lower())


def _forms(verb: str) -> set[str]:
    """Return the forms of a verb that can ask for what it names.

    Not its participle: "the cancelled orders" asks for nothing to be cancelled.
    """
    stem = verb.removesuffix("e")
    return {verb, f"{verb}s", f"{verb}es", f"{stem}ing", f"{verb}{verb[-1:]}ing", f"re{verb}"}


def _bases(word: str) -> Iterator[str]:
    """Yield what a word may be a form of: itself, and without the endings of verbs."""
    yield word
    for ending in ("s", "es", "ing"):
        if word.endswith(ending):
            base = word.removesuffix(ending)
            yield from (base, f"{base}e", base[:-1])
