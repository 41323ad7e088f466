"""Words of English: singular forms, and the closed classes that matching leans on.

The sets hold closed-class words of general English, the few hundred that a grammar lists. None
holds a noun of any domain: those come from a catalog, a vocabulary or the tenant's own prompts.
"""

from semcache.process.memo import memoized


def _words(listed: str) -> frozenset[str]:
    return frozenset(listed.split())


NEGATION = _words(
    "no not never none neither nor nobody nothing nowhere cannot without except excepting "
    "excluding exclude excludes excluded besides minus lacking lack lacks missing unless "
    "barring non"
)
"""Words that turn a condition round; two prompts that differ in one never share a plan."""

COMPARISON = _words(
    "more less fewer greater larger bigger smaller higher lower longer shorter older younger "
    "newer cheaper over under above below beyond exceed exceeds exceeding exceeded between "
    "within than equal equals exactly least most maximum minimum max min same different "
    "outside around approximately about nearly almost < > <= >= = == != ≤ ≥ ≠"
)
"""Words and signs that say how a value is compared."""

DIRECTION = _words(
    "before after since until till prior following during up down upward downward forward "
    "backward increase increases increased increasing decrease decreases decreased decreasing "
    "rise rises rose rising fall falls fell falling grow grows grew growing shrink shrinks "
    "shrank incoming outgoing inbound outbound into onto out off upper earlier later past ago"
)
"""Words that say which way: in time, in space, up or down."""

AGGREGATION = _words(
    "total totals sum sums average averages avg mean median mode count counts number numbers "
    "many much maximum minimum max min distinct unique different percentage percent "
    "proportion share ratio rate variance deviation cumulative overall combined per each "
    "every"
)
"""Words that say how many values become one."""

ORDER = _words(
    "top bottom first last latest earliest newest oldest recent highest lowest largest "
    "smallest biggest greatest fewest best worst longest shortest cheapest most least "
    "ascending descending asc desc alphabetical alphabetically reverse reversed sorted "
    "ordered ranked rank sort order next previous second final initial"
)
"""Words that pick an end of a list or give it an order."""

SCOPE = _words(
    "all any only just solely every each both either some entire whole also too even still "
    "yet already again else other another such exclusively"
)
"""Words that widen or narrow what is asked about."""

ROLES = _words(
    "from to by for with of between via through into onto against at in on as per toward "
    "towards upon across among along behind beside near under over"
)
"""Prepositions that say which part a value plays: `from` Boston `to` Denver."""

CONJUNCTIONS = _words(
    "and or but nor if then unless whether either so because while although though otherwise "
    "plus & |"
)
"""Words that join conditions; `and` for `or` is another question."""

QUANTIFIERS = _words(
    "all any some many few several much most none each every half both enough lot lots couple"
)
"""Words for how much of something, without a number."""

ARTICLES = _words("a an the this that these those")
"""Articles and demonstratives."""

PRONOUNS = _words(
    "i me my mine myself we us our ours you your yours he him his she her hers it its they "
    "them their theirs themselves itself someone somebody anyone anybody everyone everybody "
    "something anything everything one ones there here whom whose"
)
"""Words that stand for a thing named elsewhere, or for nobody in particular."""

AUXILIARIES = _words(
    "am is are was were be been being do does did doing done have has had having will would "
    "shall should can could may might must ought need needs let lets"
)
"""Verbs that only carry tense, mood or a copula."""

QUESTIONS = _words("what which who whom whose where when why how")
"""Question words."""

PREPOSITIONS = _words("of in on at to for from by with as about into per via through")
"""Prepositions that alone add no condition to the noun that follows."""

FUNCTION_WORDS = ARTICLES | PRONOUNS | AUXILIARIES | QUESTIONS | PREPOSITIONS
"""Words that a schema need not account for; negation, comparison, conjunctions are not here."""

POLITENESS = _words(
    "please pls plz kindly thanks thank thx hi hello hey dear ok okay sorry want wants wanted "
    "wish like love wondering wonder help able possible quick quickly now well yes yeah sure "
    "great nice cheers"
)
"""Words of courtesy and of wanting, which change nothing about what is asked."""

REQUESTS = _words(
    "show list give tell find get display return retrieve fetch provide print present see "
    "know look bring pull view report"
)
"""Verbs that ask to be shown something; they are interchangeable more often than not."""

MEANING = (
    NEGATION
    | COMPARISON
    | DIRECTION
    | AGGREGATION
    | ORDER
    | SCOPE
    | ROLES
    | CONJUNCTIONS
    | QUANTIFIERS
)
"""Closed-class words whose presence, absence or exchange can change what a plan must do."""

CLOSED_CLASS = FUNCTION_WORDS | MEANING | POLITENESS | REQUESTS
"""Every word of this page; none of them alone is taken for a value."""


def is_grammar(text: str, start: int, end: int) -> bool:
    """Return whether the words of the span do their work in the sentence rather than name a value.

    That is any closed-class word, unless capitals set it off: "IT" and "Other" inside a text are
    names. At the start of a text, or in one all in capitals, they say nothing.
    """
    words = text[start:end]
    if words.lower() not in CLOSED_CLASS:
        return False
    return start == 0 or words.islower() or text.isupper()


_IRREGULAR = {
    "people": "person", "men": "man", "women": "woman", "children": "child", "feet": "foot",
    "teeth": "tooth", "mice": "mouse", "geese": "goose", "indices": "index", "vertices": "vertex",
    "matrices": "matrix", "criteria": "criterion",
    "phenomena": "phenomenon", "analyses": "analysis",
    "bases": "base", "crises": "crisis", "lives": "life", "wives": "wife", "knives": "knife",
    "leaves": "leaf", "shelves": "shelf", "halves": "half", "wolves": "wolf", "thieves": "thief",
    "loaves": "loaf", "calves": "calf", "shoes": "shoe", "ids": "id", "ads": "ad",
}  # fmt: skip
_UNCHANGED = CLOSED_CLASS | _words(
    "news series species lens gas bus plus versus perhaps always sometimes was has does texas "
    "kansas arkansas dallas paris christmas mathematics physics economics politics"
)
_SOFT_IES = _words("movies cookies calories zombies rookies pies ties dies lies selfies")


@memoized(10_000)
def singular(word: str) -> str:
    """Return the singular of a lower-case English noun; anything else comes back unchanged.

    By the spelling rules of English and a short list of irregular nouns; a rare noun may lose a
    letter too many, but always the same one.
    """
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if len(word) <= 3 or not word.endswith("s") or word in _UNCHANGED:
        return word
    if word.endswith(("ss", "us", "is")):
        return word
    if word.endswith("ies"):
        return word[:-1] if word in _SOFT_IES else word[:-3] + "y"
    return word[:-2] if _takes_es(word) else word[:-1]


def _takes_es(word: str) -> bool:
    if word.endswith("uses"):
        return not word.endswith(("auses", "ouses")) and len(word) > 4
    return word.endswith(("sses", "shes", "ches", "xes", "zzes", "oes"))
