"""Builds an editor's `initialize` (LSP 3.17 "Initialize Request", kode under its options)."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kode_sidecar.core.protocol.handshake import PROTOCOL_VERSIONS
from kode_sidecar.core.text.text_lines import PositionEncoding
from kode_sidecar.core.text.uris import path_to_uri

KODE_CAPABILITIES: Mapping[str, Any] = {
    "permission": {},
    "ask": {},
    "changeSetReview": {"hunk": {}},
}


@dataclass(frozen=True)
class Handshake:
    """The params of `initialize`.

    `roots` are folders; `kode=False` is a plain LSP client that knows nothing of kode.
    `capabilities` replaces the client capabilities whole, `kode_options` adds to or overrides
    `initializationOptions.kode`.
    """

    roots: Sequence[str | os.PathLike[str]] = ()
    position_encodings: Sequence[PositionEncoding] = ("utf-16",)
    locale: str = "en"
    trusted: bool = True
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    kode: bool = True
    kode_options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    capabilities: Mapping[str, Any] | None = None
    client_name: str = "kode-sidecar client"
    client_version: str = "0"
    process_id: int | None = field(default_factory=os.getpid)

    def params(self) -> dict[str, Any]:
        """Return the params as plain data."""
        uris = [path_to_uri(Path(root).absolute()) for root in self.roots]
        folders = [{"uri": uri, "name": uri.rstrip("/").rsplit("/", 1)[-1]} for uri in uris]
        capabilities = self.capabilities
        if capabilities is None:
            capabilities = client_capabilities(self.position_encodings)
        params: dict[str, Any] = {
            "processId": self.process_id,
            "clientInfo": {"name": self.client_name, "version": self.client_version},
            "locale": self.locale,
            "rootUri": uris[0] if uris else None,
            "workspaceFolders": folders or None,
            "capabilities": dict(capabilities),
        }
        if self.kode:
            params["initializationOptions"] = {"kode": self._kode_object()}
        return params

    def _kode_object(self) -> dict[str, Any]:
        return {
            "protocolVersions": list(PROTOCOL_VERSIONS),
            "client": {"name": self.client_name, "version": self.client_version},
            "locale": self.locale,
            "trusted": self.trusted,
            "settings": dict(self.settings),
            "capabilities": dict(KODE_CAPABILITIES),
            **self.kode_options,
        }


def client_capabilities(encodings: Sequence[PositionEncoding]) -> dict[str, Any]:
    """Return the capabilities of this package's `ClientEditor`."""
    return {
        "general": {"positionEncodings": list(encodings)},
        "workspace": {
            "applyEdit": True,
            "configuration": True,
            "workspaceFolders": True,
            "workspaceEdit": {
                "documentChanges": True,
                "resourceOperations": ["create", "rename", "delete"],
                "failureHandling": "textOnlyTransactional",
            },
        },
        "textDocument": {"synchronization": {"dynamicRegistration": False, "didSave": True}},
        "window": {
            "showMessage": {"messageActionItem": {"additionalPropertiesSupport": False}},
            "workDoneProgress": True,
        },
    }
