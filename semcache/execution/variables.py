"""The variables of a running program: reading them, and computing with them where it says so."""

import ast
import math
import re
from collections.abc import Callable, Mapping, Sequence

from semcache.canonical import MAX_BITS, Json, Pointer, spelled
from semcache.errors import ExecutionError, ExpressionError, OutputTooLarge
from semcache.plans.program import Bound, Variable, pieces, variable

MAX_LENGTH = 500  # characters of one expression, with a letter and digits for each variable

_MARK = "v"
_ALLOWED = re.compile(r"[\dv .()+\-*/%\t]+")
_SPACED = re.compile(r"[\dv.)]\s+(?:\*\*|[-+*/%])\s+[-+\dv.(]")
_TIGHT = re.compile(r"[\dv.)](?:\*\*|[-+*/%])|[\dv.)]\s+(?:\*\*|[-+*/%])(?![\s*])")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,39})(?:\.[0-9]{1,20})?")  # "007" is a code

Number = int | float


def is_arithmetic(parts: Sequence[str | Variable]) -> bool:
    """Return whether the text that `parts` make asks to be computed."""
    text = "".join(_MARK if isinstance(part, Variable) else part for part in parts)
    own = "".join(part for part in parts if isinstance(part, str))
    return (
        _MARK in text
        and _MARK not in own
        and len(text) <= MAX_LENGTH
        and _ALLOWED.fullmatch(text) is not None
        and _SPACED.search(text) is not None
        and _TIGHT.search(text) is None
    )


def number(value: Json) -> Number | None:
    """Return a number, or the one that a text spells; None for anything else."""
    if isinstance(value, str) and _NUMBER.fullmatch(value.strip()):
        return float(value) if "." in value else int(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    return None


def computed(parts: Sequence[str | Variable], values: Sequence[Number], *, node: str) -> Json:
    """Return what the arithmetic of `parts` gives; None if it cannot be read as such.

    `values` are those of its variables, in order. Whole numbers stay whole where they divide.

    Raises:
        ExecutionError: division by zero, or a result that is too large; it names `node`.
    """
    names = iter(range(len(values)))
    text = "".join(f"v{next(names)}" if isinstance(part, Variable) else part for part in parts)
    try:
        tree = ast.parse(text.strip(), mode="eval").body
        return _value(tree, {f"v{i}": value for i, value in enumerate(values)})
    except (SyntaxError, RecursionError, MemoryError):
        return None
    except (ArithmeticError, ValueError, TypeError) as error:
        told = "".join(p.written if isinstance(p, Variable) else p for p in parts)
        raise ExecutionError(f"cannot compute {told!r}: {error}", node=node) from error


def _value(node: ast.expr, names: Mapping[str, Number]) -> Number:
    match node:
        case ast.Constant(value=int() | float() as value):
            return value
        case ast.Name(id=name):
            return names[name]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, names)
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return _value(operand, names)
        case ast.BinOp(left=left, op=operator, right=right) if type(operator) in _OPERATORS:
            result = _OPERATORS[type(operator)](_value(left, names), _value(right, names))
            return _bounded(result)
        case _:
            raise SyntaxError("not arithmetic")


def _bounded(result: Number) -> Number:
    if isinstance(result, complex) or not math.isfinite(result):
        raise OverflowError("the result is no finite number")
    if isinstance(result, int) and result.bit_length() > MAX_BITS:
        raise OverflowError(f"the result has more than {MAX_BITS} bits")
    return result


def _divided(left: Number, right: Number) -> Number:
    whole = isinstance(left, int) and isinstance(right, int) and right != 0
    return left // right if whole and left % right == 0 else left / right


def _power(base: Number, exponent: Number) -> Number:
    # Python would start on 9 ** 9 ** 9 and never come back.
    if isinstance(base, int) and abs(exponent) * base.bit_length() > MAX_BITS:
        raise OverflowError(f"the result has more than {MAX_BITS} bits")
    result: Number = base**exponent
    return result


_OPERATORS: Mapping[type[ast.operator], Callable[[Number, Number], Number]] = {
    ast.Add: lambda left, right: left + right,
    ast.Sub: lambda left, right: left - right,
    ast.Mult: lambda left, right: left * right,
    ast.Div: _divided,
    ast.Mod: lambda left, right: left % right,
    ast.Pow: _power,
}


class Reader:
    """Puts values in the place of references. What was bound is returned as it is."""

    __slots__ = ("_limit", "bound")

    def __init__(self, bound: Bound, *, limit: int) -> None:
        """Keep where values were bound, and how many bytes a text may grow to."""
        self.bound = bound
        """Where values were bound."""
        self._limit = limit

    def resolved(self, value: Json, at: Pointer, values: Mapping[str, Json], node: str) -> Json:
        """Return `value`, which stands at `at` in the plan, with every reference replaced.

        Values are put in and never read again: a value may look like a reference. A name that no
        variable has is no reference but text.

        Raises:
            ExpressionError: a variable has no such field; it names `node`.
            OutputTooLarge: its texts grow over the limit together.
        """
        return self._resolved(value, at, values, node, [0])

    def _resolved(
        self, value: Json, at: Pointer, values: Mapping[str, Json], node: str, grown: list[int]
    ) -> Json:
        if at in self.bound.whole:
            return value
        if isinstance(value, str):
            return self._text(self._parts(value, at, values), values, node, grown)
        if (reference := variable(value)) is not None:
            return self._value(reference, values, node) if reference.name in values else None
        if isinstance(value, dict):
            return {
                key: self._resolved(item, (*at, key), values, node, grown)
                for key, item in value.items()
            }
        if isinstance(value, list):
            return [
                self._resolved(item, (*at, i), values, node, grown) for i, item in enumerate(value)
            ]
        return value

    def assigned(self, value: Json, at: Pointer, values: Mapping[str, Json], node: str) -> Json:
        """Return what `resolved` does, but for a text that asks to be computed: its result.

        Raises:
            ExecutionError: as `resolved`; or the arithmetic has no result.
        """
        if isinstance(value, str) and at not in self.bound.whole:
            parts = self._parts(value, at, values)
            if at not in self.bound.spans and is_arithmetic(parts):
                read = [self._value(p, values, node) for p in parts if isinstance(p, Variable)]
                numbers = [found for found in map(number, read) if found is not None]
                result = computed(parts, numbers, node=node) if len(numbers) == len(read) else None
                if result is not None:
                    return result
        return self.resolved(value, at, values, node)

    def _parts(
        self, text: str, at: Pointer, values: Mapping[str, Json]
    ) -> tuple[str | Variable, ...]:
        found = pieces(text, self.bound.spans.get(at, ()))
        return tuple(
            part if isinstance(part, str) or part.name in values else part.written for part in found
        )

    def _text(
        self,
        parts: tuple[str | Variable, ...],
        values: Mapping[str, Json],
        node: str,
        grown: list[int],
    ) -> Json:
        match parts:
            case (Variable(typed=True) as only,):
                return self._value(only, values, node)
            case _:
                texts = [
                    part if isinstance(part, str) else as_text(self._value(part, values, node))
                    for part in parts
                ]
        grown[0] += sum(map(len, texts))
        if grown[0] > self._limit:
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
