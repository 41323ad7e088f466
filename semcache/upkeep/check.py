"""Check: one thing that the doctor looked at."""

from dataclasses import dataclass
from typing import Literal

from semcache.canonical import JsonObject

Level = Literal["ok", "warning", "broken"]


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at."""

    part: str
    """`directory`, `permissions`, `room`, `versions`, `database`, `clocks`, `key`, `records`,
    `clock`, `embedder`, `index`."""
    level: Level
    what: str
    """What was found."""
    cure: str = ""
    """The way out; empty if all is well."""
    repaired: str = ""
    """What was done about it; empty if nothing."""

    def __str__(self) -> str:
        lines = [f"{'repaired' if self.repaired else self.level:8}  {self.part}: {self.what}"]
        if self.repaired:
            lines.append(f"{'':10}done: {self.repaired}")
        elif self.cure:
            lines.append(f"{'':10}way out: {self.cure}")
        return "\n".join(lines)

    def to_dict(self) -> JsonObject:
        """Return the check as JSON."""
        return {
            "part": self.part,
            "level": self.level,
            "what": self.what,
            "cure": self.cure,
            "repaired": self.repaired,
        }


def sound(checks: tuple[Check, ...]) -> bool:
    """Return whether nothing is wrong, or all of it was repaired."""
    return all(check.level == "ok" or check.repaired for check in checks)
