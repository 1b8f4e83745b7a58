"""What servers offered the last time, on disk: the model is told of tools without a start.

One file a server, named by the fingerprint of its configuration, so a changed command is another
server. A file that cannot be read counts as none.
"""

from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from kode_sidecar.errors import KodeError
from kode_sidecar.mcp.contracts import Listing, McpPrompt, McpResource, McpTemplate, McpTool
from kode_sidecar.records.disk import replace_file
from kode_sidecar.whole_files import make_private

_MOST_BYTES = 4_000_000


class _Remembered(Struct, frozen=True, kw_only=True):
    version: str
    tools: list[McpTool] = []
    resources: list[McpResource] = []
    prompts: list[McpPrompt] = []
    templates: list[McpTemplate] = []


class RememberedLists:
    """The lists of all servers, in one folder; None keeps nothing on disk."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._known: dict[str, _Remembered | None] = {}

    def get(self, fingerprint: str) -> Listing | None:
        """What a server offered the last time."""
        found = self._read(fingerprint)
        if found is None:
            return None
        return Listing(
            tuple(found.tools),
            tuple(found.resources),
            tuple(found.prompts),
            tuple(found.templates),
        )

    def version(self, fingerprint: str) -> str:
        """The protocol version it spoke, empty when nothing is known."""
        found = self._read(fingerprint)
        return found.version if found else ""

    def put(self, fingerprint: str, version: str, listing: Listing) -> None:
        """Remember a list. What cannot be written is remembered until this process ends."""
        found = _Remembered(
            version=version,
            tools=list(listing.tools),
            resources=list(listing.resources),
            prompts=list(listing.prompts),
            templates=list(listing.templates),
        )
        self._known[fingerprint] = found
        if self._folder is not None:
            with suppress(OSError, KodeError):
                make_private(self._folder)
                path = self._folder / f"{fingerprint}.json"
                replace_file(path, msgspec.json.encode(found), durable=False)

    def _read(self, fingerprint: str) -> _Remembered | None:
        if fingerprint not in self._known:
            self._known[fingerprint] = None
            if self._folder is not None:
                path = self._folder / f"{fingerprint}.json"
                with suppress(OSError, msgspec.MsgspecError, UnicodeDecodeError):
                    if path.stat().st_size <= _MOST_BYTES:
                        data = path.read_bytes()
                        self._known[fingerprint] = msgspec.json.decode(data, type=_Remembered)
        return self._known[fingerprint]
