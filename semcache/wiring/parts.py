"""Parts that a caller brings: each is of the kind that is asked for, or an error says which."""

from collections.abc import Callable

from semcache.catalog.catalog import Catalog
from semcache.errors import InvalidSettings


def check_parts(
    *,
    catalog: object = None,
    embedder: object = None,
    observer: object = None,
    redact: object = None,
    verifier: object = None,
) -> None:
    """Return if each is None or of its kind.

    Raises:
        InvalidSettings: one is not.
    """
    for name, part, fits, expected in (
        ("catalog", catalog, _is_catalog, "a Catalog, as `catalog_from(functions)` makes one"),
        ("embedder", embedder, _embeds, "an Embedder such as `SentenceTransformersEmbedder(NAME)`"),
        ("observer", observer, callable, "something to call with each event"),
        ("redact", redact, callable, "a function from text to text"),
        ("verifier", verifier, _verifies, "a Verifier such as `ModelVerifier(model)`"),
    ):
        check: Callable[[object], bool] = fits
        if part is not None and not check(part):
            raise InvalidSettings(f"{name} is {part!r}; expected {expected}")


def _is_catalog(part: object) -> bool:
    return isinstance(part, Catalog)


def _embeds(part: object) -> bool:
    return callable(getattr(part, "embed", None)) and hasattr(part, "fingerprint")


def _verifies(part: object) -> bool:
    return callable(getattr(part, "verify", None))
