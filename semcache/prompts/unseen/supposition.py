"""Supposition: words that nobody used before are read as values, where a tenant's habits say so.

A prompt is taken for a chain of words and slots, each behind the one before it, and a slot for a
chain of words that look as values of its type do: a hidden semi-Markov model (Rabiner 1989, section
IV D) whose counts are `Habits`. The likeliest reading is the answer, and how much likelier it is
than all readings without a slot there (forward and backward sums) is how firmly it is believed.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from semcache.prompts.mentions import OPEN_KINDS, Mention
from semcache.prompts.template import slot_name
from semcache.prompts.unseen.habits import END, START, Habits, Kind
from semcache.prompts.unseen.word_shapes import Shape, ShapedWord, token_list

MAX_TOKENS = 120
"""Words and signs of the longest prompt in which anything is supposed."""
MAX_VALUE = 24
"""Words and signs that one supposed value may have."""
MAX_KINDS = 40
"""Slot types that are thought of: those used most."""

_SPELLED = math.log(1e-4)
"""What it takes to spell a word that nobody used before; the same in a value and outside."""
_CLOSED = math.log(1 / 40)
_SIGN = math.log(1 / 5)
_HEARD = 0.15
"""Share of the words of new values that templates use too."""
_NEVER = 1e-9
_NEW = "??"
"""Stands for a word that no template has."""
_ENDS = frozenset(".?!")
_CLOSING = frozenset(".?!,;:")
_BREAKS = frozenset('?!;:"')
_LAST_SIGNS = frozenset(").%+-")


class Supposed(NamedTuple):
    """A value that was supposed."""

    mention: Mention
    before: str
    """The token to its left; empty at the start."""
    odds: float
    """Log odds that these words, no more and no less, are a value of that type."""


class Supposition(NamedTuple):
    """A prompt read with what was supposed."""

    mentions: tuple[Mention, ...]
    """All mentions in order; those supposed have the source `supposed` and their words as value."""
    supposed: tuple[Supposed, ...]


def suppose(text: str, mentions: Sequence[Mention], habits: Habits) -> Supposition | None:
    """Return the likeliest reading of `text`; None if it is the one there is.

    `mentions` are what is known to be values. What recognizers and closed sets found stays what it
    is, or becomes a part of a longer value; a learned value may also turn out of another type.
    """
    pieces = _pieces(text, mentions)
    if pieces is None or not any(piece.strange for piece in pieces):
        return None
    with habits.lock:
        pieces = [piece.known_in(habits) for piece in pieces]
        if not any(piece.strange for piece in pieces):
            return None
        kinds = _open_kinds(habits)
        return _Lattice(text, pieces, habits, kinds).read() if kinds else None


def _open_kinds(habits: Habits) -> dict[str, Kind]:
    free = [kind for kind in habits.kinds if kind[1:-1] not in OPEN_KINDS]
    free.sort(key=lambda kind: (-habits.kinds[kind].uses, kind))
    return {kind: habits.kinds[kind] for kind in free[:MAX_KINDS]}


class _Piece(NamedTuple):
    """A token of the prompt, and the mention that it is part of."""

    token: ShapedWord
    opens: bool
    """Whether it begins a sentence, so that its capital says nothing."""
    mention: Mention | None
    begins: bool
    """Whether a mention begins here."""
    ends: bool
    """Whether a mention ends here."""
    strange: bool
    """Whether it may be a word of a value: nobody used it, or its capital sets it off."""
    heard: bool = False
    """Whether templates use it."""

    def known_in(self, habits: Habits) -> "_Piece":
        """Return it with what the templates say of it."""
        word, shape = self.token.word, self.token.shape
        heard = habits.uses(word) > 0
        capital = shape in {"capital", "upper", "title"} and not self.opens
        grammar = shape in {"closed", "title", "sign"} or (shape == "upper" and heard)
        strange = self.strange and (capital or not (heard or grammar))
        return self._replace(heard=heard, strange=strange)


def _pieces(text: str, mentions: Sequence[Mention]) -> list[_Piece] | None:
    """Return the tokens of `text`; None if they are too many."""
    if len(text) > 40 * MAX_TOKENS:
        return None
    pieces: list[_Piece] = []
    at = 0
    for mention in [*mentions, None]:
        end = len(text) if mention is None else mention.start
        for token in token_list(text, at, end):
            opens = not pieces or pieces[-1].token.word in _ENDS
            strange = token.shape != "sign" and token.word != "i"
            pieces.append(_Piece(token, opens, None, begins=False, ends=False, strange=strange))
        if mention is not None:
            tokens = token_list(text, mention.start, mention.end)
            for i, token in enumerate(tokens):
                begins, ends = i == 0, i == len(tokens) - 1
                piece = _Piece(token, False, mention, begins=begins, ends=ends, strange=False)
                pieces.append(piece)
            at = mention.end
    while pieces and pieces[-1].mention is None and pieces[-1].token.word in _CLOSING:
        pieces.pop()
    return pieces if pieces and len(pieces) <= MAX_TOKENS else None


class _Step(NamedTuple):
    """One way on from a token: over a word, a known mention, or a supposed value."""

    to: int
    symbol: str
    """What templates would have there: the word, `?` for one they never had, or the slot."""
    log: float
    """Log probability of the words, given the symbol."""
    mention: Mention | None = None
    supposed: bool = False


_Logs: TypeAlias = dict[str, float]
"""Symbol → log probability."""
_Bests: TypeAlias = dict[str, tuple[float, int, str, _Step | None]]
"""Symbol → log probability of the best way there, where its last step starts and from what."""


@dataclass(slots=True)
class _Lattice:
    """All readings of a prompt. A state is a position and the symbol to its left."""

    text: str
    pieces: Sequence[_Piece]
    habits: Habits
    kinds: dict[str, Kind]
    capitals: float = field(init=False)
    """How probable it is that a word of this prompt has a capital for no reason."""
    steps: list[list[_Step]] = field(init=False)
    behind: dict[tuple[str, str], float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.capitals = _careless(self.pieces)
        self.steps = [[] for _ in self.pieces]
        for at, piece in enumerate(self.pieces):
            self.steps[at] += self._plain(at, piece)
        for symbol, kind in self.kinds.items():
            self._add_values(symbol, kind)

    # Steps ---------------------------------------------------------------------------------

    def _plain(self, at: int, piece: _Piece) -> Iterator[_Step]:
        """Yield the step over a word, or over the mention that begins here."""
        if piece.mention is None:
            log = self._literal(piece)
            if not piece.heard:
                log += _SPELLED
            yield _Step(at + 1, piece.token.word if piece.heard else _NEW, log)
        elif piece.begins:
            mention = piece.mention
            symbol = f"<{slot_name(mention.kind)}>"
            kind = self.kinds.get(symbol)
            learned = mention.source == "learned" and kind is not None
            log = math.log(0.5 / max(1, len(kind.values))) if learned and kind else 0.0
            yield _Step(self._end_of(at), symbol, log, mention)

    def _end_of(self, at: int) -> int:
        while not self.pieces[at].ends:
            at += 1
        return at + 1

    def _literal(self, piece: _Piece) -> float:
        shape = piece.token.shape
        if shape in {"sign", "digit"} or piece.opens or piece.token.word == "i":
            return 0.0
        set_off = shape in {"capital", "upper", "title"}
        return math.log(self.capitals if set_off else 1 - self.capitals)

    def _add_values(self, symbol: str, kind: Kind) -> None:
        """Add the steps over values of one type."""
        uses, words = kind.uses, kind.words.total()
        inner = max(0, words - uses)  # words of a value may be none, in entries of others' making
        last = math.log((uses + 1) / (words + 2))
        on = math.log((inner + 1) / (words + 2))
        share_new = kind.share_new
        seen = 1 - (len(kind.words) + 1) / (words + 2)
        first = [self._word(i, kind, None, seen, words) for i in range(len(self.pieces))]
        inside = [0.0] + [
            self._word(i, kind, self.pieces[i - 1], seen, words) for i in range(1, len(self.pieces))
        ]
        for start in range(len(self.pieces)):
            if not self._may_begin(start):
                continue
            log, strange = math.log(share_new) + last, False
            for at in range(start, min(len(self.pieces), start + MAX_VALUE)):
                piece = self.pieces[at]
                if piece.token.word in _BREAKS or (
                    piece.mention is not None and piece.mention.source in {"given", "closed"}
                ):
                    break
                log += first[at] if at == start else inside[at] + on
                strange = strange or piece.strange
                if self._may_end(at):
                    self._add_value(start, at + 1, symbol, kind, log, strange=strange)

    def _add_value(
        self, start: int, end: int, symbol: str, kind: Kind, log: float, *, strange: bool
    ) -> None:
        first, mention = self.pieces[start], self.pieces[start].mention
        if mention is not None and first.begins and self._end_of(start) == end:
            if mention.source != "learned" or symbol == f"<{slot_name(mention.kind)}>":
                return
            known = kind.values[" ".join(p.token.word for p in self.pieces[start:end])]
            if known:
                log = max(log, math.log((1 - kind.share_new) * known / kind.uses))
        elif not strange:
            return
        self.steps[start].append(_Step(end, symbol, log, supposed=True))

    def _may_begin(self, at: int) -> bool:
        piece = self.pieces[at]
        if piece.mention is not None:
            return piece.begins and piece.mention.kind != "quoted"
        return piece.token.shape not in {"sign", "closed"}

    def _may_end(self, at: int) -> bool:
        piece = self.pieces[at]
        if piece.mention is not None:
            return piece.ends
        if piece.token.shape == "sign":
            return piece.token.word in _LAST_SIGNS
        return piece.token.shape != "closed"

    def _word(self, at: int, kind: Kind, left: _Piece | None, seen: float, words: int) -> float:
        """Return the log probability of a token in a value of `kind`, behind `left`."""
        piece = self.pieces[at]
        shape, word = piece.token.shape, piece.token.word
        behind = None if left is None else left.token.shape
        looks = self.habits.looks(kind, shape, behind)
        if piece.opens and shape in {"capital", "title"}:
            plain: Shape = "lower" if shape == "capital" else "closed"
            looks += self.habits.looks(kind, plain, behind)
        if shape == "sign":
            return math.log(looks) + _SIGN
        if shape in {"closed", "title"}:
            return math.log(looks) + _CLOSED
        own = seen * kind.words[word] / words if words else 0.0
        if piece.heard:
            new = (1 - seen) * _HEARD / max(200, self.habits.size)
        else:
            new = (1 - seen) * (1 - _HEARD) * math.exp(_SPELLED)
        return math.log(looks * (own + new))

    # Readings ------------------------------------------------------------------------------

    def read(self) -> Supposition | None:
        """Return the likeliest reading, if it supposes anything."""
        sums, best = self._forward()
        rests = self._backward(sums)
        total = rests[0][START]
        found: list[Mention] = []
        supposed: list[Supposed] = []
        for at, left, step in self._likeliest(best):
            if step.mention is not None:
                found.append(step.mention)
            elif step.supposed:
                into = [log + self._behind(step.symbol, known) for known, log in sums[at].items()]
                share = _sum(into) + step.log + rests[step.to][step.symbol] - total
                mention = self._mention(at, step)
                before = self.pieces[at - 1].token.word if left == _NEW else left
                found.append(mention)
                supposed.append(Supposed(mention, "" if left == START else before, _odds(share)))
        return Supposition(tuple(found), tuple(supposed)) if supposed else None

    def _mention(self, at: int, step: _Step) -> Mention:
        start, end = self.pieces[at].token.start, self.pieces[step.to - 1].token.end
        words = self.text[start:end]
        return Mention(start, end, words, step.symbol[1:-1], words, "supposed")

    def _behind(self, symbol: str, left: str) -> float:
        """Return the log probability of `symbol` behind `left`."""
        known = self.behind.get((symbol, left))
        if known is None:
            habits = self.habits
            share = habits.follows_new(left) if symbol == _NEW else habits.follows(symbol, left)
            known = self.behind[symbol, left] = math.log(max(share, _NEVER))
        return known

    def _forward(self) -> tuple[list[_Logs], list[_Bests]]:
        """Return for each position, by symbol: the sum of the ways there, and the best of them."""
        sums: list[_Logs] = [{} for _ in range(len(self.pieces) + 1)]
        best: list[_Bests] = [{} for _ in sums]
        sums[0][START] = 0.0
        best[0][START] = (0.0, 0, "", None)
        for at, steps in enumerate(self.steps):
            for step in steps if sums[at] else ():
                ways = [(left, self._behind(step.symbol, left) + step.log) for left in sums[at]]
                more = _sum([sums[at][left] + log for left, log in ways])
                so_far = sums[step.to].get(step.symbol)
                sums[step.to][step.symbol] = more if so_far is None else _sum([so_far, more])
                log, left = max((best[at][left][0] + log, left) for left, log in ways)
                if step.symbol not in best[step.to] or log > best[step.to][step.symbol][0]:
                    best[step.to][step.symbol] = (log, at, left, step)
        return sums, best

    def _backward(self, sums: Sequence[_Logs]) -> list[_Logs]:
        """Return for each position, by symbol: the sum of the ways from there to the end."""
        rests: list[_Logs] = [{} for _ in sums]
        rests[-1] = {symbol: self._behind(END, symbol) for symbol in sums[-1]}
        for at in range(len(self.pieces) - 1, -1, -1):
            ahead = [
                (step.symbol, step.log + rests[step.to][step.symbol]) for step in self.steps[at]
            ]
            if ahead:
                for left in sums[at]:
                    logs = [self._behind(symbol, left) + log for symbol, log in ahead]
                    rests[at][left] = _sum(logs)
        return rests

    def _likeliest(self, best: Sequence[_Bests]) -> list[tuple[int, str, _Step]]:
        """Return the steps of the best way, each with where it starts and the symbol behind it."""
        last = best[-1]
        symbol = max(last, key=lambda each: last[each][0] + self._behind(END, each))
        at = len(self.pieces)
        path = []
        while at:
            _, start, left, step = best[at][symbol]
            assert step is not None  # noqa: S101 - only the start has none
            path.append((start, left, step))
            at, symbol = start, left
        return path[::-1]


def _careless(pieces: Sequence[_Piece]) -> float:
    """Return how probable a capital without a reason is, by the grammar words inside sentences.

    One of them with a capital may belong to a name; where most have one, capitals say nothing.
    """
    inside = [
        piece.token.shape == "title"
        for piece in pieces
        if piece.token.shape in {"closed", "title"} and not piece.opens and piece.mention is None
    ]
    share = (sum(inside) + 0.05) / (len(inside) + 1)
    return min(0.9, max(0.02, 2 * share * share))


def _sum(logs: Sequence[float]) -> float:
    """Return the logarithm of the sum of what `logs` are the logarithms of."""
    if len(logs) == 1:
        return logs[0]
    top = max(logs)
    return top + math.log(math.fsum(math.exp(log - top) for log in logs))


def _odds(share: float) -> float:
    """Return the log odds of a log probability, cut off at one in a thousand."""
    p = min(0.999, max(0.001, math.exp(min(0.0, share))))
    return math.log(p / (1 - p))
