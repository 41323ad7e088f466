"""Checks: what a caller hands in can be used, or an error says what it should be."""

from collections.abc import Collection
from pathlib import Path

import numpy as np

from semcache.cache.result import Hit, Miss
from semcache.errors import InvalidInput
from semcache.prompts.schema.schema import PromptSchema


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


def check_right(right: object) -> None:
    """Raise `InvalidInput` unless `right` is True or False."""
    check_switch("right", right)


def check_switch(name: str, value: object) -> None:
    """Raise `InvalidInput` unless `value` is True or False: "no" would count as a yes."""
    if not isinstance(value, bool | np.bool_):
        raise InvalidInput(f"{name} is {value!r}; expected True or False")
