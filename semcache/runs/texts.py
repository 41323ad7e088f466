"""The texts that models are asked with: files with a version."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from semcache.canonical import Json
from semcache.errors import InvalidSettings


@dataclass(frozen=True, slots=True)
class PromptText:
    """One prompt file: `version: N`, then sections, each under a `# name` heading."""

    name: str
    """Of the file, without its suffix."""
    version: int
    """Grows with every change that can change an answer."""
    sections: Mapping[str, str]
    """Section name → text with `<<slots>>`."""

    @property
    def label(self) -> str:
        """`plan-1`: what a planner's name carries."""
        return f"{self.name}-{self.version}"

    def fill(self, section: str, /, **values: str) -> str:
        """Return a section with each `<<slot>>` replaced by the value of that name.

        Values are never scanned again: a `<<slot>>` inside one stays as it is.
        """
        return _SLOT.sub(lambda slot: values[slot[1]], self.sections[section])


_SLOT = re.compile(r"<<(\w+)>>")
_SECTION = re.compile(r"^# (\w+)\n", re.MULTILINE)


@cache
def load(name: str, package: str = "semcache.planners") -> PromptText:
    """Return the prompt file `name` of the folder `prompts` of a package, read once.

    Raises:
        InvalidSettings: there is no such file.
    """
    folder = files(package).joinpath("prompts")
    known = sorted(file.name.removesuffix(".md") for file in folder.iterdir())
    if name not in known:
        raise InvalidSettings(f"no prompt text is named {name!r}; known: {', '.join(known)}")
    return parse(name, folder.joinpath(f"{name}.md").read_text(encoding="utf-8"))


def parse(name: str, text: str) -> PromptText:
    """Return the prompt that `text` spells.

    Raises:
        InvalidSettings: the first line gives no version.
    """
    first, _, rest = text.partition("\n")
    version = re.fullmatch(r"version: (\d+)", first)
    if version is None:
        raise InvalidSettings(
            f"prompt text {name!r} begins with {first!r}; expected a line such as 'version: 1'"
        )
    parts = _SECTION.split(rest)[1:]
    sections = {title: body.strip() for title, body in zip(parts[::2], parts[1::2], strict=True)}
    return PromptText(name, int(version[1]), sections)


def shown(value: Json) -> str:
    """Return `value` as JSON for a model to read: a line for each member, and no line more.

    Indenting all of it would double what a catalog costs in tokens.
    """
    match value:
        case dict() if value:
            members = (f"{_line(key)}: {_line(item)}" for key, item in value.items())
            return "{\n" + ",\n".join(members) + "\n}"
        case list() if value:
            return "[\n" + ",\n".join(map(_line, value)) + "\n]"
        case _:
            return _line(value)


def _line(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False)
