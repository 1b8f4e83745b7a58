"""`kode-sidecar chat`: the small client for a terminal, for real use."""

from kode_sidecar.terminal.chat.program import ChatOptions, chat

__all__ = ["ChatOptions", "chat"]
