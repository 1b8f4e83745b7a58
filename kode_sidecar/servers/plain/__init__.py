"""Serves editors without a plugin by plain LSP: actions, commands, diagnostics, a chat document."""

from kode_sidecar.servers.plain.editor import PlainEditor
from kode_sidecar.servers.plain.tier import PlainTier
from kode_sidecar.servers.plain.trust import TrustedFolders

__all__ = ["PlainEditor", "PlainTier", "TrustedFolders"]
