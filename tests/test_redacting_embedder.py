from semcache.testing import HashEmbedder
from semcache.wiring.models import RedactingEmbedder


def test_the_embedder_behind_is_shown_what_the_hook_leaves() -> None:
    behind = HashEmbedder()
    embedder = RedactingEmbedder(behind, lambda text: text.replace("4711", "[pin]"))
    assert embedder.embed(["my pin is 4711", "sales"]).shape == (2, 64)
    assert behind.texts == ["my pin is [pin]", "sales"]
    assert embedder.fingerprint == behind.fingerprint
