"""The only code that knows LSP. `run` serves one editor; the app brings the handlers."""

from kode_sidecar.server.connection import Connection
from kode_sidecar.server.editor import ClientProfile, Editor
from kode_sidecar.server.frame_listener import FrameListener, Pop
from kode_sidecar.server.handlers import Handlers
from kode_sidecar.server.incoming_requests import Log, Reply
from kode_sidecar.server.loader import Step, import_http_client
from kode_sidecar.server.process import Application, run
from kode_sidecar.server.standard_lane import Features

__all__ = [
    "Application",
    "ClientProfile",
    "Connection",
    "Editor",
    "Features",
    "FrameListener",
    "Handlers",
    "Log",
    "Pop",
    "Reply",
    "Step",
    "import_http_client",
    "run",
]
