"""Operations that are tools of MCP servers."""

from semcache.sources.mcp.servers import McpServers, server_at
from semcache.sources.mcp.session import McpServer

__all__ = ["McpServer", "McpServers", "server_at"]
