"""What the nodes of a running plan have left behind, and reading it."""

from semcache.canonical import Json, JsonObject, Pointer
from semcache.errors import ExpressionError
from semcache.plans.expressions import evaluate, reads
from semcache.plans.paths import LAST_RESULT, is_expression, literal, parse


class Scope:
    """Results by node, for the expressions of the nodes that follow. Of one run, on one thread."""

    __slots__ = ("_data", "_last", "_results")

    def __init__(self, data: frozenset[Pointer] = frozenset()) -> None:
        self._data = data
        self._results: JsonObject = {}
        self._last: Json = None

    def keep(self, node: str, result: Json) -> None:
        """Keep `result` as what `node` gave last."""
        self._results[node] = result
        self._last = result

    def value(self, expression: str, node: str) -> Json:
        """Return what `expression` gives over the results so far; null for what is not there.

        Raises:
            ExpressionError: it cannot be read, or looks at too much; the error names `node`.
        """
        try:
            parsed = parse(expression)
            root = self._results
            if LAST_RESULT in reads(parsed):
                root = {**root, LAST_RESULT: self._last}
            return evaluate(parsed, root)
        except ExpressionError as error:
            raise ExpressionError(f"node {node!r}: {error}", node=node) from error

    def holds(self, condition: str, node: str) -> bool:
        """Return whether `condition` is truthy: not null, false, 0 or empty.

        Raises:
            ExpressionError: it cannot be read, or looks at too much.
        """
        return bool(self.value(condition, node))

    def resolved(self, value: Json, at: Pointer) -> Json:
        """Return `value`, which stands at `at` in the plan, with every expression in it replaced.

        What stands at or below bound data is returned as it is.

        Raises:
            ExpressionError: an expression cannot be read, or looks at too much.
        """
        if at in self._data:
            return value
        match value:
            case str():
                return self._text(value, str(at[0]))
            case dict():
                return {key: self.resolved(item, (*at, key)) for key, item in value.items()}
            case list():
                return [self.resolved(item, (*at, i)) for i, item in enumerate(value)]
            case _:
                return value

    def _text(self, text: str, node: str) -> Json:
        return self.value(text, node) if is_expression(text) else literal(text)
