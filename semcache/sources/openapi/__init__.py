"""Operations of a service that an OpenAPI document describes."""

from semcache.sources.openapi.exchange import Auth
from semcache.sources.openapi.service import OpenApiService

__all__ = ["Auth", "OpenApiService"]
