"""A low-rank difference of embedding weights: what `semcache train` adds to the default ones.

To a matrix W of the layers comes U D, where D has a few rows and U as many columns (LoRA, Hu et al.
2021). That is a sixtieth of the weights. It is added when they are loaded, so that embedding takes
no longer than before and needs no torch.

    FOLDER/manifest.json                  whose difference it is, its hash, how it was trained
    FOLDER/difference-….safetensors       `<matrix>.down` and `<matrix>.up`, fp32
"""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from semcache.canonical import JsonObject, as_object, dumps, loads
from semcache.errors import InvalidJson, WeightsUnavailable
from semcache.models.weights import Matrix

FOLDER = "embedder"
"""Folder in the directory of a cache that keeps its difference."""
FORMAT, VERSION = "semcache-difference", 1
MANIFEST, PREFIX = "manifest.json", "difference-"
DOWN, UP = ".down", ".up"
"""After the name of a matrix: the factor that is applied first, and the other one."""
ANEW = "run `semcache train` anew, or `semcache train --forget` to do without"

Cryption: TypeAlias = Callable[[bytes], bytes]
"""Encrypts what is written, or decrypts what is read; ValueError where that cannot be."""


@dataclass(frozen=True, slots=True)
class LowRankDifference:
    """A difference for certain weights. Immutable."""

    base: str
    """Name and hash of the weights that it is for, as in a fingerprint."""
    content: bytes = field(repr=False)
    """Its factors in the form of safetensors."""
    training: JsonObject = field(default_factory=dict)
    """What it was trained on and how it was judged, for people."""

    @classmethod
    def of(
        cls, base: str, factors: Mapping[str, Matrix], training: JsonObject
    ) -> "LowRankDifference":
        """Return the difference with these factors, by names as in the module's docstring."""
        from safetensors.numpy import save  # noqa: PLC0415 - only who trains pays for it

        return cls(base, save(dict(factors)), training)

    @property
    def label(self) -> str:
        """The hash of its factors, for a fingerprint."""
        return hashlib.sha256(self.content).hexdigest()

    # Files ---------------------------------------------------------------------------------

    def files(self, *, encrypt: Cryption | None = None) -> dict[str, bytes]:
        """Return name → content of its files, the manifest last; `encrypt`: None for no key."""
        manifest: JsonObject = {
            "format": FORMAT,
            "version": VERSION,
            "base": self.base,
            "sha256": self.label,
            "training": self.training,
        }
        content = self.content if encrypt is None else encrypt(self.content)
        return {_file(self.label): content, MANIFEST: f"{dumps(manifest)}\n".encode()}

    @classmethod
    def read(cls, folder: Path, *, decrypt: Cryption | None = None) -> "LowRankDifference":
        """Return the difference in `folder`, checked by its hash; `decrypt`: None for no key.

        Raises:
            WeightsUnavailable: a file is missing, or is not what was written.
        """
        said = _manifest(folder)
        label = str(said.get("sha256"))
        try:
            content = (folder / _file(label)).read_bytes()
            content = content if decrypt is None else decrypt(content)
        except OSError as error:
            raise WeightsUnavailable(f"a difference cannot be read: {error}; {ANEW}") from error
        except ValueError as error:
            raise WeightsUnavailable(
                f"the difference in {str(folder)!r} was written with another encryption key, or "
                f"with none; {ANEW}"
            ) from error
        found = cls(str(said.get("base")), content, as_object(said.get("training")))
        if found.label != label:
            raise WeightsUnavailable(
                f"the difference in {str(folder)!r} has SHA-256 {found.label}; expected {label}: "
                f"it was damaged, or is encrypted and no key is given; {ANEW}"
            )
        return found

    # Use -----------------------------------------------------------------------------------

    def check_base(self, base: str) -> None:
        """Return if it is for the weights called `base`.

        Raises:
            WeightsUnavailable: it is for others.
        """
        if base != self.base:
            raise WeightsUnavailable(
                f"a difference is for the weights {self.base!r}, and the embedder has {base!r}; "
                f"{ANEW}"
            )

    def added(self, tensors: Mapping[str, Matrix]) -> dict[str, Matrix]:
        """Return `tensors` with the difference added.

        Raises:
            WeightsUnavailable: its factors are not for these tensors.
        """
        from safetensors import SafetensorError  # noqa: PLC0415 - only who embeds pays for it
        from safetensors.numpy import load  # noqa: PLC0415 - the same

        try:
            factors: dict[str, Matrix] = load(self.content)
            names = {name.removesuffix(DOWN) for name in factors if name.endswith(DOWN)}
            sums = {
                name: tensors[name] + factors[name + UP] @ factors[name + DOWN] for name in names
            }
        except (SafetensorError, KeyError, ValueError) as error:
            raise WeightsUnavailable(f"a difference cannot be added: {error}; {ANEW}") from error
        return {**tensors, **sums}


def _file(label: str) -> str:
    # Each has a name of its own, so that a new manifest and a new file come into force at once.
    return f"{PREFIX}{label[:16]}.safetensors"


def _manifest(folder: Path) -> JsonObject:
    name = repr(str(folder / MANIFEST))
    try:
        said = as_object(loads((folder / MANIFEST).read_text(encoding="utf-8")))
    except OSError as error:
        raise WeightsUnavailable(f"a difference cannot be read: {error}; {ANEW}") from error
    except (UnicodeDecodeError, InvalidJson) as error:
        raise WeightsUnavailable(f"{name} is no manifest: {error}; {ANEW}") from error
    if (said.get("format"), said.get("version")) != (FORMAT, VERSION):
        raise WeightsUnavailable(
            f"{name} has format {said.get('format')!r}, version {said.get('version')!r}; expected "
            f"{FORMAT!r}, {VERSION}: {ANEW}"
        )
    return said
