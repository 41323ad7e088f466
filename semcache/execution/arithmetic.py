"""Arithmetic in a program, where it was asked for and nowhere else.

StackVM computes every text of digits and signs, so that the date "2024-10-15" becomes 1999. Here a
text is arithmetic only if the program wrote it so: at least one `${variable}`, numbers, and an
operator with white space on both sides. `${x} / 2 + 1` is; `${year}-${month}-${day}` is not.
"""

import ast
import math
import re
from collections.abc import Callable, Mapping, Sequence

from semcache.canonical import MAX_BITS, Json
from semcache.errors import ExecutionError
from semcache.plans.variables import Variable

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
