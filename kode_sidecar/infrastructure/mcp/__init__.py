"""MCP: a small client for the user's own tool servers. See README.md; import from here."""

from kode_sidecar.infrastructure.mcp.attachments import (
    check_arguments,
    prompt_arguments,
    prompt_blocks,
    resource_blocks,
)
from kode_sidecar.infrastructure.mcp.config import check_address, user_servers
from kode_sidecar.infrastructure.mcp.contracts import McpHost, ServerConfig
from kode_sidecar.infrastructure.mcp.login import kept_login, log_in
from kode_sidecar.infrastructure.mcp.project import ProjectServers
from kode_sidecar.infrastructure.mcp.server import Server, ServerReport
from kode_sidecar.infrastructure.mcp.server_store import Approvals, RememberedLists
from kode_sidecar.infrastructure.mcp.servers import Servers
from kode_sidecar.infrastructure.mcp.tools import User, mcp_tools

__all__ = [
    "Approvals",
    "McpHost",
    "ProjectServers",
    "RememberedLists",
    "Server",
    "ServerConfig",
    "ServerReport",
    "Servers",
    "User",
    "check_address",
    "check_arguments",
    "kept_login",
    "log_in",
    "mcp_tools",
    "prompt_arguments",
    "prompt_blocks",
    "resource_blocks",
    "user_servers",
]
