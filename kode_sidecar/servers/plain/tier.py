"""Wires what serves a client without a plugin: its conversations, hunks, actions and commands."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from kode_sidecar.agent.sessions import SessionCatalog, SessionRegistry
from kode_sidecar.core.protocol.process import ModelsListResult
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.workspace.documents import Documents
from kode_sidecar.servers.lsp import (
    ClientProfile,
    Connection,
    FindingDiagnostics,
    PublishedDiagnostics,
)
from kode_sidecar.servers.plain.actions import CodeActions
from kode_sidecar.servers.plain.chats import Chats
from kode_sidecar.servers.plain.commands import PlainCommands, Verbs
from kode_sidecar.servers.plain.editor import PlainEditor
from kode_sidecar.servers.plain.messages import Messages
from kode_sidecar.servers.plain.pending_hunks import PendingHunks
from kode_sidecar.servers.plain.texts import Texts
from kode_sidecar.servers.plain.trust import TrustedFolders, TrustQuestion


class PlainTier:
    """Serves a client by plain LSP alone. `commands` are its commands by name, `requests` what
    pygls serves beside them.
    """

    requests = frozenset({"textDocument/codeAction", "textDocument/codeLens"})

    def __init__(
        self,
        connection: Connection,
        client: ClientProfile,
        editor: PlainEditor,
        sessions: SessionRegistry,
        catalog: SessionCatalog,
        documents: Documents,
        published: PublishedDiagnostics,
        findings: FindingDiagnostics,
        folder: Path,
        comment_word: str,
        locale: Callable[[], str],
        trust: TrustedFolders,
        models: Callable[[], Awaitable[ModelsListResult]],
        verbs: Verbs,
    ) -> None:
        self._connection = connection
        self._refreshes_lenses = client.refreshes_lenses
        self._refreshing: asyncio.Task[None] | None = None
        self._verbs = verbs
        texts = Texts(locale)
        messages = Messages(connection, shows_documents=client.shows_documents)
        self._hunks = PendingHunks(sessions, documents, texts, published, self._refresh_lenses)
        self._chats = Chats(
            folder,
            sessions,
            catalog,
            documents,
            editor,
            self._hunks,
            messages,
            texts,
            TrustQuestion(trust, editor, texts),
        )
        self._chats.changed = self._refresh_lenses
        self._actions = CodeActions(self._hunks, findings, documents, texts, comment_word)
        self.commands = PlainCommands(
            self._chats,
            self._hunks,
            editor,
            messages,
            texts,
            documents,
            models,
            verbs,
            connection.log,
        ).by_name

    def register(self, server: Any) -> None:
        """Register the features of pygls; runs on the loader's thread."""
        # Imported late: pygls and lsprotocol.
        from kode_sidecar.servers.plain.features import register  # noqa: PLC0415

        register(server, self._actions, self._chats, self._verbs)

    def close(self) -> None:
        """Write what is left to write."""
        self._hunks.close()
        self._chats.close()

    def _refresh_lenses(self) -> None:
        if self._refreshes_lenses and (self._refreshing is None or self._refreshing.done()):
            self._refreshing = asyncio.create_task(self._ask_for_lenses())

    async def _ask_for_lenses(self) -> None:
        try:
            await self._connection.request("workspace/codeLens/refresh", None, Any)
        except KodeError:
            self._refreshes_lenses = False
