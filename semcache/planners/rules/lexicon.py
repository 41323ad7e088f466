"""Closed-class English as the rule normalizer reads it: phrase → what it may do in a request.

Only words of general English stand here; nouns of a domain come from the catalog. A word that is
in neither place stays unexplained, so leaving a phrase out costs a hit and never an answer. Left
out on purpose, since they mean different things to different people: "until" and "by" before a
year, "around", "my", "distinct", "overall", "best", "across".
"""

from collections.abc import Iterable
from typing import NamedTuple


class Sense(NamedTuple):
    """One thing that a phrase may do."""

    kind: str
    """`entity`, `field`, `measure`, `value`, `verb` from a catalog; else a kind of `_ENGLISH`."""
    value: str = ""
    """What it stands for: an operator, an aggregate, a direction, a field, a value."""
    field: str = ""
    """The field of a `value`."""
    typed: int | float | bool | None = None
    """What a `value` is where it is no text."""

    @property
    def meant(self) -> str | int | float | bool:
        """What the phrase stands for, of its own type."""
        return self.value if self.typed is None else self.typed


# kind → value → phrases, separated by `|`.
_ENGLISH: dict[str, dict[str, str]] = {
    # Verbs that ask to be shown something; in a request they are all one.
    "read": {
        "show": "show|show me|display|give me|give us|tell me|list|list out|find|find me|get|"
        "get me|search|search for|look up|look for|fetch|retrieve|return|query|pull up|view|"
        "calculate|compute|report|let me see|i want to see|i would like to see|i'd like to see|"
        "i want to know|i'd like to know|i would like to know|i need|i want|i'd like|provide",
        "ask": "what is|what are|what was|what were|what|whats",
    },
    "fill": {
        "article": "the|a|an",
        "of": "of",
        "polite": "please|pls|kindly|thanks|thank you|can you|could you|would you|will you|hi|"
        "hello|hey",
        "copula": "is|are|was|were|be|been",
        "auxiliary": "do|does|did|has|have|had|having",
        "there": "there|made|happened|occurred",
        "that": "that|which|who|whose|where",
        "all": "all|any|all of",
        "we": "we|our|us|me",
        "mark": "?|!|.|:|(|)",
    },
    "prep": {
        word: word
        for word in (
            "in", "during", "within", "for", "of", "from", "to", "at", "on", "with", "by", "via",
            "through", "using", "into",
        )
    },
    "worth": {"=": "worth|costing|priced at"},
    "cmp": {
        ">": "over|above|more than|greater than|higher than|larger than|bigger than|exceeding|"
        "exceeds|exceed|in excess of|upwards of|>",
        ">=": "at least|no less than|not less than|no fewer than|not under|not below|"
        "a minimum of|minimum of|greater than or equal to|more than or equal to|>=|≥",
        "<": "under|below|less than|lower than|smaller than|fewer than|<",
        "<=": "at most|no more than|not more than|up to|not over|not above|not exceeding|"
        "a maximum of|maximum of|less than or equal to|<=|≤",
        "=": "=|==|equal to|equals|exactly",
        "!=": "!=|≠|<>|not equal to|is not equal to",
    },
    # In time, where `over` and `under` say nothing.
    "when": {
        ">": "after|later than",
        ">=": "since|starting from|starting in|beginning in|on or after|in or after",
        "<": "before|prior to|earlier than",
        "<=": "on or before|in or before|up to and including",
    },
    "postcmp": {
        ">=": "or more|or above|or over|or higher|or greater|and above|and up|and more|"
        "or later|and later|or after",
        "<=": "or less|or fewer|or below|or under|or lower|and below|and under|or earlier|"
        "and earlier|or before",
    },
    "onward": {">=": "on|onward|onwards|and onward|and onwards|forward"},
    "not": {
        "not": "not|excluding|exclude|except|except for|excepting|other than|without|outside|"
        "outside of|but not|and not|is not|are not|was not|were not|non",
    },
    "between": {"between": "between"},
    "from": {"from": "from"},
    "to": {"to": "to|through|until|till|thru|-|up to"},
    "and": {"and": "and|&|as well as"},
    "or": {"or": "or"},
    "comma": {",": ","},
    "by": {"by": "by"},
    "group": {
        "by": "per|for each|for every|in each|in every|of each|by each|grouped by|group by|"
        "broken down by|split by|and by|each",
    },
    "sort": {"by": "sorted by|sort by|order by|ordered by|sorting by|sorted on|and sort by"},
    "direction": {
        "asc": "ascending|asc|in ascending order",
        "desc": "descending|desc|in descending order",
    },
    # They order sizes, and say so: "highest first".
    "sized": {
        "asc": "lowest first|smallest first|from lowest to highest|from smallest to largest",
        "desc": "highest first|largest first|biggest first|from highest to lowest|"
        "from largest to smallest",
    },
    "dated": {
        "asc": "oldest first|earliest first|from oldest to newest",
        "desc": "newest first|latest first|most recent first|from newest to oldest",
    },
    "top": {"desc": "top|the top", "asc": "bottom|the bottom"},
    "super": {
        "desc": "highest|largest|biggest|greatest",
        "asc": "lowest|smallest",
    },
    "most": {"desc": "most|the most", "asc": "least|fewest|the least|the fewest"},
    "recent": {
        "desc": "latest|newest|most recent|the most recent|last",
        "asc": "earliest|oldest|first",
    },
    "agg": {
        "sum": "total|totals|sum|sum of|sum up|add up|total up|aggregate|the sum of|how much",
        "avg": "average|averages|mean|avg|the average",
        "max": "maximum|max|maximum of|the maximum of",
        "min": "minimum|min|minimum of|the minimum of",
        "median": "median",
        "stddev": "standard deviation of|standard deviation in",
        "variance": "variance of|variance in",
        "count": "how many|number of|the number of|count|counts|count of|the count of|"
        "total number of|the total number of|total count of|count up|count the number of|"
        "counting",
    },
    "which": {"which": "which|what"},
}  # fmt: skip


def longest(phrases: Iterable[tuple[str, ...]]) -> dict[str, int]:
    """Return first word → words in the longest of the phrases that begin with it."""
    lengths: dict[str, int] = {}
    for words in phrases:
        lengths[words[0]] = max(len(words), lengths.get(words[0], 0))
    return lengths


def _table() -> dict[tuple[str, ...], tuple[Sense, ...]]:
    table: dict[tuple[str, ...], tuple[Sense, ...]] = {}
    for kind, senses in _ENGLISH.items():
        for value, phrases in senses.items():
            for phrase in phrases.split("|"):
                words = tuple(phrase.split())
                table[words] = (*table.get(words, ()), Sense(kind, value))
    return table


PHRASES = _table()
"""Words of a phrase, lower case → everything that it may do."""

LONGEST = longest(PHRASES)
"""First word of a phrase → words in the longest phrase that begins so."""
