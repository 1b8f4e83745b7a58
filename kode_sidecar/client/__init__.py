"""A small LSP + kode client: demo, tests, bench and the terminal chat use it."""

from kode_sidecar.client.buffer import Buffer
from kode_sidecar.client.connection import Client, ConnectionLost, Frame, RpcError
from kode_sidecar.client.editor import Editor
from kode_sidecar.client.fold import SessionFold
from kode_sidecar.client.handshake import Handshake
from kode_sidecar.client.terminal import Terminal
from kode_sidecar.client.watch import Watch

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
