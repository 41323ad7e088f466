"""The tokenizer of BERT's uncased models, of which the default embedder is one.

Our own, though `tokenizers` does the same: that package brings the client of a model hub, 43 MB in
fourteen packages, to everybody. A test holds both to the same numbers; `docs/research.md` says
which other packages were tried.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import punctuation
from unicodedata import category, normalize

import numpy as np
import numpy.typing as npt

from semcache.errors import WeightsUnavailable

LONGEST_WORD = 100
"""Characters; a longer word is unknown."""
CONTINUED = "##"
"""Before a piece that goes on with a word."""
IDEOGRAPHS = (
    range(0x3400, 0x4DC0),
    range(0x4E00, 0xA000),
    range(0xF900, 0xFB00),
    range(0x20000, 0x2A6E0),
    range(0x2A700, 0x2CEB0),
    range(0x2F800, 0x2FA20),
)
"""Chinese characters, each a word of its own, as in `tokenization.py` of google-research/bert."""


@dataclass(frozen=True, slots=True)
class WordPiece:
    """Turns texts into the numbers of their word pieces. Safe from several threads."""

    numbers: Mapping[str, int]
    """Piece → number, [CLS], [SEP] and [UNK] among them."""
    special: re.Pattern[str]
    """What stands for itself in a text, such as [SEP]."""
    plain: "_PlainCharacters"

    @classmethod
    def read(cls, file: Path) -> "WordPiece":
        """Return the tokenizer of a `tokenizer.json`.

        Raises:
            WeightsUnavailable: the file cannot be read, or is of another kind of tokenizer.
        """
        try:
            said = json.loads(file.read_text(encoding="utf-8"))
            kinds = [said[part]["type"] for part in ("normalizer", "pre_tokenizer", "model")]
            numbers: dict[str, int] = said["model"]["vocab"]
            special = "|".join(re.escape(each["content"]) for each in said["added_tokens"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise WeightsUnavailable(
                f"the tokenizer {str(file)!r} cannot be read: {type(error).__name__}: {error}"
            ) from error
        if kinds != ["BertNormalizer", "BertPreTokenizer", "WordPiece"]:
            raise WeightsUnavailable(
                f"the tokenizer {str(file)!r} is {kinds}; expected that of an uncased BERT model"
            )
        return cls(numbers, re.compile(f"({special})"), _PlainCharacters())

    def encode(
        self, texts: Sequence[str], longest: int
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
        """Return numbers and mask, a row for each text and at most `longest` columns.

        A row begins with [CLS] and ends with [SEP]; after it numbers and mask are 0. A text of more
        pieces is cut before its [SEP].
        """
        rows = [self._numbers_of(text, longest) for text in texts]
        numbers = np.zeros((len(rows), max(map(len, rows))), dtype=np.int64)
        mask = np.zeros(numbers.shape, dtype=np.int32)
        for i, row in enumerate(rows):
            numbers[i, : len(row)] = row
            mask[i, : len(row)] = 1
        return numbers, mask

    def _numbers_of(self, text: str, longest: int) -> list[int]:
        found = [self.numbers["[CLS]"]]
        for i, part in enumerate(self.special.split(text)):
            if i % 2:
                found.append(self.numbers[part])
                continue
            for word in normalize("NFD", part).translate(self.plain).split():
                if len(found) >= longest:
                    break
                found += self._pieces(word)
        return [*found[: longest - 1], self.numbers["[SEP]"]]

    def _pieces(self, word: str) -> list[int]:
        """Return the longest piece that begins the word, the longest that goes on, and so on."""
        found: list[int] = []
        start = 0
        while start < len(word) <= LONGEST_WORD:
            before = CONTINUED if start else ""
            for end in range(len(word), start, -1):
                number = self.numbers.get(before + word[start:end])
                if number is not None:
                    break
            else:
                return [self.numbers["[UNK]"]]
            found.append(number)
            start = end
        return found or [self.numbers["[UNK]"]]


KEPT_CHARACTERS = 5_000
"""Of the million that there are, so that no prompts fill the memory."""


class _PlainCharacters(dict[int, str]):
    """Character → what stands for it in a word, worked out when it is first met."""

    def __missing__(self, code: int) -> str:
        plain = _plain(chr(code))
        if len(self) < KEPT_CHARACTERS:
            self[code] = plain
        return plain


def _plain(character: str) -> str:
    """Return a character of normal form D in lower case; with spaces around it if it stands alone.

    Accents and what is not printed are left out.
    """
    kind = category(character)
    if character in "\t\n\r" or kind[0] == "Z":
        return " "
    if kind in ("Cc", "Cf", "Co", "Mn") or character == "\N{REPLACEMENT CHARACTER}":
        return ""
    if character in punctuation or kind[0] == "P" or any(ord(character) in r for r in IDEOGRAPHS):
        return f" {character} "
    return character.lower()
