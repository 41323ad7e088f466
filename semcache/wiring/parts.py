"""Parts that a caller brings: each is of the kind that is asked for, or an error says which."""

from collections.abc import Callable, Collection

from semcache.catalog.catalog import Catalog
from semcache.errors import InvalidSettings
from semcache.settings import Settings


def check_parts(
    *,
    catalog: object = None,
    embedder: object = None,
    model: object = None,
    observer: object = None,
    redact: object = None,
    settings: object = None,
    verifier: object = None,
    needed: Collection[str] = (),
) -> None:
    """Return if each is of its kind, or None where it is not `needed`.

    Raises:
        InvalidSettings: one is not.
    """
    for name, part, fits, expected in (
        ("catalog", catalog, _is_catalog, "a Catalog, as `catalog_from(functions)` makes one"),
        ("embedder", embedder, _embeds, "an Embedder such as `SentenceTransformersEmbedder(NAME)`"),
        ("model", model, _answers, "a Model such as `OpenAIModel(NAME)`"),
        ("observer", observer, callable, "something to call with each event"),
        ("redact", redact, callable, "a function from text to text"),
        ("settings", settings, _settles, "Settings"),
        ("verifier", verifier, _verifies, "a Verifier such as `ModelVerifier(model)`"),
    ):
        check: Callable[[object], bool] = fits
        if (part is not None or name in needed) and not check(part):
            raise InvalidSettings(f"{name} is {part!r}; expected {expected}")


def _is_catalog(part: object) -> bool:
    return isinstance(part, Catalog)


def _settles(part: object) -> bool:
    return isinstance(part, Settings)


def _embeds(part: object) -> bool:
    return callable(getattr(part, "embed", None)) and hasattr(part, "fingerprint")


def _answers(part: object) -> bool:
    return callable(getattr(part, "complete", None)) and hasattr(part, "fingerprint")


def _verifies(part: object) -> bool:
    return callable(getattr(part, "verify", None))
