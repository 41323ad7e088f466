"""The schema of a prompt: what it asks for, in the catalog's words."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from semcache.canonical import Json, JsonObject
from semcache.prompts.parameter import Parameter


@dataclass(frozen=True, slots=True)
class PromptSchema:
    """What a prompt asks for, in canonical words."""

    action: str
    """Canonical verb: `summarize`, `search`, `get`, `list`."""
    entities: tuple[str, ...] = ()
    """Resources asked about, singular; their order means nothing."""
    group_by: tuple[str, ...] = ()
    """Fields to group by; their order means something."""
    params: Mapping[str, Json] = field(default_factory=dict)
    """Field → literal, `{"operator", "operand"}`, `{"aggregate"}`, and flat `sort_by`, `order`, `limit`."""
    mentions: Mapping[str, str] = field(default_factory=dict)
    """Parameter name (`year`, `amount.operand`) → the words of the prompt that carry its value."""
    unexplained: tuple[str, ...] = ()
    """Content words of the prompt that nothing above accounts for; a schema with any is partial."""
