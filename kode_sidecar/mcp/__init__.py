"""MCP: the user's own tool servers, asked by an own light client. See README.md; enter here."""

from kode_sidecar.mcp.config import project_servers, user_servers
from kode_sidecar.mcp.contracts import Host, ServerConfig
from kode_sidecar.mcp.remembered import RememberedLists
from kode_sidecar.mcp.server import Server, ServerReport
from kode_sidecar.mcp.servers import Servers
from kode_sidecar.mcp.tools import mcp_tools

__all__ = [
    "Host",
    "RememberedLists",
    "Server",
    "ServerConfig",
    "ServerReport",
    "Servers",
    "mcp_tools",
    "project_servers",
    "user_servers",
]
