"""A small LSP + kode client for the demo, the tests, the benchmarks and the terminal chat."""

from kode_sidecar.terminal.client.buffer import Buffer
from kode_sidecar.terminal.client.client_session import ClientSession
from kode_sidecar.terminal.client.connection import Client, ConnectionLost, Frame, RpcError
from kode_sidecar.terminal.client.editor import ClientEditor
from kode_sidecar.terminal.client.handshake import Handshake
from kode_sidecar.terminal.client.terminal import Terminal
from kode_sidecar.terminal.client.watch import Watch

__all__ = [
    "Buffer",
    "Client",
    "ClientEditor",
    "ClientSession",
    "ConnectionLost",
    "Frame",
    "Handshake",
    "RpcError",
    "Terminal",
    "Watch",
]
