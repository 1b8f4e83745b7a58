"""The server for the Agent Client Protocol; no other code knows it. See README.md."""

from kode_sidecar.servers.acp.client import ClientAbilities
from kode_sidecar.servers.acp.dialect import ACP
from kode_sidecar.servers.acp.editor import AcpEditor
from kode_sidecar.servers.acp.handlers import serve_acp
from kode_sidecar.servers.acp.server_offers import ServerOffers
from kode_sidecar.servers.acp.sessions import AcpSessions, SessionAgent, SessionPlace
from kode_sidecar.servers.acp.types import AuthenticateRequest, McpServer

__all__ = [
    "ACP",
    "AcpEditor",
    "AcpSessions",
    "AuthenticateRequest",
    "ClientAbilities",
    "McpServer",
    "ServerOffers",
    "SessionAgent",
    "SessionPlace",
    "serve_acp",
]
