"""A small LSP + kode client: demo, tests, bench and the terminal chat use it."""

from kode_sidecar.terminal.client.buffer import Buffer
from kode_sidecar.terminal.client.connection import Client, ConnectionLost, Frame, RpcError
from kode_sidecar.terminal.client.editor import Editor
from kode_sidecar.terminal.client.fold import SessionFold
from kode_sidecar.terminal.client.handshake import Handshake
from kode_sidecar.terminal.client.terminal import Terminal
from kode_sidecar.terminal.client.watch import Watch

__all__ = [
    "Buffer",
    "Client",
    "ConnectionLost",
    "Editor",
    "Frame",
    "Handshake",
    "RpcError",
    "SessionFold",
    "Terminal",
    "Watch",
]
