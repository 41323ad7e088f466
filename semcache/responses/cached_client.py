"""A drop-in for an `openai` client, or for the HTTP client below it: equal requests once."""

import importlib
import sys
from typing import TYPE_CHECKING, Any, TypeVar, cast

from semcache.errors import InvalidInput
from semcache.responses.cache import Responses
from semcache.responses.transport import AsyncCachedTransport, CachedTransport

if TYPE_CHECKING:
    from openai import AsyncOpenAI, OpenAI

C = TypeVar("C", bound="OpenAI | AsyncOpenAI")
H = TypeVar("H")

_LIBRARIES = ("httpx", "httpx2")
"""Packages with the HTTP clients that `openai` takes."""


def cached_openai(
    client: C, responses: Responses, *, group: str = "openai", ttl_s: float | None = None
) -> C:
    """Return a client like `client` whose equal requests are answered from `responses`.

    Answers are remembered where requests are sent, so it is all the same how they are asked for:
    `create`, `parse`, `stream`, `with_raw_response`, LangChain's `ChatOpenAI`. Remembered are chat
    completions, completions, responses and embeddings, streamed or not, of clients that wait and of
    those that are awaited; they share them. Everything else goes to the server: files, batches,
    audio, images, responses in the `background`.

    Kept is what came whole: no error, no answer without its end, no stream that broke off. Two
    requests are equal if all that could change the answer is: address and query, every header but
    for those that say how it is sent (such as `User-Agent`), the key, organization and project,
    defaults of the client included, and the body, in any spelling. Callers that ask the same at
    once make one call, but for streams. An answer from memory has the header `x-semcache: hit`.

    `extra_headers={"Cache-Control": "no-cache"}` takes nothing that is kept, and keeps the new
    answer instead; `"no-store"` keeps nothing either.

    Args:
        client: `openai.OpenAI` or `openai.AsyncOpenAI`, Azure's too; its retries, errors and HTTP
            client stay its own, and are closed with what is returned.
        responses: Where answers are kept.
        group: Label for `Responses.bust_group`.
        ttl_s: Seconds from its last use after which an answer is asked for anew; None: as
            `responses` has it.

    Raises:
        InvalidInput: `client` is something else, or its HTTP client has hooks of requests.
    """
    openai = sys.modules.get("openai")  # whoever has such a client has imported it
    if openai is None or not isinstance(client, openai.OpenAI | openai.AsyncOpenAI):
        raise InvalidInput(
            f"the client is of type {type(client).__name__}; expected openai.OpenAI or AsyncOpenAI"
        )
    # The client has no public name for what it sends by; it has had this one since 1.0.
    http: object = client._client  # noqa: SLF001
    cached: Any = cached_http(http, responses, group=group, ttl_s=ttl_s)
    return cast("C", client.with_options(http_client=cached))


def cached_http(
    http: H, responses: Responses, *, group: str = "openai", ttl_s: float | None = None
) -> H:
    """Return an HTTP client like `http` that sends equal requests of the OpenAI protocol once.

    For whoever makes the `openai` client: `ChatOpenAI(http_client=…, http_async_client=…)`. Its
    hooks of responses run for what is sent alone. See `cached_openai`.

    Raises:
        InvalidInput: `http` is no `Client` or `AsyncClient` of httpx or httpx2, or has hooks of
            requests: what they add is unknown when requests are compared.
    """
    library, kind = _library(http)
    given: Any = http
    if given.event_hooks["request"]:
        raise InvalidInput(
            "the HTTP client has hooks of requests, which would change requests after they are "
            "compared; let its `auth` or `headers` add what they add"
        )
    transport = (AsyncCachedTransport if kind == "AsyncClient" else CachedTransport)(
        http=given, library=library, responses=responses, group=group, ttl_s=ttl_s
    )
    # What the client adds to requests is added before they are compared.
    cached: H = getattr(library, kind)(
        transport=transport,
        auth=given.auth,
        base_url=given.base_url,
        cookies=given.cookies,
        follow_redirects=given.follow_redirects,
        headers=given.headers,
        max_redirects=given.max_redirects,
        params=given.params,
        timeout=given.timeout,
        trust_env=False,
    )
    return cached


def _library(http: object) -> tuple[Any, str]:
    """Return the package that an HTTP client is of, and the name of its class there."""
    for each in type(http).__mro__:
        package = each.__module__.partition(".")[0]
        if package in _LIBRARIES and each.__name__ in {"Client", "AsyncClient"}:
            return importlib.import_module(package), each.__name__
    raise InvalidInput(
        f"the HTTP client is of type {type(http).__name__}; expected a Client or AsyncClient of "
        f"{' or '.join(_LIBRARIES)}"
    )
