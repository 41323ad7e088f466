"""A log of prompts in a jargon that no public weights know: one word of each says its plan."""

import random

from semcache.explore.streams import Row
from tests.calling import calling

PLANS = {
    "kestrel": "open", "heron": "open", "plover": "close", "dunlin": "close",
    "marten": "report", "weasel": "report", "barbel": "cancel", "grayling": "cancel",
    "sorrel": "renew", "yarrow": "renew", "basalt": "archive", "gabbro": "archive",
    "topsail": "assign", "mizzen": "assign", "ochre": "merge", "umber": "merge",
}  # fmt: skip
AROUND = (
    "harbor customer quickly paper morning invoice garden office winter number silver letter "
    "market window river season bottle engine village station"
).split()


def jargon(count: int) -> list[Row]:
    """Return so many prompts: a word that says the plan among five that say nothing."""
    chance = random.Random(7)
    rows = []
    for n in range(count):
        word = chance.choice(list(PLANS))
        words = chance.sample(AROUND, 5)
        words.insert(chance.randrange(6), word)
        rows.append(Row(str(n), "acme", " ".join(words), (), calling(PLANS[word])))
    return rows
