"""The editor of a client that knows no `kode/*`: everything it shows is plain LSP."""

from collections.abc import Awaitable, Callable, Sequence

import msgspec

from kode_sidecar.core.domain.agent_event import BlockDelta, Event
from kode_sidecar.core.protocol.questions import (
    AskParams,
    AskResult,
    PermissionRequestParams,
    PermissionRequestResult,
)
from kode_sidecar.errors import KodeError
from kode_sidecar.servers.lsp import ClientProfile, Connection, LspEditor

AskInChat = Callable[[str, Sequence[str]], Awaitable[str]]


class PlainEditor(LspEditor):
    """Gives the events of our own conversations to `on_events` instead of the client.

    A client may use `kode/*` without announcing it: its sessions are served as everywhere.
    `on_delta` returns whether the text belongs to one of ours.
    """

    def __init__(self, connection: Connection, client: ClientProfile) -> None:
        super().__init__(connection, client)
        self.own: set[str] = set()
        self.on_events: Callable[[str, Sequence[Event]], None] = lambda _id, _events: None
        self.on_delta: Callable[[BlockDelta], bool] = lambda _: False
        self.ask_in_chat: AskInChat | None = None
        self._shows_requests = True
        send_delta = connection.notify_delta

        def publish_delta(delta: BlockDelta) -> None:
            if not self.on_delta(delta):
                send_delta(delta)

        self.publish_delta = publish_delta

    def show(self, session_id: str, events: Sequence[Event]) -> None:
        """Send events, unless the session is our own: then write them where the user reads them."""
        if session_id in self.own:
            self.on_events(session_id, events)
        else:
            super().show(session_id, events)

    async def ask_permission(
        self, question: PermissionRequestParams
    ) -> PermissionRequestResult | None:
        """Ask with the safe answer first: some editors choose the first one by a mere Enter."""
        if question.session_id in self.own:
            safe_first = sorted(question.options, key=lambda one: one.kind != "reject")
            question = msgspec.structs.replace(question, options=tuple(safe_first))
        return await super().ask_permission(question)

    async def ask_choice(self, question: AskParams) -> AskResult:
        """Ask; closing the question is an answer."""
        chosen = await self.choose(question.question, question.choices)
        return AskResult(() if chosen is None else (chosen,))

    async def choose(self, message: str, choices: Sequence[str]) -> str | None:
        """Ask the user to choose one; None if they closed the question. Raises KodeError."""
        return await self._show_message(_INFO, message, choices)

    async def _show_message(self, kind: int, message: str, actions: Sequence[str]) -> str | None:
        """Ask with LSP's message request, or in the chat document if the client has none."""
        if self._shows_requests:
            try:
                return await super()._show_message(kind, message, actions)
            except KodeError as error:
                if error.code != "CapabilityMissing":
                    raise
                self._shows_requests = False
        if self.ask_in_chat is None:
            raise KodeError("CapabilityMissing", "the editor cannot ask its user")
        return await self.ask_in_chat(message, actions)


_INFO = 3  # LSP MessageType
