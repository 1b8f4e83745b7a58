"""`kode-sidecar chat`: a small client for the terminal, for daily use."""

from kode_sidecar.terminal.chat.program import ChatOptions, chat

__all__ = ["ChatOptions", "chat"]
