"""Overrides: effects, and where keys are taken, as a caller knows them better."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import get_args

from semcache.catalog.operation import Effect, Operation
from semcache.errors import InvalidSettings


@dataclass(frozen=True, slots=True)
class Overrides:
    """What a caller says of operations by name, in the place of a document or server."""

    effects: Mapping[str, Effect] = field(default_factory=dict)
    """Operation → its effect."""
    idempotency_keys: Mapping[str, str] = field(default_factory=dict)
    """Operation → the argument that takes its idempotency key."""

    def check(self, names: Collection[str]) -> None:
        """Return if each name is known and each effect is one.

        Raises:
            InvalidSettings: one is not.
        """
        for what, told in (
            ("effects", self.effects),
            ("idempotency_keys", self.idempotency_keys),
        ):
            for name in told:
                if name not in names:
                    known = ", ".join(map(repr, sorted(names)[:10]))
                    raise InvalidSettings(
                        f"`{what}` names {name!r}, which is not there; known: {known}"
                    )
        for name, effect in self.effects.items():
            if effect not in get_args(Effect):
                raise InvalidSettings(
                    f"the effect of {name!r} is {effect!r}; expected one of {get_args(Effect)}"
                )

    def applied(self, operation: Operation) -> Operation:
        """Return `operation` as the caller says that it is.

        Raises:
            InvalidOperation: it has no argument of the name that was told.
        """
        effect = self.effects.get(operation.name, operation.effect)
        known = replace(operation, effect=effect)
        argument = self.idempotency_keys.get(operation.name)
        return known if argument is None else known.keyed(argument)
