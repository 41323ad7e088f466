"""Queries: what callers hand in, checked, and prompts as their tenants read them."""

import logging
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, date, datetime, tzinfo
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from semcache.cache.result import Candidate, Hit, Miss
from semcache.cache.tool_sets import Tools, ToolSet, ToolSets
from semcache.cache.view.view import View
from semcache.catalog.catalog import Catalog
from semcache.errors import InvalidInput, InvalidPrompt, ModelError, NormalizationError
from semcache.matching.gates import Side, Verdict, exact_verdicts, words_and_value
from semcache.ports import Clock, Normalizer
from semcache.process.memo import Lru
from semcache.prompts.mentions import Mention, find_mentions
from semcache.prompts.parameter import Parameter, by_name, name_key
from semcache.prompts.recognizers.learned_values import LearnedValues
from semcache.prompts.redaction import Redact, Secrets, hide
from semcache.prompts.schema import PromptSchema
from semcache.prompts.template import TemplateText, given_template, mask
from semcache.prompts.tokens import check_prompt
from semcache.prompts.unseen.supposition import Supposed, Supposition
from semcache.settings import Settings

if TYPE_CHECKING:
    from semcache.cache.entries.entry import Entry
    from semcache.cache.lookup.context import BoundEntry


def check_tenant(tenant: object) -> None:
    """Raise `InvalidInput` unless `tenant` can name one."""
    if not isinstance(tenant, str) or not tenant or not tenant.isprintable() or len(tenant) > 256:
        found = f"{tenant!r:.80}"  # what is refused for its length must not fill a log
        raise InvalidInput(f"tenant is {found}; expected printable text of 1 to 256 characters")


def path_of(path: object) -> Path:
    """Return where `path` leads.

    Raises:
        InvalidInput: it is neither text nor a path.
    """
    if not isinstance(path, str | Path):
        raise InvalidInput(f"{path!r} is no path; expected that of a file")
    return Path(path)


def check_schema(schema: object) -> None:
    """Raise `InvalidInput` unless `schema` is one, or None."""
    if not isinstance(schema, PromptSchema | None):
        raise InvalidInput(f"schema is {schema!r}; expected a PromptSchema, or None")


def check_word(name: str, value: object) -> None:
    """Raise `InvalidInput` unless the argument called `name` is text."""
    if not isinstance(value, str):
        raise InvalidInput(f"{name} is {value!r}; expected text")


def check_tags(tags: object) -> None:
    """Raise `InvalidInput` unless `tags` are texts; of one text, the letters would be tags."""
    if isinstance(tags, str) or not isinstance(tags, Collection):
        raise InvalidInput(f"tags is {tags!r}; expected a list of texts such as ['orders']")
    for tag in tags:
        if not isinstance(tag, str) or not tag.strip():
            raise InvalidInput(f"a tag is {tag!r}; expected text that is not blank")


def hit_of(found: object) -> Hit:
    """Return `found`.

    Raises:
        InvalidInput: it is no hit.
    """
    if not isinstance(found, Hit):
        raise InvalidInput("feedback is about a hit; a miss served nothing that could be judged")
    return found


def check_found(found: object) -> None:
    """Raise `InvalidInput` unless `found` is what a lookup gives."""
    if not isinstance(found, Hit | Miss):
        raise InvalidInput(f"planning is for what `lookup` gave; found {type(found).__name__}")


def check_switch(name: str, value: object) -> None:
    """Raise `InvalidInput` unless `value` is True or False: "no" would count as a yes."""
    if not isinstance(value, bool | np.bool_):
        raise InvalidInput(f"{name} is {value!r}; expected True or False")


class PromptRequest(NamedTuple):  # as `Query`
    """What a caller hands in with a prompt, checked."""

    text: str
    tenant: str
    given: Sequence[Parameter]
    """Values that the caller holds already."""
    schema: PromptSchema | None
    """What a normalizer said; None if none was asked."""
    grounding: str
    tools: ToolSet
    """What the plan may call."""


class ServedBefore:
    """What the words of a prompt were served, as long as the view of the tenant stays as it is."""

    __slots__ = ("found",)

    def __init__(self) -> None:
        self.found: tuple[BoundEntry, Candidate] | None = None
        """None: nothing yet, or it depends on more than the words and the view."""


class Query(NamedTuple):  # made for every lookup: a third of the time of a frozen dataclass
    """One prompt on its way through the tiers."""

    tenant: str
    text: str
    given: Mapping[str, Parameter]
    """Spelling-free name → what the caller gave."""
    mentions: tuple[Mention, ...]
    """In the order of the text; one for each slot of the template."""
    template: TemplateText
    tools: ToolSet
    """What its plan may call."""
    grounding: str
    given_template: TemplateText
    """The template text without the given values; `template` where none are given."""
    schema: PromptSchema | None = None
    now: float = 0.0
    """Epoch seconds at which it is asked."""
    zone: tzinfo = UTC
    """Where its days begin and end."""
    secrets: Secrets | None = None
    """What of it must not be written down; None: nobody said."""
    shown: str = ""
    """The prompt as it may be written down."""
    supposed: tuple[Supposed, ...] = ()
    """Those of its mentions that were supposed."""
    known: TemplateText | None = None
    """Its template text without the mentions that were concluded; None if none were."""
    before: ServedBefore | None = None
    """What these words were served before; None if they are not kept."""

    @property
    def catalog(self) -> str:
        """Fingerprint of what its plan may call; empty if nobody said."""
        return self.tools.fingerprint

    def day(self, epoch: float | None = None) -> date:
        """Return the day at `epoch` seconds, or on which it is asked (None), in its zone."""
        return datetime.fromtimestamp(self.now if epoch is None else epoch, self.zone).date()

    @property
    def prints(self) -> tuple[str, str]:
        """Catalog and grounding that it is asked with."""
        return self.tools.fingerprint, self.grounding

    def side(self) -> Side:
        """Return the prompt's side of a pair."""
        return Side(
            self.given_template,
            frozenset(self.given),
            self.tools.fingerprint,
            self.grounding,
            said=self.said(),
        )

    def exact_verdicts(self, entry: "Entry") -> tuple[Verdict, ...]:
        """Return whether an entry with the prompt's template text or schema may serve it."""
        prints = self.tools.fingerprint, self.grounding
        its = entry.catalog, entry.grounding
        return exact_verdicts(frozenset(self.given), prints, entry.side.names, its)

    def said(self) -> frozenset[str]:
        """Return the words of the mentions that nobody gave, and their values, case aside."""
        slots = self.given_template.slots
        own = [slot for slot in slots if not slot.name] if self.given else slots
        return frozenset([each for slot in own for each in words_and_value(slot)])

    def aligned(self, mentions: Sequence[Mention]) -> "Query":
        """Return the same prompt read with other mentions."""
        template = mask(self.text, mentions)
        bare = self.given_template if self.given else template
        return self._replace(
            mentions=tuple(mentions),
            template=template,
            given_template=bare,
            known=self.plain,
        )

    @property
    def plain(self) -> TemplateText:
        """Its template text with no other mentions than those known to be values."""
        return self.template if self.known is None else self.known

    def supposing(self, reading: Supposition) -> "Query":
        """Return the same prompt with what was supposed."""
        return self.aligned(reading.mentions)._replace(supposed=reading.supposed)


_NONE: Mapping[str, Parameter] = MappingProxyType({})


def read_query(
    request: PromptRequest,
    *,
    learned: LearnedValues | None,
    now: float = 0.0,
    zone: tzinfo = UTC,
    redact: Redact | None = None,
    before: ServedBefore | None = None,
) -> Query:
    """Return the prompt with its mentions found and masked, and what `redact` hides among them."""
    text, given, tools = request.text, request.given, request.tools
    mentions = find_mentions(text, given=given, closed=tools.closed, learned=learned)
    shown, secrets = text, None
    if redact is not None:
        plain = find_mentions(text, closed=tools.closed)
        shown, mentions, secrets = hide(text, mentions, plain=plain, redact=redact, given=given)
    template = mask(text, mentions)
    return Query(
        tenant=request.tenant,
        text=text,
        given={name_key(parameter.name): parameter for parameter in given} if given else _NONE,
        mentions=mentions,
        template=template,
        tools=tools,
        grounding=request.grounding,
        given_template=given_template(text, given, mentions, learned) if given else template,
        now=now,
        zone=zone,
        secrets=secrets,
        shown=shown,
        before=before,
    )


MOST_CHARS = 1_000
"""Characters of the longest prompt that is kept: longer ones are rarely asked again."""


KEPT = 2048
"""Prompts without given values that are kept as they were read, some 2 KB each."""

_ReadKey: TypeAlias = tuple[str, str, str, str]
"""Tenant, text, grounding, and the fingerprint of the tools."""
log = logging.getLogger(__name__)


class QueryReader:
    """Reads prompts: what is closed, given or learned is found in them. Safe from several threads.

    A prompt without given values that is asked again is not read again.
    """

    def __init__(
        self,
        *,
        clock: Clock,
        settings: Settings,
        catalog: Catalog | None,
        normalizer: Normalizer | None,
        redact: Redact | None,
    ) -> None:
        self.redact = redact
        """What hides what must not be written down; None: nothing must."""
        self._clock = clock
        self._settings = settings
        self._zone = settings.zone
        self._normalizer = normalizer
        self._sets = ToolSets(settings.translations)
        self.catalog = catalog

    @property
    def catalog(self) -> Catalog | None:
        """What plans may call; None if nobody said."""
        return self._own.catalog

    @catalog.setter
    def catalog(self, catalog: Catalog | None) -> None:
        self._own = self._sets.made(catalog)
        # Prompts were read with the closed values of the catalog before.
        self._known: Lru[_ReadKey, tuple[int, Query]] = Lru(KEPT)

    def _tools(self, tools: Tools | ToolSet) -> ToolSet:
        return tools if isinstance(tools, ToolSet) else self._sets.of(tools)

    def tools_with(self, fingerprint: str) -> ToolSet:
        """Return the tools of that fingerprint if some call had them, else those of the cache."""
        own = self._own
        return own if own.fingerprint == fingerprint else self._sets.known(fingerprint) or own

    def request(
        self,
        prompt: str,
        *,
        tenant: str,
        params: Mapping[str, object] | Sequence[Parameter] | None = None,
        schema: PromptSchema | None = None,
        grounding: str = "",
        tools: Tools | ToolSet | None = None,
    ) -> PromptRequest:
        """Return what a caller hands in; `tools` None: those of the cache.

        Raises:
            InvalidPrompt, InvalidParameter, InvalidInput, InvalidOperation: it cannot be used.
        """
        text = check_prompt(prompt, max_chars=self._settings.max_prompt_chars)
        given = () if params is None else by_name(params)
        check_tenant(tenant)
        if schema is not None:
            check_schema(schema)
        if grounding != "":
            check_word("grounding", grounding)
        its = self._own if tools is None else self._tools(tools)
        return PromptRequest(text, tenant, given, schema, grounding, its)

    def read(self, request: PromptRequest, view: View | None) -> Query:
        """Return the prompt as the tiers see it; `view`: what the tenant has learned, if known."""
        schema = request.schema
        plain = not request.given and self.redact is None  # what is hidden is nowhere kept
        # How it is read depends on what the view has learned: it is good for that version alone.
        version = view.version if view is not None and plain else None
        key = request.tenant, request.text, request.grounding, request.tools.fingerprint
        known = None if version is None else self._known.get(key)
        if known is not None and known[0] == version and known[1].tools is request.tools:
            return known[1]._replace(now=self._clock.now(), schema=schema)
        keeps = version is not None and len(request.text) <= MOST_CHARS
        query = read_query(
            request,
            learned=None if view is None else view.learned,
            now=self._clock.now(),
            zone=self._zone,
            redact=self.redact,
            before=ServedBefore() if keeps else None,
        )
        if version is not None and keeps:
            self._known.put(key, (version, query))
        return query._replace(schema=schema) if schema is not None else query

    def forget_texts(self, tenant: str | None) -> None:
        """Forget the prompts of the tenant, or of all (None), and what they were served."""
        self._known.forget(lambda key: tenant in {None, key[0]})

    def plain(self, query: Query) -> Sequence[Mention]:
        """Return the mentions that the prompt shows by itself, whatever is given with it."""
        return (
            find_mentions(query.text, closed=query.tools.closed) if query.given else query.mentions
        )

    def schema(self, query: Query) -> PromptSchema | None:
        """Return what the normalizer says of the prompt; None without one, or if it cannot."""
        catalog = query.tools.catalog
        if self._normalizer is None or catalog is None:
            return None
        params = tuple(query.given.values())
        try:
            return self._normalizer.normalize(query.text, catalog=catalog, params=params)
        except (NormalizationError, InvalidPrompt, ModelError) as error:
            # The prompt is fine, or it would not have come here: it has no schema, that is all.
            said = str(error) if query.secrets is None else query.secrets.clean(str(error))
            log.debug("no schema: %s", said)
            return None

    def redacted(self, text: str, *, prompt: str = "", params: object = None) -> str:
        """Return `text` without what is to be hidden in it, in `prompt` and in its `params`."""
        if self.redact is None:
            return text
        given = by_name(params) if isinstance(params, Mapping) else ()
        _, _, secrets = hide(prompt, (), plain=(), redact=self.redact, given=given)
        return secrets.clean(text)
