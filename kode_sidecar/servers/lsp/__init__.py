"""The only code that knows LSP. `run` serves one editor; the app registers the handlers."""

from kode_sidecar.servers.lsp.client_profile import ClientProfile
from kode_sidecar.servers.lsp.codec import RpcDialect, encode
from kode_sidecar.servers.lsp.connection import Connection
from kode_sidecar.servers.lsp.diagnostics import PacedRefresh, PublishedDiagnostics
from kode_sidecar.servers.lsp.editor import LspEditor
from kode_sidecar.servers.lsp.finding_diagnostics import FindingDiagnostics, diagnostic
from kode_sidecar.servers.lsp.frame_listener import FrameListener, Pop
from kode_sidecar.servers.lsp.handlers import Handler, SessionHandlers, ping, serve, serve_documents
from kode_sidecar.servers.lsp.loader import LoadStep
from kode_sidecar.servers.lsp.moved_hunks import MovedHunks
from kode_sidecar.servers.lsp.process import Application, run
from kode_sidecar.servers.lsp.requests import REFUSED, HandlerReply, Log
from kode_sidecar.servers.lsp.standard_lane import Features

__all__ = [
    "REFUSED",
    "Application",
    "ClientProfile",
    "Connection",
    "Features",
    "FindingDiagnostics",
    "FrameListener",
    "Handler",
    "HandlerReply",
    "LoadStep",
    "Log",
    "LspEditor",
    "MovedHunks",
    "PacedRefresh",
    "Pop",
    "PublishedDiagnostics",
    "RpcDialect",
    "SessionHandlers",
    "diagnostic",
    "encode",
    "ping",
    "run",
    "serve",
    "serve_documents",
]
