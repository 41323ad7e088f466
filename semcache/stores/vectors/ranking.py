"""What a usable vector is, and which of two neighbors comes first."""

from collections.abc import Sequence

import numpy as np

from semcache.errors import InvalidVector
from semcache.ports import Neighbor, Vector, Vectors


def checked_vector(vector: object, dimension: int | None) -> Vector:
    """Return `vector` as a contiguous float32 array of shape `(dimension,)`; None: any dimension.

    Raises:
        InvalidVector: not an array of floats, another shape or dimension, or not finite.
    """
    if not isinstance(vector, np.ndarray) or vector.dtype.kind != "f":
        raise InvalidVector(f"a vector is {_name(vector)}; expected a float32 array (dim,)")
    if vector.ndim != 1 or not len(vector):
        raise InvalidVector(f"a vector has shape {vector.shape}; expected (dim,)")
    if dimension is not None and len(vector) != dimension:
        raise InvalidVector(
            f"a vector has {len(vector)} dimensions; the index has {dimension}; "
            "an index takes the vectors of one embedder"
        )
    row = np.ascontiguousarray(vector, dtype=np.float32)
    if not np.isfinite(row).all():
        raise InvalidVector("a vector holds NaN or infinity; expected finite numbers")
    return row


def _name(value: object) -> str:
    return f"of dtype {value.dtype}" if isinstance(value, np.ndarray) else type(value).__name__


def ranked(ids: Sequence[str], rows: Vectors, vector: Vector) -> list[Neighbor]:
    """Return the candidates `ids` with vectors `rows`, nearest first.

    Scores are computed again, row by row in float64: a matrix product rounds a row differently by
    where it stands, so equal vectors would come out unequal and ties would not be ties.
    """
    scores = (rows * vector.astype(np.float64)).sum(axis=1)
    # Two plain passes: `clip` takes ten times as long for so few.
    behind = (-np.minimum(np.maximum(scores, -1.0), 1.0)).tolist()
    return [Neighbor(known, -far) for far, known in sorted(zip(behind, ids, strict=True))]
