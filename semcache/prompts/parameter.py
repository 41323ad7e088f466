"""A parameter: what a prompt carries that a plan needs."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from semcache.canonical import Json, plain
from semcache.catalog.shape import snake
from semcache.errors import InvalidJson, InvalidParameter
from semcache.process.memo import memoized


@dataclass(frozen=True, slots=True)
class Parameter:
    """A named value of a prompt, and the words that carry it."""

    name: str
    """What the value is: `year`, `order_id`. A dot leads into an object: `amount.operand`."""
    value: Json
    """The value as the plan has it: `"2024-03-11"` where the prompt says "March 11th"."""
    mention: str | None = None
    """The words of the prompt that carry the value; None if it is not there word for word."""

    def __post_init__(self) -> None:
        name: object = self.name  # callers are not all type-checked
        if not isinstance(name, str) or not name.strip():
            raise InvalidParameter(f"a parameter is named {self.name!r}; expected non-empty text")
        try:
            object.__setattr__(self, "value", plain(self.value, what=f"parameter {self.name!r}"))
        except InvalidJson as error:
            raise InvalidParameter(str(error)) from error
        if self.mention is not None and not isinstance(self.mention, str):
            raise InvalidParameter(
                f"the mention of parameter {self.name!r} is {self.mention!r}; "
                "expected the words of the prompt, or None"
            )

    @property
    def words(self) -> str:
        """The words to look for in a prompt; empty if none are said and the value is no scalar."""
        if self.mention is not None:
            return self.mention.strip()
        named = isinstance(self.value, str | int | float) and not isinstance(self.value, bool)
        return str(self.value).strip() if named else ""


_OPERAND = re.compile(r"\.operand(?:\.\d+)?$")


@memoized(10_000)
def name_key(name: str) -> str:
    """Return the spelling shared by `orderId`, `order_id` and `Order-ID`: `order_id`."""
    return snake(name)


def type_key(name: str) -> str:
    """Return the slot type that a parameter's name stands for.

    `city_name0` and `cityName` are `city_name`. The operand of a comparison is a value of its
    field: `amount.operand` is `amount`.
    """
    name = _OPERAND.sub("", name)
    return "_".join(p for p in name_key(name).split("_") if not p.isdigit()) or name_key(name)


def by_name(params: Mapping[str, object] | Iterable[Parameter] | None) -> tuple[Parameter, ...]:
    """Return `params` as parameters, whether they came as name → value or as parameters.

    Raises:
        InvalidParameter: there are no names, a value is not JSON, or two names differ only in
            spelling.
    """
    if params is None:
        return ()
    _check_given(params)
    if isinstance(params, Mapping):
        given = tuple(Parameter(name, _json(name, value)) for name, value in params.items())
    else:
        given = tuple(params)
    seen: dict[str, str] = {}
    for parameter in given:
        if not isinstance(parameter, Parameter):
            raise InvalidParameter(
                f"{parameter!r} is not a Parameter; expected `Parameter(name, value)` or a mapping"
            )
        key = name_key(parameter.name)
        if key in seen:
            raise InvalidParameter(
                f"parameters {seen[key]!r} and {parameter.name!r} differ only in spelling; keep one"
            )
        seen[key] = parameter.name
    return given


def _check_given(params: object) -> None:
    if isinstance(params, str | bytes) or not isinstance(params, Iterable):
        raise InvalidParameter(
            f"params is {params!r}; expected a mapping of names to values, or Parameters"
        )


def _json(name: str, value: object) -> Json:
    try:
        return plain(value, what=f"parameter {name!r}")
    except InvalidJson as error:
        raise InvalidParameter(str(error)) from error
