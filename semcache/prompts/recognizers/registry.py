"""Recognizers: the open list of what finds values in a prompt.

A recognizer is a function from text to what it found. They may overlap: `find_mentions` keeps the
longest. All that ship are regular expressions behind a cheap check whether the text has anything
for them at all, because every lookup runs them.
"""

from dataclasses import dataclass

from semcache.prompts.recognizers.dates import dates, times
from semcache.prompts.recognizers.names import addresses, codes, quotes
from semcache.prompts.recognizers.numbers import CURRENCIES, numbers
from semcache.prompts.recognizers.recognition import Recognition, Recognizer


@dataclass(frozen=True, slots=True)
class Recognizers:
    """An ordered list of recognizers; where two find the same span, the earlier one names it."""

    each: tuple[Recognizer, ...]
    """The recognizers, first come first named."""

    def with_(self, recognizer: Recognizer) -> "Recognizers":
        """Return a copy that asks `recognizer` first."""
        return Recognizers((recognizer, *self.each))

    def find(self, text: str) -> list[Recognition]:
        """Return everything that was found, in the order of the recognizers; spans may overlap."""
        return [found for recognizer in self.each for found in recognizer(text)]


OPEN_KINDS = frozenset(
    [
        "number", "year", "ordinal", "percent", "date", "datetime", "month", "weekday",
        "quarter", "time", "quoted", "email", "url", "code", "identifier", *CURRENCIES.values(),
    ]
)  # fmt: skip
"""The slot types that the recognizers of this package give."""

DEFAULT = Recognizers((quotes, addresses, times, dates, numbers, codes))
"""The recognizers that ship with the package."""
