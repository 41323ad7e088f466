"""Grounding: how a domain wants things done, told by use cases (orra, specs/orra.md D4).

Pure: reading a file is the caller's business. The JSON form is orra's own, `use-cases` spelled with
a dash or an underscore.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from semcache.canonical import Json, JsonObject, as_list, as_object, digest, plain
from semcache.errors import InvalidInput, InvalidJson

_VARIABLE = re.compile(r"\{(\w+)\}")
_DOMAIN = re.compile(r"[a-z0-9](?:[a-z0-9.-]{1,61})[a-z0-9]")


@dataclass(frozen=True, slots=True)
class UseCase:
    """One kind of request, and what answering it takes."""

    action: str
    """The request, with a `{variable}` for each value."""
    params: JsonObject
    """Variable → an example of its value; may name more than the action does."""
    capabilities: tuple[str, ...]
    """What must be done to answer it; at least one."""
    intent: str
    """What the one who asks wants."""

    @property
    def wording(self) -> str:
        """The action without its variables: what a prompt is compared with."""
        return " ".join(_VARIABLE.sub(" ", self.action).split())

    def to_json(self) -> JsonObject:
        """Return the use case in orra's form."""
        return {
            "action": self.action,
            "params": dict(self.params),
            "capabilities": list(self.capabilities),
            "intent": self.intent,
        }


@dataclass(frozen=True, slots=True)
class Grounding:
    """The use cases and rules of one domain."""

    name: str
    domain: str
    """3 to 63 lower-case letters, digits, dots and dashes."""
    version: str
    use_cases: tuple[UseCase, ...]
    constraints: tuple[str, ...] = field(default=())
    """Rules that every plan of the domain must keep."""

    @classmethod
    def from_json(cls, source: Mapping[str, object]) -> "Grounding":
        """Return the grounding that a document describes.

        Raises:
            InvalidInput: it does not; the message tells everything that is wrong with it.
        """
        try:
            document = plain(source, what="the grounding")
        except InvalidJson as error:
            raise InvalidInput(str(error)) from error
        spec = as_object(document)
        cases = spec.get("use-cases", spec.get("use_cases"))
        findings = [*_findings(spec), *_case_findings(cases)]
        if findings:
            raise InvalidInput(f"the grounding {spec.get('name')!r}: {'; '.join(findings)}")
        return cls(
            name=str(spec["name"]),
            domain=str(spec["domain"]),
            version=str(spec["version"]),
            use_cases=tuple(_use_case(case) for case in as_list(cases) if isinstance(case, dict)),
            constraints=tuple(_texts(spec.get("constraints", []))),
        )

    def to_json(self) -> JsonObject:
        """Return the grounding in orra's form."""
        return {
            "name": self.name,
            "domain": self.domain,
            "version": self.version,
            "use-cases": [case.to_json() for case in self.use_cases],
            "constraints": list(self.constraints),
        }


@dataclass(frozen=True, slots=True)
class Grounded:
    """The use case that a prompt was found to be, with the rules of its domain."""

    grounding: Grounding
    use_case: UseCase
    similarity: float
    """Cosine of prompt and use case, in [-1, 1]."""

    @property
    def identity(self) -> str:
        """Which grounding this is, as the cache keeps plans apart by it.

        Another use case, or a word changed in it or in the constraints, is another identity.
        """
        content: Json = [self.use_case.to_json(), list(self.grounding.constraints)]
        return f"{self.grounding.name}@{self.grounding.version}/{digest(content)[:16]}"

    def to_json(self) -> JsonObject:
        """Return what a planner is shown."""
        return {
            "domain": self.grounding.domain,
            "use_case": self.use_case.to_json(),
            "constraints": list(self.grounding.constraints),
        }


def _findings(spec: JsonObject) -> Iterator[str]:
    for key in ("name", "domain", "version"):
        if not _is_text(spec.get(key)):
            yield f"`{key}` is {spec.get(key)!r}; expected text"
    domain = spec.get("domain")
    if isinstance(domain, str) and domain.strip() and not _DOMAIN.fullmatch(domain):
        yield (
            f"`domain` is {domain!r}; expected 3 to 63 lower-case letters, digits, dots and dashes"
        )
    constraints = spec.get("constraints", [])
    if not isinstance(constraints, list) or not all(map(_is_text, constraints)):
        yield "`constraints` are not a list of texts"


def _case_findings(cases: Json) -> Iterator[str]:
    if not isinstance(cases, list) or not cases:
        yield "`use-cases` are not a list with at least one use case"
        return
    for number, case in enumerate(cases):
        if not isinstance(case, dict):
            yield f"`use-cases/{number}` is of type {type(case).__name__}; expected an object"
            continue
        yield from (f"`use-cases/{number}`: {what}" for what in _wrong_with(case))


def _wrong_with(case: JsonObject) -> Iterator[str]:
    for key in ("action", "intent"):
        if not _is_text(case.get(key)):
            yield f"`{key}` is {case.get(key)!r}; expected text"
    params = case.get("params", {})
    if not isinstance(params, dict):
        yield f"`params` is of type {type(params).__name__}; expected an object"
        params = {}
    action = case.get("action")
    if isinstance(action, str):
        missing = [name for name in _VARIABLE.findall(action) if name not in params]
        yield from (
            f"the action has {{{name}}}, and `params` has no example of it" for name in missing
        )
        if action.strip() and not _VARIABLE.sub("", action).strip():
            yield "the action has no words beside its variables"
    capabilities = case.get("capabilities")
    if (
        not isinstance(capabilities, list)
        or not capabilities
        or not all(map(_is_text, capabilities))
    ):
        yield "`capabilities` are not a list with at least one text"


def _use_case(case: JsonObject) -> UseCase:
    params = case.get("params", {})
    return UseCase(
        action=str(case["action"]),
        params=as_object(params),
        capabilities=tuple(_texts(case["capabilities"])),
        intent=str(case["intent"]),
    )


def _texts(value: Json) -> Iterable[str]:
    return map(str, as_list(value))


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())
