"""The only code that knows LSP. `run` serves one editor; the app brings the handlers."""

from kode_sidecar.server.client_profile import ClientProfile
from kode_sidecar.server.codec import Dialect, encode
from kode_sidecar.server.connection import Connection
from kode_sidecar.server.editor import Editor
from kode_sidecar.server.frame_listener import FrameListener, Pop
from kode_sidecar.server.handlers import Handler, SessionHandlers, ping, serve, serve_documents
from kode_sidecar.server.loader import Step, import_http_client
from kode_sidecar.server.process import Application, run
from kode_sidecar.server.requests import Log, Reply
from kode_sidecar.server.standard_lane import Features

__all__ = [
    "Application",
    "ClientProfile",
    "Connection",
    "Dialect",
    "Editor",
    "Features",
    "FrameListener",
    "Handler",
    "Log",
    "Pop",
    "Reply",
    "SessionHandlers",
    "Step",
    "encode",
    "import_http_client",
    "ping",
    "run",
    "serve",
    "serve_documents",
]
