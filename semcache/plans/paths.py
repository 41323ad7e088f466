"""The expressions of a plan: JSONPath in the dialect of OneMCP, and conditions over it.

    expression  `||` of `&&` of comparisons, with `!` and parentheses
    operand     a path, a number, a quoted text, `true`, `false`, `null`
    path        `$` (in a filter also `@`), then any of
                `.name` `['name']` `.['name']` `[0]` `.0` `[0,2]` `[1:3]` `[0:4:2]` `.*` `[*]`
                `..name` `..*` `[?(@.price > 10)]` `.size()` `.limit(2)` `.sort($.price)`

Quotes of both styles mean the same everywhere. The parser is our own: of 27 expressions of the
dialect's fixtures python-jsonpath 2.2 and jsonpath-rfc9535 1.0 answer 18 and jsonpath-ng 1.16
answers 20; none knows `.size()` as a step, `.0`, or conditions outside a filter.
"""

import json
import math
import re

from semcache.errors import ExpressionError
from semcache.plans.expressions import (
    COMPARISONS,
    AllOf,
    AnyOf,
    Comparison,
    Every,
    Expression,
    FilterSelector,
    Function,
    Item,
    JsonPath,
    Limit,
    Literal,
    Member,
    Not,
    Pick,
    Selector,
    Size,
    Slice,
    SortStep,
)
from semcache.process.memo import memoized

MAX_LENGTH = 10_000  # characters of one expression
MAX_NESTING = 40  # parentheses, filters and negations inside one another

ALL_RESULTS = "_gstt"  # old plans say `$._gstt.x` where `$.x` is enough
LAST_RESULT = "_lstt"  # old plans call the result of the node before by this name


def is_expression(text: str) -> bool:
    """Return whether a text value of a plan is an expression rather than itself.

    It is one if it begins with `$`; but `$$` begins a literal text with one `$`, and `$500` is
    money, since no path goes on with a digit.
    """
    return text.startswith("$") and text[1:2] != "$" and not text[1:2].isdigit()


def literal(text: str) -> str:
    """Return what a text value of a plan means that is no expression: `$$x` means `$x`."""
    return text[1:] if text.startswith("$$") else text


@memoized(4096)
def parse(text: str) -> Expression:
    """Return the expression that `text` spells.

    Raises:
        ExpressionError: it cannot be read; the message shows where.
    """
    if len(text) > MAX_LENGTH:
        raise ExpressionError(
            f"an expression has {len(text):,} characters; expected at most {MAX_LENGTH:,}"
        )
    reader = _Reader(text)
    expression = reader.either()
    reader.end()
    return expression


_SPACE = re.compile(r"\s*")
_NAME = re.compile(r"\w[\w-]*")
_POSITION = re.compile(r"0|[1-9][0-9]{0,14}")
_DIGITS = re.compile(r"[0-9]+")
_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_QUOTED = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"", re.DOTALL)
_COMPARISON = re.compile("|".join(sorted(map(re.escape, COMPARISONS), key=len, reverse=True)))
_WORD = re.compile(r"(?:true|false|null)\b")
_WORDS: dict[str, bool | None] = {"true": True, "false": False, "null": None}
_SLICE = re.compile(r"\s*([0-9]*)\s*:\s*(-?[0-9]*)\s*(?::\s*([0-9]*)\s*)?(?=\])")


class _Reader:
    """Reads one expression from left to right, without going back."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.place = 0
        self.depth = 0
        self.inside = 0
        """How many filters and sorts surround the place; `@` means something only inside one."""

    def either(self) -> Expression:
        parts = [self.both()]
        while self.takes("||"):
            parts.append(self.both())
        return parts[0] if len(parts) == 1 else AnyOf(tuple(parts))

    def both(self) -> Expression:
        parts = [self.compared()]
        while self.takes("&&"):
            parts.append(self.compared())
        return parts[0] if len(parts) == 1 else AllOf(tuple(parts))

    def compared(self) -> Expression:
        left = self.operand()
        operator = self.match(_COMPARISON)
        return Comparison(left, operator, self.operand()) if operator else left

    def operand(self) -> Expression:
        self.deeper()
        if self.takes("!"):
            found: Expression = Not(self.operand())
        elif self.takes("("):
            found = self.either()
            self.needs(")")
        else:
            found = self.simple()
        self.depth -= 1
        return found

    def simple(self) -> Expression:
        if self.takes("$"):
            return self.path(absolute=True)
        if self.inside and self.takes("@"):
            return self.path(absolute=False)
        if quoted := self.match(_QUOTED):
            return Literal(self.unquoted(quoted))
        if number := self.match(_NUMBER):
            return Literal(self.number(number))
        if word := self.match(_WORD):
            return Literal(_WORDS[word])
        raise self.error("a path from `$`, a number, a quoted text, true, false or null")

    def path(self, *, absolute: bool) -> JsonPath:
        steps: list[Pick | Function] = []
        while step := self.step():
            steps.append(step)
        if not steps and _NAME.match(self.text, self.place):
            raise self.error("`.` or `[`, as in `$.node`")
        if absolute and not self.inside and steps[:1] == [Pick((Member(ALL_RESULTS),))]:
            del steps[0]
        return JsonPath(absolute, tuple(steps))

    def step(self) -> Pick | Function | None:
        if self.follows(".."):
            return Pick(self.deep(), deep=True)
        if self.follows("["):
            return Pick(self.bracket())
        if not self.follows("."):
            return None
        if self.follows("["):  # the dot before a bracket means nothing
            return Pick(self.bracket())
        return self.dotted()

    def deep(self) -> tuple[Selector, ...]:
        return self.bracket() if self.follows("[") else (self.named(),)

    def dotted(self) -> Pick | Function:
        start = self.place
        selector = self.named()
        if isinstance(selector, Member) and self.follows("("):
            return self.function(selector.name, start)
        return Pick((selector,))

    def named(self) -> Selector:
        if self.follows("*"):
            return Every()
        found = _NAME.match(self.text, self.place)
        if not found:
            raise self.error("a name, a number or `*`")
        self.place = found.end()
        # `.007` and what is too long for a position can only be the name of a member.
        if _POSITION.fullmatch(found[0]):
            return Item(int(found[0]))
        return Member(found[0])

    def function(self, name: str, start: int) -> Function:
        match name:
            case "size":
                step: Function = Size()
            case "limit":
                step = Limit(self.either())
            case "sort":
                step = SortStep(self.inner())
            case _:
                self.place = start
                raise self.error("one of the functions `size()`, `limit(n)`, `sort(path)`")
        self.needs(")")
        return step

    def bracket(self) -> tuple[Selector, ...]:
        """Read what stands in brackets, after the opening one."""
        if self.takes("?"):
            selectors: tuple[Selector, ...] = (FilterSelector(self.inner()),)
        elif self.takes("*"):
            selectors = (Every(),)
        elif found := _SLICE.match(self.text, self.place):
            self.place = found.end()
            selectors = (self.slice(found),)
        else:
            selectors = self.listed()
        self.needs("]")
        return selectors

    def listed(self) -> tuple[Selector, ...]:
        selectors = [self.subscript()]
        while self.takes(","):
            selectors.append(self.subscript())
        return tuple(selectors)

    def subscript(self) -> Selector:
        if quoted := self.match(_QUOTED):
            return Member(self.unquoted(quoted))
        if digits := self.match(_DIGITS):
            return Item(self.integer(digits))
        raise self.error("a quoted name, a position from 0, a slice, `*` or `?(condition)`")

    def slice(self, found: re.Match[str]) -> Slice:
        start, stop, step = found[1], found[2], found[3]
        if step and not int(step[:20]):
            raise self.error("a step of at least 1")
        # An end before the beginning means the end of the list in this dialect.
        open_end = not stop or stop.startswith("-")
        return Slice(
            self.integer(start or "0"),
            None if open_end else self.integer(stop),
            self.integer(step or "1"),
        )

    def inner(self) -> Expression:
        """Read an expression in which `@` is the item looked at."""
        self.inside += 1
        self.deeper()
        expression = self.either()
        self.depth -= 1
        self.inside -= 1
        return expression

    def unquoted(self, quoted: str) -> str:
        body = quoted[1:-1]
        if quoted[0] == "'":
            body = _REQUOTED.sub(_requote, body)
        try:
            text = str(json.loads(f'"{body}"', strict=False))
            text.encode("utf-8")
        except ValueError as error:
            raise self.error("a quoted text with the escapes of JSON") from error
        return text

    def number(self, digits: str) -> int | float:
        try:
            number = int(digits) if digits.lstrip("-").isdigit() else float(digits)
        except ValueError as error:  # more digits than Python turns into an integer
            raise self.error("a shorter number") from error
        if not math.isfinite(number):
            raise self.error("a finite number")
        return number

    def integer(self, digits: str) -> int:
        if len(digits) > 15:
            raise self.error("a position of at most 15 digits")
        return int(digits)

    def deeper(self) -> None:
        self.depth += 1
        if self.depth > MAX_NESTING:
            raise self.error(f"at most {MAX_NESTING} levels of nesting")

    def end(self) -> None:
        self.skip()
        if self.place < len(self.text):
            raise self.error("the end, or one of `&&`, `||`, `==`, `!=`, `<`, `<=`, `>`, `>=`")

    def needs(self, token: str) -> None:
        if not self.takes(token):
            raise self.error(f"`{token}`")

    def takes(self, token: str) -> bool:
        """Return whether `token` comes next, spaces aside, and go behind it if so."""
        self.skip()
        return self.follows(token)

    def follows(self, token: str) -> bool:
        """Return whether `token` comes at once, and go behind it if so."""
        if not self.text.startswith(token, self.place):
            return False
        self.place += len(token)
        return True

    def match(self, pattern: re.Pattern[str]) -> str:
        """Return what `pattern` matches next, spaces aside, and go behind it; empty if nothing."""
        self.skip()
        found = pattern.match(self.text, self.place)
        self.place = found.end() if found else self.place
        return found[0] if found else ""

    def skip(self) -> None:
        if found := _SPACE.match(self.text, self.place):
            self.place = found.end()

    def error(self, expected: str) -> ExpressionError:
        rest = self.text[self.place :]
        found = repr(rest[:30]) if rest else "its end"
        shown = self.text if len(self.text) <= 120 else f"{self.text[:120]}…"
        return ExpressionError(
            f"the expression {shown!r} cannot be read at character {self.place}: "
            f"expected {expected}, found {found}"
        )


_REQUOTED = re.compile(r"\\(.)|\"", re.DOTALL)


def _requote(found: re.Match[str]) -> str:
    """Return what stands in a single-quoted text as it would stand in a double-quoted one."""
    if found[1] == "'":
        return "'"
    return '\\"' if found[0] == '"' else found[0]
