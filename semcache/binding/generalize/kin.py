"""Tied: values that no words carry, and the values that may have made them.

"patients in their 40s" says 40; the plan also has 49, which nobody said. With other words for 40
the 49 would be stale, so a value that looks like kin of an unsaid one serves only what it was.
"""

import re
from collections.abc import Container, Iterator, Sequence

from semcache.binding.codecs import spelling
from semcache.prompts.parameter import Parameter, type_key

_TOKEN = re.compile(r"\d+|[^\W\d_]{3,}")


def makers(
    params: Sequence[Parameter], carriers: Sequence[str], follows: Container[str]
) -> Iterator[Parameter]:
    """Yield the parameters with words of their own that may have made one without.

    Kin is what shares a word of its name (`min_age`, `max_age`) or of its value. Others are taken
    to be independent: a yes that "child-friendly" stands for holds in any city.
    """
    carried = frozenset(carriers)
    silent = [p for p in params if p.name not in carried and p.name not in follows]
    names = frozenset().union(*map(_name_words, silent))
    words = frozenset().union(*map(_words, silent))
    for param in params if silent else ():
        kin = _name_words(param) & names or _words(param) & words
        if param.name in carried and kin:
            yield param


_LABELS = frozenset("code count key kind name num number text type value".split())


def _name_words(param: Parameter) -> set[str]:
    return {part for part in type_key(param.name).split("_") if len(part) > 2} - _LABELS


def _words(param: Parameter) -> set[str]:
    return set(_TOKEN.findall(f"{spelling(param.value)} {(param.mention or '').casefold()}"))
