"""What a caller knows better than a document or server: which operations read, which write."""

from collections.abc import Collection, Mapping
from typing import get_args

from semcache.catalog.operation import Effect
from semcache.errors import InvalidSettings


def check_effects(effects: Mapping[str, Effect], names: Collection[str]) -> None:
    """Return if each name is known and each effect is one.

    Raises:
        InvalidSettings: one is not.
    """
    for name, effect in effects.items():
        if name not in names:
            known = ", ".join(map(repr, sorted(names)[:10]))
            raise InvalidSettings(f"`effects` names {name!r}, which is not there; known: {known}")
        if effect not in get_args(Effect):
            raise InvalidSettings(
                f"the effect of {name!r} is {effect!r}; expected one of {get_args(Effect)}"
            )
