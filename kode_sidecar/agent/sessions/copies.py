"""Fork a session at one of its messages, or export it as text."""

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from msgspec import UNSET

from kode_sidecar.agent.sessions.files import JOB, SessionFolders
from kode_sidecar.core.domain.conversation import Conversation
from kode_sidecar.core.domain.message import (
    KEEPS,
    WORDS,
    Blob,
    Block,
    Message,
    ResourceBlock,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from kode_sidecar.core.protocol.events import ArtifactPlace, artifact_ref, place_of
from kode_sidecar.core.protocol.session import (
    SessionExportParams,
    SessionExportResult,
    SessionForkParams,
    SessionForkResult,
)
from kode_sidecar.core.text.secret_text import SecretMask
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.records.conversation_files import (
    ConversationFiles,
    ConversationMeta,
)
from kode_sidecar.infrastructure.records.conversation_store import (
    StoredConversation,
)
from kode_sidecar.infrastructure.records.json_record import seal, unsealed
from kode_sidecar.infrastructure.records.message_record import encode_message

MAX_EXPORT_BYTES = 32 * 1024 * 1024
_ROLES = {"user": "User", "assistant": "Assistant", "tool": "Tools", "system": "System"}
_COUNTED = re.compile(r"(.*) \(([2-9]|[1-9]\d{1,3})\)", re.DOTALL)
# Fields that belong to the original session; a copied message must not carry them.
_OWN_META = ("turnId", "clientTurnKey")


@dataclass(frozen=True)
class SessionCopies:
    """Forks and exports sessions, on threads; never changes the original.

    `transcript` is the recording of this process so far, if there is one; `keys` are the API keys
    in use, which exports mask.
    """

    folders: SessionFolders
    transcript: Callable[[], str | None]
    keys: Callable[[], Sequence[str]]

    async def fork(self, params: SessionForkParams) -> SessionForkResult:
        """Create and save a session whose history is the path to a message.

        Raises KodeError `SessionNotFound`, `MessageNotFound`, `Storage`.
        """
        session_id = self.folders.new_id("session")
        writer = await asyncio.to_thread(self._copy, params, session_id)
        try:
            await self.folders.saver.save(writer)
        except BaseException:
            await asyncio.to_thread(self._discard, writer)
            raise
        writer.close()
        return SessionForkResult(session_id=session_id)

    def _discard(self, writer: ConversationFiles) -> None:
        """Delete a copy that could not be saved."""
        writer.close()
        with suppress(KodeError):
            self.folders.store.delete(writer.meta.id)

    async def export(self, params: SessionExportParams) -> SessionExportResult:
        """Export a session as text.

        Raises KodeError `SessionNotFound`, `CapabilityMissing`, `TooLarge`, `Storage`.
        """
        if params.format == "tape":
            return await asyncio.to_thread(self._tape, params.session_id)
        write = _markdown if params.format == "md" else _jsonl
        text = await asyncio.to_thread(self._write, params.session_id, write)
        return SessionExportResult(file_name=f"{params.session_id}.{params.format}", text=text)

    def _copy(self, params: SessionForkParams, session_id: str) -> ConversationFiles:
        stored = self.folders.store.load(params.session_id)
        conversation = stored.tree()
        leaf = params.message_id or conversation.head
        path = conversation.path(leaf)
        now = self.folders.clock.timestamp()
        origin: dict[str, Any] = {"sessionId": params.session_id}
        if leaf is not None:
            origin["messageId"] = leaf
        of_job = stored.meta.kind == JOB  # a copy belongs to the user: no edits without a question
        meta = ConversationMeta(
            id=session_id,
            title=_title_of_copy(stored.meta.title),
            agent_type=self.folders.defaults.agent if of_job else stored.meta.agent_type,
            created_at=now,
            updated_at=now,
            meta={**stored.meta.meta, "forkedFrom": origin},
            mode=UNSET if of_job else stored.meta.mode or UNSET,
            model=stored.meta.model or UNSET,
            effort=stored.meta.effort or UNSET,
        )
        copies = self._copies(path, session_id)
        copied = {old.id: new.id for old, new in zip(path, copies, strict=True)}
        meta = meta.with_edits(stored.meta.edits.renamed(copied.get))
        writer = self.folders.store.create(meta)
        try:
            if not of_job and (prefix := self.folders.store.prefix(params.session_id)):
                writer.prefix = msgspec.structs.replace(
                    prefix, root=""
                )  # turns of a copy have other ids
            if copies:
                whole = (self._with_artifacts(one, writer.folder) for one in copies)
                writer.append(*(_with_kept(one, copied) for one in whole))
        except BaseException:
            self._discard(writer)
            raise
        return writer

    def _copies(self, path: Sequence[Message], session_id: str) -> list[Message]:
        """Return copies for another session, without costs: the original session paid them."""
        copies: list[Message] = []
        ids: dict[str, str] = {}
        for depth, message in enumerate(path):
            content = tuple(self._renamed(block, ids) for block in message.content)
            meta = {name: value for name, value in message.meta.items() if name not in _OWN_META}
            copies.append(
                msgspec.structs.replace(
                    message,
                    id=self.folders.new_id("message"),
                    session_id=session_id,
                    content=content,
                    parent_id=copies[-1].id if copies else None,
                    depth=depth,
                    version=1,
                    meta=meta,
                    usage=None,
                    cost=None,
                    cost_usd=None,
                    lost=None,
                )
            )
        return copies

    def _renamed(self, block: Block, ids: dict[str, str]) -> Block:
        """Return the block under an id of the copy; a result names the copy of its call."""
        block_id = ids[block.id] = self.folders.new_id("block")
        if not isinstance(block, ToolResultBlock):
            return msgspec.structs.replace(block, id=block_id)
        call = ids.get(block.call_block_id, "") if block.call_block_id else ""
        return msgspec.structs.replace(block, id=block_id, call_block_id=call)

    def _tape(self, session_id: str) -> SessionExportResult:
        if not self.folders.store.exists(session_id):
            raise KodeError("SessionNotFound", f"There is no session {session_id!r}.")
        text = self.transcript()
        if text is None:
            raise KodeError(
                "CapabilityMissing",
                "This sidecar does not record: a tape holds a whole process from its start on. "
                "Start it with `kode-sidecar serve --record FILE`, or use the format `jsonl`.",
            )
        _check_size(text, "its file is whole, where --record said")
        return SessionExportResult(file_name=f"{session_id}.tape.jsonl", text=text)

    def _with_artifacts(self, message: Message, folder: Path) -> Message:
        """Copy the full tool outputs of a message to the new session, and refer to the copies."""

        def kept(block: ToolResultBlock) -> ToolResultBlock:
            if block.artifact is None:
                return block
            return msgspec.structs.replace(block, artifact=self._copied(block.artifact, folder))

        return message.with_results(kept)

    def _copied(self, artifact: Blob, folder: Path) -> Blob:
        """Copy an artifact; a missing one keeps its ref, so reading it reports `BlobNotFound`."""
        place = place_of(artifact.ref)
        if isinstance(place, ArtifactPlace) and self.folders.store.copy_artifact(*place, folder):
            ref = artifact_ref(folder.name, place.artifact_id)
            return msgspec.structs.replace(artifact, ref=ref)
        return artifact

    def _write(self, session_id: str, write: "_Writer") -> str:
        text = write(self.folders.store.load(session_id), SecretMask(self.keys()))
        _check_size(text, "read it in pages with kode/message/list")
        return text


def _with_kept(message: Message, copied: Mapping[str, str]) -> Message:
    """Let a copied summary refer to the copies of the first messages that stay."""
    if not message.is_summary:
        return message
    named = {name: copied.get(str(message.meta.get(name))) for name in (KEEPS, WORDS)}
    known = {name: first for name, first in named.items() if first is not None}
    return msgspec.structs.replace(message, meta={**message.meta, **known})


def _title_of_copy(title: str) -> str:
    """Return the title with a number, which marks a copy in every language.

    An empty title stays empty: the next prompt sets it, as in every session.
    """
    if not title:
        return ""
    counted = _COUNTED.fullmatch(title)
    return f"{counted[1]} ({int(counted[2]) + 1})" if counted else f"{title} (2)"


def _check_size(text: str, instead: str) -> None:
    if len(text) > MAX_EXPORT_BYTES:
        text = f"This is too large to be sent as one text; {instead}."
        raise KodeError("TooLarge", text)


_Writer = Callable[[StoredConversation, SecretMask], str]


def _jsonl(stored: StoredConversation, mask: SecretMask) -> str:
    """One line per message, as in `messages.jsonl`; the checksum covers the masked text."""
    records = (unsealed(encode_message(message)).decode() for message in stored.messages)
    masked = (mask.stars(record, json_line=True) for record in records)
    return "".join(f"{seal(record.encode()).decode()}\n" for record in masked)


def _markdown(stored: StoredConversation, mask: SecretMask) -> str:
    """Render the path to the head for human readers."""
    conversation: Conversation = stored.tree()
    parts = [f"# {stored.meta.title or stored.meta.id}\n"]
    for message in conversation.path(conversation.head):
        if message.origin == "reminder":
            continue
        said = [text for block in message.content if (text := _block(block))]
        if said:
            parts.append(f"## {_ROLES[message.role]}\n\n" + "\n\n".join(said) + "\n")
    return "\n".join(map(mask.stars, parts))  # stars, so that a recording plays it again


def _block(block: object) -> str:
    match block:
        case TextBlock(text=text):
            return text.strip()
        case ToolUseBlock(name=name, input=arguments):
            return f"- `{name}` {_code(msgspec.json.encode(arguments).decode())}"
        case ToolResultBlock(summary=summary, status=status):
            return f"- {summary or status}"
        case ResourceBlock(uri=uri):
            return f"- attached: {uri}"
        case _:
            return ""


def _code(text: str) -> str:
    fence = "`" if "`" not in text else "``"
    return f"{fence}{text}{fence}" if fence == "`" else f"{fence} {text} {fence}"
