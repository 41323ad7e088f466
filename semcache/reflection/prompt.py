"""What a model is asked, and may be asked again in other words."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from semcache.canonical import Json, dumps, plain
from semcache.ports import Message
from semcache.reflection.attempts import Verdict


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a model is asked: a text, the data that it is about, and a system prompt.

    Data that is not JSON (NaN, a set, a cycle) raises InvalidJson.
    """

    user: str
    data: Mapping[str, Json] = field(default_factory=dict)
    system: str = ""

    def __post_init__(self) -> None:
        plain(self.data, what="the data of a prompt")

    def messages(self, complaint: str = "") -> tuple[Message, ...]:
        """Return it as messages; `complaint` says what was wrong with the last answer."""
        user = f"{self.user}\n\n{dumps(dict(self.data))}" if self.data else self.user
        system = (Message("system", self.system),) if self.system else ()
        wrong = (Message("user", complaint),) if complaint else ()
        return (*system, Message("user", user), *wrong)

    def revised(self, verdict: Verdict) -> "Prompt":
        """Return it with what a verdict changes."""
        data = {**self.data, **verdict.data}
        return replace(self, data=data, system=verdict.system or self.system)
