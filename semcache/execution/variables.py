"""Reading the variables of a running program."""

from collections.abc import Iterator, Mapping

from semcache.canonical import Json, Pointer, spelled
from semcache.errors import ExpressionError, OutputTooLarge
from semcache.execution.arithmetic import computed, is_arithmetic, number
from semcache.plans.variables import Bound, Variable, pieces, variable, variables


class Reader:
    """Puts values in the place of references. What was bound is returned as it is."""

    __slots__ = ("_bound", "_limit")

    def __init__(self, bound: Bound, *, limit: int) -> None:
        """Keep where values were bound, and how many bytes a text may grow to."""
        self._bound = bound
        self._limit = limit

    def read(self, value: Json, at: Pointer) -> Iterator[tuple[Pointer, Variable]]:
        """Yield the references in `value`, which stands at `at`, each with its place."""
        return variables(value, at, self._bound)

    def resolved(self, value: Json, at: Pointer, values: Mapping[str, Json], node: str) -> Json:
        """Return `value`, which stands at `at` in the plan, with every reference replaced.

        Values are put in and never read again: a value may look like a reference. A name that no
        variable has is no reference but text.

        Raises:
            ExpressionError: a variable has no such field; it names `node`.
            OutputTooLarge: a text grows over the limit.
        """
        if at in self._bound.whole:
            return value
        if isinstance(value, str):
            return self._text(self._parts(value, at, values), values, node)
        if (reference := variable(value)) is not None:
            return self._value(reference, values, node) if reference.name in values else None
        if isinstance(value, dict):
            return {k: self.resolved(item, (*at, k), values, node) for k, item in value.items()}
        if isinstance(value, list):
            return [self.resolved(item, (*at, i), values, node) for i, item in enumerate(value)]
        return value

    def assigned(self, value: Json, at: Pointer, values: Mapping[str, Json], node: str) -> Json:
        """Return what `resolved` does, but for a text that asks to be computed: its result.

        Raises:
            ExecutionError: as `resolved`; or the arithmetic has no result.
        """
        if isinstance(value, str) and at not in self._bound.whole:
            parts = self._parts(value, at, values)
            if at not in self._bound.spans and is_arithmetic(parts):
                read = [self._value(p, values, node) for p in parts if isinstance(p, Variable)]
                numbers = [found for found in map(number, read) if found is not None]
                result = computed(parts, numbers, node=node) if len(numbers) == len(read) else None
                if result is not None:
                    return result
        return self.resolved(value, at, values, node)

    def _parts(
        self, text: str, at: Pointer, values: Mapping[str, Json]
    ) -> tuple[str | Variable, ...]:
        found = pieces(text, self._bound.spans.get(at, ()))
        return tuple(
            part if isinstance(part, str) or part.name in values else part.written for part in found
        )

    def _text(
        self, parts: tuple[str | Variable, ...], values: Mapping[str, Json], node: str
    ) -> Json:
        match parts:
            case (Variable(typed=True) as only,):
                return self._value(only, values, node)
            case _:
                texts = [
                    part if isinstance(part, str) else as_text(self._value(part, values, node))
                    for part in parts
                ]
        if sum(map(len, texts)) > self._limit:
            raise OutputTooLarge(f"a text grows over {self._limit:,} bytes", node=node)
        return "".join(texts)

    def _value(self, reference: Variable, values: Mapping[str, Json], node: str) -> Json:
        value = values[reference.name]
        for step in reference.path:
            if not isinstance(value, dict) or step not in value:
                had = ", ".join(map(repr, value)) if isinstance(value, dict) else "no fields"
                raise ExpressionError(
                    f"instruction {node}: {reference.written!r} has no {step!r}; it has {had}",
                    node=node,
                )
            value = value[step]
        return value


def as_text(value: Json) -> str:
    """Return text as it is, and any other value as compact JSON."""
    return value if isinstance(value, str) else spelled(value)
