"""A prompt as the tiers see it: its text, mentions, template text, and what the caller gave."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, tzinfo

from semcache.cache.tool_sets import ToolSet
from semcache.matching.pair import Side, words_and_value
from semcache.prompts.given_template import given_template
from semcache.prompts.mentions import Mention, find_mentions
from semcache.prompts.parameter import Parameter, name_key
from semcache.prompts.recognizers.learned_values import LearnedValues
from semcache.prompts.redaction import Redact, Secrets, hide
from semcache.prompts.schema.schema import PromptSchema
from semcache.prompts.template import TemplateText, mask
from semcache.prompts.unseen.supposition import Supposed, Supposition


@dataclass(frozen=True, slots=True)
class Asked:
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

    @property
    def catalog(self) -> str:
        """Fingerprint of what its plan may call; empty if nobody said."""
        return self.tools.fingerprint

    def day(self, epoch: float | None = None) -> date:
        """Return the day at `epoch` seconds, or on which it is asked (None), in its zone."""
        return datetime.fromtimestamp(self.now if epoch is None else epoch, self.zone).date()

    def side(self) -> Side:
        """Return the prompt's side of a pair."""
        return Side(
            template=self.given_template,
            names=frozenset(self.given),
            catalog=self.catalog,
            grounding=self.grounding,
            said=self._said(),
        )

    def _said(self) -> frozenset[str]:
        slots = self.given_template.slots
        own = [slot for slot in slots if not slot.name] if self.given else slots
        return frozenset(each for slot in own for each in words_and_value(slot))

    def aligned(self, mentions: Sequence[Mention]) -> "Asked":
        """Return the same prompt read with other mentions."""
        template = mask(self.text, mentions)
        bare = self.given_template if self.given else template
        return replace(
            self,
            mentions=tuple(mentions),
            template=template,
            given_template=bare,
            known=self.plain,
        )

    @property
    def plain(self) -> TemplateText:
        """Its template text with no other mentions than those known to be values."""
        return self.template if self.known is None else self.known

    def supposing(self, reading: Supposition) -> "Asked":
        """Return the same prompt with what was supposed."""
        return replace(self.aligned(reading.mentions), supposed=reading.supposed)


def ask(
    text: str,
    *,
    tenant: str,
    given: Sequence[Parameter],
    tools: ToolSet,
    learned: LearnedValues | None,
    grounding: str = "",
    now: float = 0.0,
    zone: tzinfo = UTC,
    redact: Redact | None = None,
) -> Asked:
    """Return `text` with its mentions found and masked, and what `redact` hides among them."""
    mentions = find_mentions(text, given=given, closed=tools.closed, learned=learned)
    shown, secrets = text, None
    if redact is not None:
        plain = find_mentions(text, closed=tools.closed)
        shown, mentions, secrets = hide(text, mentions, plain=plain, redact=redact, given=given)
    template = mask(text, mentions)
    return Asked(
        tenant=tenant,
        text=text,
        given={name_key(parameter.name): parameter for parameter in given},
        mentions=mentions,
        template=template,
        tools=tools,
        grounding=grounding,
        given_template=given_template(text, given, mentions, learned) if given else template,
        now=now,
        zone=zone,
        secrets=secrets,
        shown=shown,
    )
