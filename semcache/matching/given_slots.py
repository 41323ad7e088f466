"""Slots of given values: what is no matter of them when two templates are compared.

The caller says what they are, whatever they look like in the prompt. What was found beside them
counts; and a value whose words one side does not know may be of the other side's own kind there.
"""

from collections import Counter

from semcache.prompts.parameter import name_key
from semcache.prompts.template import TemplateText
from semcache.prompts.tokens import SLOT


def own_agree(mine: TemplateText, its: TemplateText) -> bool:
    """Return whether two templates have slots of the same kinds beside those of given values."""
    kinds, others = _own_kinds(mine), _own_kinds(its)
    if kinds == others:
        return True
    own, other = Counter(kinds), Counter(others)
    extra, missing = own - other, other - own
    # A kind of which some are in doubt must not stand for itself too.
    if (extra.keys() & other.keys()) or (missing.keys() & own.keys()):
        return False
    return extra <= _unplaced(its, mine) and missing <= _unplaced(mine, its)


def _own_kinds(template: TemplateText) -> list[str]:
    return sorted([slot.kind for slot in template.slots if not slot.name])


def _unplaced(there: TemplateText, here: TemplateText) -> Counter[str]:
    """Return the kinds of the given values whose words are known `there` and not `here`."""
    known = {name_key(slot.name) for slot in here.slots}
    return Counter(s.kind for s in there.slots if s.name and name_key(s.name) not in known)


def without_slots(template: TemplateText, names: set[str]) -> TemplateText:
    """Return `template` without the slots of the given values with these names."""
    if not names:
        return template
    text = SLOT.sub(lambda slot: "" if slot[0][1:-1] in names else slot[0], template.text)
    kept = [slot for slot in template.slots if not slot.name or name_key(slot.name) not in names]
    return TemplateText(" ".join(text.split()), tuple(kept))
