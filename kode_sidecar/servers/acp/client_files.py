"""Reads the user's texts from the client, and applies granted edits there or on disk.

ACP has no document sync, so we ask the client for a file before each read. A text that differs
from the disk is unsaved and becomes an open document of the workspace. A text that equals the disk
does not: the client may have read the disk itself. Nor does a text that equalled the disk when we
last compared them, if only the disk has changed since: the client has not reloaded it yet.
"""

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from kode_sidecar.agent.event_log.editor_port import ApplyAnswer, DocumentEdit, FileEdit
from kode_sidecar.core.text.text_edit import to_lf, with_eol
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.workspace.decoding import DecodedText, decode, encode
from kode_sidecar.infrastructure.workspace.disk import MAX_FILE_BYTES, read_regular
from kode_sidecar.infrastructure.workspace.document import Document, text_rev
from kode_sidecar.infrastructure.workspace.editor_config import new_file_style
from kode_sidecar.infrastructure.workspace.paths import Location
from kode_sidecar.infrastructure.workspace.saving import (
    create_file,
    delete_file,
    move_file,
    replace_file,
)
from kode_sidecar.infrastructure.workspace.workspace import Workspace
from kode_sidecar.servers.acp.client import ClientAbilities
from kode_sidecar.servers.acp.types import ReadTextFileResponse
from kode_sidecar.servers.lsp import Connection

READ_SECONDS = 10.0
_MARK = "\ufeff"


@dataclass(frozen=True)
class _OnDisk:
    data: bytes
    decoded: DecodedText

    @property
    def text(self) -> str:
        return self.decoded.text


class ClientFiles:
    """Reads and writes one session's files. `workspace` is what its tools read.

    Some clients answer reads from the disk, but overwrite the buffer on writes: unsaved changes
    would be lost. So we write through the client only if it is known to serve buffers, because it
    has returned a text that is not on disk. Otherwise the sidecar writes the file, and the editor
    treats that as any change on disk.
    """

    def __init__(
        self,
        connection: Connection,
        client: ClientAbilities,
        session_id: str,
        workspace: Workspace,
    ) -> None:
        self._connection = connection
        self._client = client
        self._session_id = session_id
        self._workspace = workspace
        self._documents = workspace.documents
        self._synced: dict[str, str] = {}

    async def refresh(self, uri: str) -> None:
        """Open the file's document with the client's text, or close it if that text is saved.

        Only UTF-8 texts are compared: how a client decodes other bytes is not known.
        """
        try:
            location = self._workspace.locate(uri)
        except KodeError:
            return
        if not self._client.reads_files or location.is_secret:
            return
        for _ in range(2):  # again if the disk changed between the two reads
            before = await asyncio.to_thread(self._on_disk, location)
            if not _is_plain(before):
                return
            said = await self._read(location)
            if said is None or (before is not None and self._is_saved(location, said, before)):
                self._documents.close(uri)
                return
            after = await asyncio.to_thread(self._on_disk, location)
            if (before and before.data) == (after and after.data):
                self._client.serves_buffers = True
                said = said.removeprefix(_MARK)
                self._documents.show(uri, said, said)
                document = self._documents.get(uri)
                if document is not None:
                    document.differs_from_disk = True
                return

    async def apply(self, edit: DocumentEdit) -> ApplyAnswer:
        """Apply an edit to one text, if it is still the text that the edit was made for.

        The resulting text is reported as a change of its document, which proves the edit, or lets
        it be made again for the current text.
        """
        try:
            location = self._workspace.locate(edit.uri)
            document = self._documents.get(edit.uri)
            if document is not None:
                return await self._apply_unsaved(edit, location, document)
            return await self._apply_saved(edit, location)
        except KodeError as error:
            return ApplyAnswer(applied=False, reason=error.message)

    async def change(self, edit: FileEdit) -> ApplyAnswer:
        """Create, move or delete a file."""
        try:
            location = self._workspace.locate(edit.uri)
            if edit.kind == "create":
                await self._create(edit, location)
            elif self._documents.get(edit.uri) is not None:
                text = f"{location.display} has unsaved changes; save them first"
                return ApplyAnswer(applied=False, reason=text)
            elif edit.kind == "rename":
                target = self._workspace.locate(edit.new_uri)
                await asyncio.to_thread(move_file, location, target)
            else:
                await asyncio.to_thread(delete_file, location)
        except (KodeError, UnicodeEncodeError) as error:
            return ApplyAnswer(applied=False, reason=str(error))
        return ApplyAnswer(applied=True)

    async def _apply_unsaved(
        self, edit: DocumentEdit, location: Location, document: Document
    ) -> ApplyAnswer:
        """Apply an edit to unsaved text, which only the client holds, so only it can change it."""
        base, version = document.text, document.version
        said = await self._read(location)
        if said is None or not _same(said, base) or version != edit.version:
            await self.refresh(edit.uri)
            return _moved_on(location)
        if not self._client.writes_files:
            text = f"{location.display} has unsaved changes, and the client takes no text"
            return ApplyAnswer(applied=False, reason=text)
        return await self._write(edit, location, base, said)

    async def _apply_saved(self, edit: DocumentEdit, location: Location) -> ApplyAnswer:
        found = await asyncio.to_thread(self._look, location)
        said = await self._read(location) if _is_plain(found) else None
        if said is not None and not self._is_saved(location, said, found):
            await self.refresh(edit.uri)
            return _moved_on(location)
        if said is not None and self._client.writes_files and self._client.serves_buffers:
            return await self._write(edit, location, found.text, said)
        text = edit.applied_to(found.text, self._workspace.position_encoding)
        data = encode(text, found.decoded.encoding, bom=found.decoded.bom)
        await asyncio.to_thread(replace_file, location, found.data, data, second_names=True)
        self._documents.show(edit.uri, found.text, text)
        self._documents.close(edit.uri)
        return ApplyAnswer(applied=True)

    async def _write(
        self, edit: DocumentEdit, location: Location, base: str, said: str
    ) -> ApplyAnswer:
        """Write the whole text to the client in its line ends; trust what it then reads back."""
        text = edit.applied_to(base, self._workspace.position_encoding)
        eol = Document(edit.uri, said).eol
        content = text if (eol == "\r\n") == ("\r\n" in base) else with_eol(text, eol)
        if said.startswith(_MARK):
            content = _MARK + content
        await self._send(location, content)
        now = await self._read(location)
        self._documents.show(edit.uri, base, text if now is None else _like(base, now))
        found = await asyncio.to_thread(self._on_disk, location)
        if found is not None and now is not None and _same(now, found.text):
            self._documents.close(edit.uri)
        return ApplyAnswer(applied=True)

    async def _create(self, edit: FileEdit, location: Location) -> None:
        said = await self._read(location) if self._client.reads_files else None
        if said is not None:
            text = f"the client has a text for {location.display} already"
            raise KodeError("StaleBase", text)
        if self._client.writes_files and self._client.serves_buffers:
            await self._send(location, edit.text)
            await self.refresh(edit.uri)
        else:
            data = new_file_style(location.real).data(edit.text)
            await asyncio.to_thread(create_file, location, data)

    async def _send(self, location: Location, content: str) -> None:
        path = str(location.path)
        params = {"sessionId": self._session_id, "path": path, "content": content}
        await self._connection.request("fs/write_text_file", params, dict[str, Any] | None)

    async def _read(self, location: Location) -> str | None:
        """Return the client's text of a file; None if it returns none."""
        if not self._client.reads_files:
            return None
        params = {"sessionId": self._session_id, "path": str(location.path)}
        try:
            async with asyncio.timeout(READ_SECONDS):
                answer = await self._connection.request(
                    "fs/read_text_file", params, ReadTextFileResponse
                )
        except (KodeError, TimeoutError):
            return None
        return answer.content if len(answer.content) <= MAX_FILE_BYTES else None

    def _is_saved(self, location: Location, said: str, found: _OnDisk) -> bool:
        """Return whether the client's text is that of the disk, or an older one of the disk."""
        if _same(said, found.text):
            self._synced[location.uri] = text_rev(_plain(said))
            return True
        return self._synced.get(location.uri) == text_rev(_plain(said))

    def _look(self, location: Location) -> _OnDisk:
        """Read the file on disk. Raises KodeError."""
        data = read_regular(location, second_names=True)
        return _OnDisk(data, decode(data, location.display, self._workspace.file_encoding))

    def _on_disk(self, location: Location) -> _OnDisk | None:
        with suppress(KodeError):
            return self._look(location)
        return None


def _like(base: str, said: str) -> str:
    """Return the client's text in the line ends of `base`, so that both can be compared."""
    said = said.removeprefix(_MARK)
    if "\r" in said or "\r" not in base:
        return said
    return with_eol(said, Document("untitled:base", base).eol)


def _same(one: str, other: str) -> bool:
    """True if two texts differ at most in line ends, BOM and final newlines, as clients do."""
    return _plain(one) == _plain(other)


def _plain(text: str) -> str:
    return to_lf(text).removeprefix(_MARK).rstrip("\n")


def _is_plain(found: _OnDisk | None) -> bool:
    return found is None or found.decoded.encoding == "utf-8"


def _moved_on(location: Location) -> ApplyAnswer:
    return ApplyAnswer(applied=False, reason=f"{location.display} has another text by now")
