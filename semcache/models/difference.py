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
from typing import Literal, TypeAlias

import numpy as np
from pydantic import TypeAdapter, with_config
from typing_extensions import TypedDict

from semcache.canonical import JsonObject, dumps
from semcache.errors import InvalidJson, WeightsUnavailable
from semcache.models.weights import Matrix, Tensors
from semcache.process.imports import ensure_imported
from semcache.schemas import STRICT, Name, Sha256, Value, read

FOLDER = "embedder"
"""Folder in the directory of a cache that keeps its difference."""
FORMAT, VERSION = "semcache-difference", 1
MANIFEST, PREFIX = "manifest.json", "difference-"
DOWN, UP = ".down", ".up"
"""After the name of a matrix: the factor that is applied first, and the other one."""
ANEW = "run `semcache train` anew, or `semcache train --forget` to do without"

Cryption: TypeAlias = Callable[[bytes], bytes]
"""Encrypts what is written, or decrypts what is read; ValueError where that cannot be."""


@with_config(STRICT)
class _DifferenceManifestDoc(TypedDict):
    format: Literal["semcache-difference"]
    version: Literal[1]
    base: Name
    sha256: Sha256
    training: dict[str, Value]


_SCHEMA: TypeAdapter[_DifferenceManifestDoc] = TypeAdapter(_DifferenceManifestDoc)


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
        label = said["sha256"]
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
        found = cls(said["base"], content, said["training"])
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

    def added(self, tensors: Tensors) -> Tensors:
        """Return `tensors` with the difference added.

        Raises:
            WeightsUnavailable: its factors are not for these tensors.
        """
        ensure_imported("safetensors.numpy")
        from safetensors import SafetensorError  # noqa: PLC0415 - only who embeds pays for it
        from safetensors.numpy import load  # noqa: PLC0415 - the same

        try:
            factors: dict[str, Matrix] = load(self.content)
        except (SafetensorError, ValueError, KeyError, TypeError) as error:
            raise WeightsUnavailable(f"a difference cannot be added: {error}; {ANEW}") from error
        names = sorted({name.removesuffix(DOWN).removesuffix(UP) for name in factors})
        for name in names:
            _check_factors(
                name, tensors.get(name), factors.get(name + DOWN), factors.get(name + UP)
            )
        sums = {name: tensors[name] + factors[name + UP] @ factors[name + DOWN] for name in names}
        return tensors.replaced(sums)


def _check_factors(
    name: str, matrix: Matrix | None, down: Matrix | None, up: Matrix | None
) -> None:
    # NumPy would add a row to each row of a matrix, and make one of any size of two factors.
    if matrix is None or down is None or up is None:
        missing = "matrix" if matrix is None else "factor"
        raise WeightsUnavailable(
            f"a difference cannot be added: there is no {missing} of {name!r}; {ANEW}"
        )
    found = [(one.shape, one.dtype.name) for one in (up, down)]
    rank = down.shape[0] if down.ndim else 0
    shapes = [(matrix.shape[0], rank), (rank, *matrix.shape[1:])]
    if found != [(shape, "float32") for shape in shapes] or matrix.ndim != 2:
        raise WeightsUnavailable(
            f"a difference cannot be added: the factors of {name!r} are {found}; expected "
            f"{shapes} of float32; {ANEW}"
        )
    if not (np.isfinite(down).all() and np.isfinite(up).all()):
        raise WeightsUnavailable(
            f"a difference cannot be added: a factor of {name!r} is not finite; {ANEW}"
        )


def _file(label: str) -> str:
    # Each has a name of its own, so that a new manifest and a new file come into force at once.
    return f"{PREFIX}{label[:16]}.safetensors"


def _manifest(folder: Path) -> _DifferenceManifestDoc:
    file = folder / MANIFEST
    try:
        return read(_SCHEMA, file.read_bytes(), what=repr(str(file)))
    except (OSError, InvalidJson) as error:
        raise WeightsUnavailable(f"a difference cannot be read: {error}; {ANEW}") from error
