"""The REST door: an ASGI application for those who hold a token, with an OpenAPI document."""

import re
import threading
import time
from base64 import b64encode
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from functools import cache, partial
from hashlib import sha256
from http import HTTPStatus
from importlib.resources import files
from typing import Annotated, Any, Literal

import anyio
from fastapi import Depends, FastAPI, HTTPException, Query
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import BaseModel

import semcache as package
from semcache.cache.plan_cache import PlanCache
from semcache.cache.warm_up import WarmUp
from semcache.canonical import Json, JsonObject
from semcache.errors import StoreError
from semcache.runs.tools import Arguments
from semcache.server.arguments import CALLS
from semcache.server.calls import Calls, check_rights, plan_groups, statistics
from semcache.server.pools import Pools
from semcache.server.rest import schemas
from semcache.server.rest.problems import MEDIA_TYPE, LimitsMiddleware, Problem, tell_problems
from semcache.server.tokens import Holder, Right, Tokens

# Whether the cache can do what it is for: the store answers, the embedder is loaded.

State = Literal["ok", "loading", "failing"]
ASKED_S = 1.0
"""Seconds for which an answer of the store holds: anybody may ask whether we are ready."""

LOADED_S = 30.0
"""Seconds that a load may keep a server that stops."""


class Readiness:
    """What is ready of a cache. Safe from several threads."""

    def __init__(self, cache: PlanCache, tenants: Collection[str]) -> None:
        """Tell of `cache`, as the `tenants` need it that may ask."""
        self._cache = cache
        self._tenants = tenants
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._warm: WarmUp | None = None
        self._asked_s = float("-inf")
        self._store: State = "loading"

    def begin(self) -> None:
        """Load embedder and plans on a thread of its own, unless that is done or under way."""
        with self._lock:
            if self._loading or (self._warm is not None and not self._warm.failures):
                return
            self._thread = threading.Thread(target=self._load, name="semcache-load", daemon=True)
            self._thread.start()

    def end(self) -> None:
        """Wait for what is being loaded: a process that ends in the middle of it is aborted."""
        thread = self._thread
        if thread is not None:
            thread.join(LOADED_S)

    def to_dict(self) -> JsonObject:
        """Return how each part stands; what failed to load is tried again from now on."""
        with self._lock:
            if time.monotonic() - self._asked_s >= ASKED_S:
                self._store = self._ask_store()
                self._asked_s = time.monotonic()
            embedder: State = "loading"
            if self._warm is not None:
                failing = any(told.startswith("embedder") for told in self._warm.failures)
                embedder = "failing" if failing else "ok"
            parts: JsonObject = {"store": self._store, "embedder": embedder}
        self.begin()
        return {"ready": all(state == "ok" for state in parts.values()), **parts}

    @property
    def _loading(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def _load(self) -> None:
        self._warm = self._cache.warm_up(tenants=self._tenants)

    def _ask_store(self) -> State:
        try:
            self._cache.stats()
        except StoreError:
            return "failing"
        return "ok"


DEADLINE_S = 60.0
"""Seconds within which a request is answered."""
DESCRIPTION = (
    "A cache of execution plans: look a prompt up and get the plan that was made for one like it, "
    "with this prompt's own values. Every call is for the tenant of its token, and no other."
)
_ANSWERS: Mapping[str, type[BaseModel] | None] = {
    "lookup": schemas.LookupResult,
    "explain": None,
    "store": schemas.StoreResult,
    "feedback": schemas.FeedbackResult,
    "invalidate": schemas.InvalidateResult,
    "ask": schemas.AskResult,
    "answer": schemas.AskResult,
}
"""Call → what it answers; None: text. All are posted at `/v1/NAME`."""
_PROBLEM: dict[int | str, dict[str, Any]] = {
    "default": {"model": Problem, "description": "A problem"}
}


def rest_app(
    calls: Calls,
    tokens: Tokens,
    *,
    metrics: Callable[[], str] | None = None,
    deadline_s: float = DEADLINE_S,
) -> FastAPI:
    """Return the application that serves `calls` to those who hold one of `tokens`.

    `metrics`: gives the counters of all tenants together, for tokens with that right. `deadline_s`:
    seconds within which each request is answered; what has begun by then goes on.
    """
    readiness = Readiness(calls.cache, tokens.tenants)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        readiness.begin()
        yield
        await anyio.to_thread.run_sync(readiness.end)

    app = FastAPI(
        title="semcache",
        version=package.__version__,
        description=DESCRIPTION,
        docs_url=None,  # their pages load scripts from elsewhere
        redoc_url=None,
        lifespan=lifespan,
    )
    app.add_middleware(LimitsMiddleware)
    tell_problems(app)
    pools = Pools(calls, deadline_s=deadline_s)
    _add_open(app, readiness)
    _add_calls(app, pools, tokens)
    _add_looking(app, pools, tokens)
    if metrics is not None:
        _add_metrics(app, pools, tokens, metrics)
    described = app.openapi
    app.openapi = lambda: _with_problems(described())  # type: ignore[method-assign]  # as FastAPI says to
    return app


def _caller(tokens: Tokens, right: Right | None = None) -> Any:  # noqa: ANN401 - as `Depends`
    """Return the dependency that gives who asks, if he has `right`."""
    bearer = HTTPBearer(auto_error=False, description="A token of one tenant")

    async def caller(
        given: Annotated[HTTPAuthorizationCredentials | None, Depends(bearer)],
    ) -> Holder:
        holder = None if given is None else tokens.holder(given.credentials)
        if holder is None:
            raise HTTPException(
                HTTPStatus.UNAUTHORIZED,
                "a bearer token that this server knows was expected in Authorization",
                {"WWW-Authenticate": "Bearer"},
            )
        if right is not None:
            check_rights("this", frozenset({right}), holder.rights)
        return holder

    return Depends(caller)


def _add_open(app: FastAPI, readiness: Readiness) -> None:
    """Add what needs no token, and tells nothing of a tenant."""

    @app.get("/", include_in_schema=False)
    async def look() -> HTMLResponse:
        text, policy = _page()
        return HTMLResponse(text, headers={"Content-Security-Policy": policy})

    @app.get("/health", tags=["server"])
    async def health() -> schemas.Health:
        """Answer; whoever hears it knows that the process is alive."""
        return schemas.Health()

    @app.get("/ready", tags=["server"], response_model=schemas.Ready)
    async def ready() -> Response:
        """Tell whether the store answers and the embedder is loaded; 503 if not."""
        said = await anyio.to_thread.run_sync(readiness.to_dict)
        return JSONResponse(said, 200 if said["ready"] else 503)


@cache
def _page() -> tuple[str, str]:
    """Return the page, and its content security policy.

    The policy names script and style by their hashes, so that nothing which a prompt or plan might
    smuggle into the page would run, and lets the page talk to the server it came from alone.
    """
    text = files(__package__).joinpath("page.html").read_text(encoding="utf-8")
    policy = (
        f"default-src 'none'; script-src {_hashes(text, 'script')}; "
        f"style-src {_hashes(text, 'style')}; connect-src 'self'; "
        "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return text, policy


def _hashes(text: str, tag: str) -> str:
    inner = re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
    return " ".join(f"'sha256-{b64encode(sha256(i.encode()).digest()).decode()}'" for i in inner)


def _add_calls(app: FastAPI, pools: Pools, tokens: Tokens) -> None:
    for name, answer in _ANSWERS.items():
        app.post(
            f"/v1/{name}",
            operation_id=name,
            summary=CALLS[name].summary,
            response_model=answer,
            response_class=PlainTextResponse if answer is None else JSONResponse,
            responses=_PROBLEM,
            tags=["plans"],
            include_in_schema=name in pools.calls.served,
        )(_endpoint(name, pools, _caller(tokens)))


def _endpoint(name: str, pools: Pools, caller: Any) -> Callable[..., Any]:  # noqa: ANN401 - `Depends`
    async def endpoint(body: Arguments, holder: Holder = caller) -> Response:
        given = {field: getattr(body, field) for field in body.model_fields_set}
        return _answered(await pools.call(name, given, holder))

    # FastAPI reads what a body is by the annotation; each call has its own.
    endpoint.__annotations__["body"] = CALLS[name].arguments
    return endpoint


def _answered(said: "Json | list[JsonObject]") -> Response:
    return PlainTextResponse(said) if isinstance(said, str) else JSONResponse(said)


def _add_looking(app: FastAPI, pools: Pools, tokens: Tokens) -> None:
    """Add what the page shows."""
    calls, reader = pools.calls, _caller(tokens, "read")
    get = partial(app.get, responses=_PROBLEM, tags=["looking"])
    Reader = Annotated[Holder, reader]  # noqa: N806 - a type
    Count = Annotated[int, Query(ge=1, le=1000)]  # noqa: N806 - a type

    @get("/v1/me")
    async def me(holder: Annotated[Holder, _caller(tokens)]) -> schemas.Caller:
        """Tell whose token this is, and what it may do."""
        rights = sorted(holder.rights)
        asks = "ask" in calls.served
        return schemas.Caller(tenant=holder.tenant, rights=list(rights), operations=asks)

    @get("/v1/stats", response_model=schemas.StatisticsResult)
    async def stats(holder: Reader) -> Response:
        """Count entries, hits and misses of the tenant, and what hits saved."""
        work = partial(statistics, calls.cache, holder.tenant)
        return _answered(await pools.run(holder.tenant, "read", work))

    @get("/v1/recent", response_model=list[schemas.RecentLookup])
    async def recent(holder: Reader, count: Count = 50) -> Response:
        """Return the last lookups of the tenant that this process did, newest first."""
        return _answered(calls.recent.newest(holder.tenant, count))

    @get("/v1/recent/{id}", response_model=schemas.RecentLookupDetails)
    async def one(holder: Reader, id: str) -> Response:  # noqa: A002 - the word of a lookup
        """Return one of them: its plan, and why it hit or missed."""
        return _answered(calls.recent.get(holder.tenant, id).details())

    @get("/v1/groups", response_model=list[schemas.Group])
    async def groups(holder: Reader, count: Count = 50) -> Response:
        """Return the largest plan groups of the tenant; this reads all its plans."""

        def work() -> list[JsonObject]:
            return plan_groups(calls.cache.entries(tenant=holder.tenant), count)

        return _answered(await pools.run(holder.tenant, "write", work))


def _add_metrics(app: FastAPI, pools: Pools, tokens: Tokens, metrics: Callable[[], str]) -> None:
    @app.get("/metrics", responses=_PROBLEM, tags=["server"], response_class=PlainTextResponse)
    async def counters(holder: Annotated[Holder, _caller(tokens, "metrics")]) -> Response:
        """Return the counters of all tenants together, as Prometheus reads them."""
        text = await pools.run(holder.tenant, "read", metrics)
        return PlainTextResponse(text, media_type="text/plain; version=0.0.4")


def _with_problems(document: dict[str, Any]) -> dict[str, Any]:
    """Return an OpenAPI document that gives problems the media type that they have."""
    for path in document["paths"].values():
        for operation in path.values():
            told = operation["responses"].get("default", {}).get("content", {})
            if "application/json" in told:
                told[MEDIA_TYPE] = told.pop("application/json")
    return document
