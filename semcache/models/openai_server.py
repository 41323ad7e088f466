"""Where requests of the OpenAI protocol go: one client, one deadline a call, errors as ours."""

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

from semcache.errors import (
    InvalidSettings,
    MissingExtra,
    ModelError,
    ModelRejected,
    ModelUnavailable,
)
from semcache.process.forks import Lock
from semcache.process.imports import ensure_imported
from semcache.secrecy import remember, without

if TYPE_CHECKING:
    from openai import AsyncOpenAI

DEFAULT_BASE_URL = "https://api.openai.com/v1"
CLOSING_S = 5.0
"""Seconds that closing connections may take; then they are left to the end of the process."""

T = TypeVar("T")


class OpenAIServer:
    """A server that speaks the OpenAI protocol. Safe from several threads, and in forked children.

    Requests are awaited in an event loop of their own: only there can a call be ended at a deadline
    whatever it is at, tries, delays and an answer that drips included.
    """

    def __init__(
        self, *, api_key: str | None, base_url: str | None, timeout_s: float, max_retries: int
    ) -> None:
        """Keep what is asked for; nothing is imported or connected before the first `ask`.

        Raises:
            InvalidSettings: `base_url` is no http address, a number is out of range.
            MissingExtra: `semcache-plans[openai]` is not installed.
        """
        check_client()
        if timeout_s <= 0 or max_retries < 0:
            raise InvalidSettings(
                f"timeout_s is {timeout_s!r} and max_retries is {max_retries!r}; "
                "expected more than 0 and at least 0"
            )
        self._base_url = base_url or DEFAULT_BASE_URL
        self.address = _address(self._base_url)
        """Scheme, host and path: names the server and holds no secret."""
        self._api_key = api_key
        self._key_needed = not base_url
        self._timeout_s = timeout_s
        self._max_retries = max_retries
        self._lock = Lock()
        self._opened: tuple[int, AsyncOpenAI] | None = None
        """The process that opened it, and the client: a child has neither loop nor connections."""
        remember(api_key or "", urlsplit(self._base_url).password or "")

    def ask(self, question: "Callable[[AsyncOpenAI], Awaitable[T]]") -> T:
        """Return what `question` gives, within the time that one call may take.

        Raises:
            ModelUnavailable: unreachable, overloaded, too late or not understood, after all tries.
            ModelRejected: the request or its key is not accepted.
        """
        ensure_imported("openai")
        import openai  # noqa: PLC0415 - takes half a second

        client = self._connected()

        async def within() -> T:
            async with asyncio.timeout(self._timeout_s):
                return await question(client)

        future = asyncio.run_coroutine_threadsafe(within(), _loop(os.getpid()))
        try:
            return future.result()
        except TimeoutError as error:
            raise ModelUnavailable(
                f"{self.address!r} timed out: no whole answer within {self._timeout_s:g} s; give "
                "it longer by `model_timeout_s`",
                code="timeout",
            ) from error
        except openai.OpenAIError as error:
            # The words come from the server, which may repeat what it was sent.
            text = without(str(error), *([self._api_key] if self._api_key else []))
            cause = error if text == str(error) else None
            status, code = _told(error)
            raise _kind(error)(f"{self.address!r}: {text}", status=status, code=code) from cause
        except BaseException:
            future.cancel()  # Ctrl-C ends the request too
            raise

    def close(self) -> None:
        """Close the connections; a later call opens new ones."""
        with self._lock:
            opened, self._opened = self._opened, None
        if opened is not None and opened[0] == os.getpid():
            closed = asyncio.run_coroutine_threadsafe(opened[1].close(), _loop(os.getpid()))
            closed.exception(CLOSING_S)

    def _connected(self) -> "AsyncOpenAI":
        if self._key_needed and not self._api_key:
            raise ModelRejected(
                f"there is no API key for {self.address!r}; expected `api_key`, "
                "or the `base_url` of a compatible server"
            )
        from openai import AsyncOpenAI  # noqa: PLC0415 - takes half a second

        with self._lock:
            if self._opened is None or self._opened[0] != os.getpid():
                # Both are always given, for the client would look for them in the environment.
                client = AsyncOpenAI(
                    api_key=self._api_key or "none",
                    base_url=self._base_url,
                    timeout=self._timeout_s,
                    max_retries=self._max_retries,
                )
                self._opened = os.getpid(), client
            return self._opened[1]


def check_client() -> None:
    """Check that the client of the OpenAI protocol is installed; it is not imported.

    Raises:
        MissingExtra: it is not.
    """
    if find_spec("openai") is None:
        raise MissingExtra("a model needs the package `openai`; install `semcache-plans[openai]`")


@cache
def _loop(process: int) -> asyncio.AbstractEventLoop:  # noqa: ARG001 - a child has one of its own
    """Return the loop in which the requests of a process are awaited."""
    loop = asyncio.new_event_loop()
    # A daemon, so that a server that hangs does not keep the process from ending.
    threading.Thread(target=loop.run_forever, name="semcache-models", daemon=True).start()
    return loop


def _kind(error: Exception) -> type[ModelError]:
    """Return what an error of the client is to us: whether another try may work."""
    import openai  # noqa: PLC0415 - loaded by whoever raised

    match error:
        case openai.RateLimitError(code="insufficient_quota"):
            return ModelRejected
        case openai.APIConnectionError() | openai.RateLimitError() | openai.InternalServerError():
            return ModelUnavailable
        case openai.ConflictError() | openai.APIStatusError(status_code=408):
            return ModelUnavailable
        case openai.APIResponseValidationError():
            return ModelUnavailable
        case _:
            return ModelRejected


def _told(error: Exception) -> tuple[int | None, str]:
    """Return the status and code that the server gave, or that the client saw."""
    import openai  # noqa: PLC0415 - loaded by whoever raised

    if isinstance(error, openai.APITimeoutError):
        return None, "timeout"
    status = error.status_code if isinstance(error, openai.APIStatusError) else None
    code = error.code if isinstance(error, openai.APIError) else None
    return status, str(code or "")


def _address(base_url: str) -> str:
    parts = urlsplit(base_url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise InvalidSettings(
            f"base_url has scheme {parts.scheme!r} and host {parts.hostname!r}; "
            "expected an address such as 'http://localhost:8000/v1'"
        )
    port = f":{parts.port}" if parts.port else ""
    return f"{parts.scheme}://{parts.hostname}{port}{parts.path.rstrip('/')}"
