"""Checks: what a caller hands to a replay can be used, or an error says what it should be."""

from collections.abc import Iterable

from semcache.errors import InvalidInput, InvalidSettings
from semcache.settings import Settings


def check_count(name: str, value: object, *, least: int = 1, optional: bool = True) -> None:
    """Raise `InvalidInput` unless `value` is a whole number of `least` or more.

    `optional`: None will do as well.
    """
    if value is None and optional:
        return
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        nothing = ", or None" if optional else ""
        raise InvalidInput(
            f"{name} is {value!r}; expected a whole number of {least} or more{nothing}"
        )


def check_share(name: str, value: object) -> None:
    """Raise `InvalidSettings` unless `value` is a number over 0 and under 1."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1:
        raise InvalidSettings(f"{name} is {value!r}; expected a share between 0 and 1")


def settings_in(knob: str, values: object) -> tuple[float, ...]:
    """Return each of `values` once, in order.

    Raises:
        InvalidSettings: there are none, or one is out of the range of the setting `knob`.
    """
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise InvalidSettings(f"values is {values!r}; expected numbers to try, such as (0.9, 0.95)")
    tried = tuple(values)
    if not tried:
        raise InvalidSettings("there are no values to try; expected one or more")
    for value in tried:
        if value is None:
            raise InvalidSettings(f"a value to try for {knob} is None; expected a number")
        # Before the first replay: the others may take minutes.
        Settings(threshold=value) if knob == "threshold" else Settings(max_wrong=value)
    return tuple(dict.fromkeys(tried))
