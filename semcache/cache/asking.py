"""Asking: what it takes to read a prompt as its tenant does, and to say what its schema is."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace

from semcache.cache.asked import Asked, ask
from semcache.cache.checks import check_tenant
from semcache.cache.recent import Recent
from semcache.cache.tool_sets import Tools, ToolSet, ToolSets
from semcache.cache.view import View
from semcache.catalog.catalog import Catalog
from semcache.errors import InvalidPrompt, ModelError, NormalizationError
from semcache.ports import Clock, Normalizer
from semcache.prompts.mentions import Mention, find_mentions
from semcache.prompts.parameter import Parameter, by_name
from semcache.prompts.redaction import Redact, hide
from semcache.prompts.schema.schema import PromptSchema
from semcache.prompts.text import check_prompt
from semcache.settings import Settings

log = logging.getLogger(__name__)


class Asking:
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
        self._recent = Recent()  # prompts were read with the closed values of the catalog before

    def tools(self, tools: Tools | None) -> ToolSet:
        """Return what a call's plan may call: its own `tools`, else those of the cache (None).

        Raises:
            InvalidInput, InvalidOperation: they cannot be used.
        """
        return self._own if tools is None else self._sets.of(tools)

    def tools_with(self, fingerprint: str) -> ToolSet:
        """Return the tools of that fingerprint if some call had them, else those of the cache."""
        own = self._own
        return own if own.fingerprint == fingerprint else self._sets.known(fingerprint) or own

    def checked(
        self,
        prompt: str,
        tenant: str,
        params: Mapping[str, object] | Sequence[Parameter] | None,
    ) -> tuple[str, Sequence[Parameter]]:
        """Return the text of a prompt, and the values that come with it.

        Raises:
            InvalidPrompt, InvalidParameter, InvalidInput: prompt, values or tenant cannot be used.
        """
        text = check_prompt(prompt, max_chars=self._settings.max_prompt_chars)
        given = by_name(params)
        check_tenant(tenant)
        return text, given

    def read(
        self,
        text: str,
        tenant: str,
        given: Sequence[Parameter],
        *,
        grounding: str,
        view: View | None,
        schema: PromptSchema | None,
        tools: ToolSet,
    ) -> Asked:
        """Return the prompt as the tiers see it; `view`: what the tenant has learned, if known."""
        plain = not given and self.redact is None  # what is hidden is nowhere kept
        version = view.version if view is not None and plain else None
        known = (
            None if version is None else self._recent.get(tenant, text, grounding, version, tools)
        )
        if known is not None:
            return replace(known, now=self._clock.now(), schema=schema)
        asked = ask(
            text,
            tenant=tenant,
            given=given,
            tools=tools,
            learned=None if view is None else view.learned,
            grounding=grounding,
            now=self._clock.now(),
            zone=self._settings.zone,
            redact=self.redact,
        )
        if version is not None:
            self._recent.put(asked, version)
        return replace(asked, schema=schema) if schema is not None else asked

    def plain(self, asked: Asked) -> Sequence[Mention]:
        """Return the mentions that the prompt shows by itself, whatever is given with it."""
        return (
            find_mentions(asked.text, closed=asked.tools.closed) if asked.given else asked.mentions
        )

    def schema(self, asked: Asked) -> PromptSchema | None:
        """Return what the normalizer says of the prompt; None without one, or if it cannot."""
        catalog = asked.tools.catalog
        if self._normalizer is None or catalog is None:
            return None
        params = tuple(asked.given.values())
        try:
            return self._normalizer.normalize(asked.text, catalog=catalog, params=params)
        except (NormalizationError, InvalidPrompt, ModelError) as error:
            # The prompt is fine, or it would not have come here: it has no schema, that is all.
            said = str(error) if asked.secrets is None else asked.secrets.clean(str(error))
            log.debug("no schema: %s", said)
            return None

    def redacted(self, text: str, *, prompt: str = "", params: object = None) -> str:
        """Return `text` without what is to be hidden in it, in `prompt` and in its `params`."""
        if self.redact is None:
            return text
        given = by_name(params) if isinstance(params, Mapping) else ()
        _, _, secrets = hide(prompt, (), plain=(), redact=self.redact, given=given)
        return secrets.clean(text)
