"""Adaptation: the default embedder trained on one's own prompts, taken only if it serves better.

The first three quarters of a log are trained on. On the rest, the latest prompts, the trained
embedder must find the right plan first more often than the plain one does, and a replay through the
cache must serve no less rightly and no more wrongly. Else it should not be taken.
"""

import contextlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from semcache.cache.entries.entry import Entry
from semcache.canonical import JsonObject, plain
from semcache.errors import InvalidInput, InvalidPrompt, MissingExtra, StoreUnavailable
from semcache.explore.evaluate import evaluate
from semcache.explore.streams import Row
from semcache.files import write_aside
from semcache.matching.words.content import embedded_text
from semcache.models.difference import MANIFEST, PREFIX, Cryption, LowRankDifference
from semcache.models.minilm import MiniLMEmbedder
from semcache.models.weights import BaseWeights, shipped_weights
from semcache.ports import Embedder, Vectors
from semcache.prompts.mentions import find_mentions
from semcache.prompts.redaction import is_stand_in
from semcache.prompts.template import mask
from semcache.prompts.tokens import check_prompt

if TYPE_CHECKING:
    from semcache.models.training import PromptSet, Told

STEPS, RATE, RANK = 300, 1e-3, 8
LATEST = 5_000
"""Prompts of a log that are trained on and judged by, unless somebody says otherwise."""
HELD_BACK = 4
"""One in so many prompts is held back to judge by."""
FEWEST = 20
"""Prompts held back whose plan is there already; by fewer, chance would judge."""
STORED, ASKED, RAW = range(3)
"""Forms of a prompt: as the cache stores it, as it looks it up with no value given, as it is."""


class Replayed(NamedTuple):
    """What a replay served to the prompts that were held back."""

    right: int
    wrong: int


class Replay(Protocol):
    """Replays prompts through a cache; `replay` does."""

    def __call__(self, rows: Sequence[Row], embedder: Embedder, *, since: int) -> Replayed:
        """Return what a cold cache served to `rows` from number `since` on."""


@dataclass(frozen=True, slots=True)
class Performance:
    """How an embedder did on the prompts that were held back."""

    first: int
    """Prompts whose nearest earlier prompt has their plan."""
    right: int
    """Hits of a replay that were right."""
    wrong: int
    """Hits of a replay that were wrong."""


@dataclass(frozen=True, slots=True)
class Adaptation:
    """A trained difference, and how the embedder does without it and with it."""

    difference: LowRankDifference
    ceiling: int
    """Prompts held back whose plan an earlier prompt has: no embedder finds more first."""
    before: Performance
    after: Performance

    @property
    def refusal(self) -> str:
        """Why it should not be taken; empty if it serves better."""
        before, after = self.before, self.after
        if after.first <= before.first:
            return f"it finds the right plan first {after.first} times, before {before.first} times"
        if after.right < before.right:
            return f"right hits fall from {before.right} to {after.right}"
        if after.wrong > before.wrong:
            return f"wrong hits rise from {before.wrong} to {after.wrong}"
        return ""


def adapt(
    rows: Sequence[Row],
    *,
    replay: Replay,
    weights: BaseWeights | None = None,
    steps: int = STEPS,
    seed: int = 0,
    told: "Told | None" = None,
) -> Adaptation:
    """Return the difference that these prompts, oldest first, teach the default embedder.

    `weights`: None for those of the default embedder. `told`: is told how many steps are done.
    Takes minutes on two cores.

    Raises:
        InvalidInput: there are too few prompts to train on, or to judge by.
        MissingExtra: `semcache-plans[sentence-transformers]` is not installed.
        WeightsUnavailable: the weights of the default embedder cannot be read.
    """
    try:
        from semcache.models import training  # noqa: PLC0415 - an extra, seconds long
    except ImportError as error:
        raise MissingExtra(
            f"training needs {error.name or 'torch'!r}; "
            "install `semcache-plans[sentence-transformers]`"
        ) from error
    since = len(rows) - len(rows) // HELD_BACK
    known, every = prompt_sets(rows[:since]), prompt_sets(rows)
    tenants = [prompts for prompts in known.values() if prompts.usable]
    if not tenants:
        raise InvalidInput(
            f"none of {len(known)} tenants has {training.USABLE_PLANS} plans with two prompts or "
            f"more among {since} prompts; expected more prompts, as they were asked"
        )
    base = BaseWeights.of(shipped_weights()) if weights is None else weights
    counts = {name: len(one.texts) for name, one in known.items()}
    plain_embedder = MiniLMEmbedder(base.folder)
    first, ceiling = first_places(plain_embedder.embed, every, since=counts)
    if ceiling < FEWEST:
        raise InvalidInput(
            f"of the {len(rows) - since} latest prompts, {ceiling} have a plan that an earlier one "
            f"had; expected {FEWEST} or more to judge by: more prompts"
        )
    before = Performance(first, *replay(rows, plain_embedder, since=since))
    encoder = training.Encoder(base)
    encoder.train_difference(RANK, seed=seed)
    training.train(encoder, {"log": tenants}, steps=steps, rate=RATE, seed=seed, told=told)
    bare = LowRankDifference.of(base.label, encoder.factors(), {})
    embedder = MiniLMEmbedder(base.folder, difference=bare)
    first, _ = first_places(embedder.embed, every, since=counts)
    after = Performance(first, *replay(rows, embedder, since=since))
    said: JsonObject = {
        "prompts": since,
        "held_back": len(rows) - since,
        "ceiling": ceiling,
        "before": plain(asdict(before)),
        "after": plain(asdict(after)),
        "steps": steps,
        "seed": seed,
    }
    return Adaptation(LowRankDifference(base.label, bare.content, said), ceiling, before, after)


# Prompts -------------------------------------------------------------------------------------


def prompt_sets(rows: Iterable[Row]) -> "dict[str, PromptSet]":
    """Return the prompts of each tenant; those without a plan, or refused as prompts, are not in.

    Raises:
        ImportError: the extra `sentence-transformers` is not installed.
    """
    from semcache.models.training import PromptSet  # noqa: PLC0415 - an extra

    sets: dict[str, PromptSet] = defaultdict(PromptSet)
    for row in rows:
        if row.shape is not None:
            with contextlib.suppress(InvalidPrompt):
                sets[row.scope].add(row.shape, forms(row))
    return dict(sets)


def forms(row: Row) -> tuple[str, ...]:
    """Return a prompt's texts as the cache may embed them: `STORED`, `ASKED` and `RAW`."""
    text = check_prompt(row.text)
    found = (find_mentions(text, given=row.params), find_mentions(text), ())
    return tuple(embedded_text(mask(text, list(mentions))) for mentions in found)


def rows_of_entries(entries: Iterable[Entry]) -> list[Row]:
    """Return the prompts that entries were planned for as rows, oldest first.

    Left out are entries whose values were redacted.
    """
    return [
        Row(entry.id, entry.tenant, entry.prompt, entry.plan.params, entry.plan.plan)
        for entry in sorted(entries, key=lambda entry: entry.created_s)
        if not any(is_stand_in(parameter.value) for parameter in entry.plan.params)
    ]


# Judging -------------------------------------------------------------------------------------


def first_places(
    embed: Callable[[Sequence[str]], Vectors],
    sets: "Mapping[str, PromptSet]",
    *,
    since: Mapping[str, int] | None = None,
    asked: int = ASKED,
    stored: int = STORED,
) -> tuple[int, int]:
    """Return how often the nearest earlier prompt has the right plan, and how often one has it.

    `since`: tenant → number of its first prompt that counts; None: all count. `asked`, `stored`:
    forms of a prompt and of the earlier ones.
    """
    right = ceiling = 0
    for tenant, prompts in sets.items():
        begin = 0 if since is None else since.get(tenant, 0)
        if begin == len(prompts.texts):
            continue
        earlier = embed([texts[stored] for texts in prompts.texts])
        asking = embed([texts[asked] for texts in prompts.texts[begin:]])
        plan = {i: name for name, same in prompts.plans.items() for i in same}
        seen = {plan[i] for i in range(begin)}
        for i, vector in enumerate(asking, start=begin):
            if plan[i] in seen:
                ceiling += 1
                right += plan[int(np.argmax(earlier[:i] @ vector))] == plan[i]
            seen.add(plan[i])
    return right, ceiling


def replay(
    rows: Sequence[Row],
    embedder: Embedder,
    *,
    since: int,
    threshold: float = 0.95,
    max_wrong: float | None = None,
    given: bool = False,
) -> Replayed:
    """Return what a cold cache served to `rows` from number `since` on; see `evaluate`."""
    report = evaluate(
        rows,
        given=given,
        threshold=threshold,
        max_wrong=max_wrong,
        embedder=embedder,
    )
    outcomes = [looked.outcome for looked in report.lookups[since:]]
    return Replayed(outcomes.count("right"), outcomes.count("wrong"))


# Files ---------------------------------------------------------------------------------------


def save(difference: LowRankDifference, folder: Path, *, encrypt: Cryption | None = None) -> None:
    """Write a difference into `folder`, in place of the one that was there.

    Raises:
        StoreUnavailable: it cannot be written; the one before stays.
    """
    files = difference.files(encrypt=encrypt)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for name, content in files.items():
            write_aside(folder / name, [content])
        for path in folder.glob(f"{PREFIX}*"):
            if path.name not in files:
                path.unlink()
    except OSError as error:
        raise StoreUnavailable(f"{str(folder)!r} cannot be written: {error}") from error


def copy(
    source: Path, target: Path, *, decrypt: Cryption | None = None, encrypt: Cryption | None = None
) -> None:
    """Write the difference in `source`, if there is one, into `target` too.

    Raises:
        WeightsUnavailable: it is damaged, or was written with another key.
        StoreUnavailable: it cannot be written.
    """
    if (source / MANIFEST).is_file():
        save(LowRankDifference.read(source, decrypt=decrypt), target, encrypt=encrypt)


def forget(folder: Path) -> bool:
    """Remove the difference in `folder`; return whether there was one.

    Raises:
        StoreUnavailable: it cannot be removed.
    """
    manifest = folder / MANIFEST
    there = manifest.is_file()
    try:
        manifest.unlink(missing_ok=True)  # first: without it nothing is read
        for path in folder.glob(f"{PREFIX}*"):
            path.unlink()
        with contextlib.suppress(OSError):  # it was never made, or something else is in it
            folder.rmdir()
    except OSError as error:
        raise StoreUnavailable(f"{str(folder)!r} cannot be changed: {error}") from error
    return there
