"""Operations from an OpenAPI 3.x document: each path and method becomes something a plan can call.

Parameters and the members of a JSON body become inputs of one flat object; enums become closed sets
of the catalog. GET, HEAD and OPTIONS read, anything else writes unless the caller knows better.
"""

from collections.abc import Mapping
from pathlib import Path

from semcache.canonical import as_object
from semcache.catalog.catalog import Catalog
from semcache.catalog.operation import Effect
from semcache.process.forks import Closeable
from semcache.sources.documents import Documents
from semcache.sources.openapi.endpoints import Endpoints, version
from semcache.sources.openapi.exchange import Auth, Credentials, Exchange, origin
from semcache.sources.openapi.http_call import Servers
from semcache.sources.overrides import Overrides


class OpenApiService(Closeable):
    """A service that an OpenAPI document describes. Safe from several threads.

    Use it as a context manager, or close it: it keeps connections open between calls.
    """

    def __init__(self, catalog: Catalog, *, skipped: Mapping[str, str], exchange: Exchange) -> None:
        self.catalog = catalog
        """The operations, by `operationId`, else by method and path: `get_orders_by_id`."""
        self.skipped = dict(skipped)
        """Operations that could not be made → why."""
        self._exchange = exchange

    @classmethod
    def open(
        cls,
        source: Mapping[str, object] | str | Path,
        *,
        auth: Credentials | None = None,
        base_url: str | None = None,
        variables: Mapping[str, str] | None = None,
        effects: Mapping[str, Effect] | None = None,
        idempotency_keys: Mapping[str, str] | None = None,
        remote_references: bool = False,
        timeout_s: float = 30.0,
        max_response_bytes: int = 10 * 2**20,
    ) -> "OpenApiService":
        """Return the service that `source` describes: a file, a URL, or the document itself.

        Nothing is asked of the service before the first call; a URL is fetched now.

        Args:
            source: The document, JSON or YAML.
            auth: Credentials, or what gives them at each call. They go to the service's own
                origin and nowhere else.
            base_url: Address to call instead of the document's servers.
            variables: Values for the variables of the server's address.
            effects: Operation → its effect, where the method says otherwise: a POST that searches.
            idempotency_keys: Operation → the argument that takes its key, so that a write can be
                tried again. A header parameter `Idempotency-Key` needs no telling.
            remote_references: Whether references to other documents are followed.
            timeout_s: Seconds without an answer before a call is given up.
            max_response_bytes: Bytes that one answer may have.

        Raises:
            InvalidOperation: it is no OpenAPI 3 document, too large, or refers to what is not
                there, to itself in a circle, or to another document without leave.
            InvalidSettings: an argument cannot be used.
            SourceUnavailable: it cannot be read.
            MissingExtra: `semcache-plans[openapi]` is not installed.
        """
        documents = Documents.open(source, remote=remote_references)
        version(documents)
        servers = Servers(documents, base_url, dict(variables or {}))
        exchange = Exchange(
            auth=auth or Auth(),
            trusted=origin(servers.of({}, {})),
            timeout_s=timeout_s,
            max_bytes=max_response_bytes,
        )
        reader = Endpoints(documents, servers, exchange, _secrets(documents, auth))
        operations, skipped = reader.read()
        overrides = Overrides(effects or {}, idempotency_keys or {})
        overrides.check({operation.name for operation in operations})
        return cls(Catalog(map(overrides.applied, operations)), skipped=skipped, exchange=exchange)

    def close(self) -> None:
        """Close the connections; calling it twice is fine."""
        self._exchange.close()

    def __repr__(self) -> str:
        return f"OpenApiService({len(self.catalog)} operations, {len(self.skipped)} skipped)"


def _secrets(documents: Documents, auth: Credentials | None) -> frozenset[tuple[str, str]]:
    """Return the parameters that carry credentials: no plan may see or set them."""
    components = as_object(documents.root.get("components"))
    found = set(auth.names) if isinstance(auth, Auth) else set()
    for node in as_object(components.get("securitySchemes")).values():
        scheme = as_object(documents.follow(node, documents.base).value)
        if scheme.get("type") == "apiKey":
            found.add((str(scheme.get("in")), str(scheme.get("name")).lower()))
    return frozenset(found)
