"""A turn in the client of `pytest-lsp`, which compares what it gets with what it announced."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types

from tests.support.foreign import (
    KODE,
    LINES,
    TYPED,
    Stage,
    check,
    model,
    require_package,
    stage,
)
from tests.support.program import SERVE
from tests.support.sidecar import HANG_SECONDS


def plain(value: Any) -> Any:
    """What pygls makes of JSON without a declared type, as JSON again."""
    if hasattr(value, "_asdict"):
        return {key: plain(item) for key, item in value._asdict().items()}
    return [plain(item) for item in value] if isinstance(value, list) else value


class Buffer:
    """An unsaved document that takes edits in UTF-16."""

    def __init__(self, client: Any, uri: str, text: str) -> None:
        self.client, self.uri, self.text, self.version, self.edits = client, uri, text, 1, 0
        item = types.TextDocumentItem(uri, "javascript", 1, text)
        client.text_document_did_open(types.DidOpenTextDocumentParams(item))

    def replace(self, edits: Sequence[types.TextEdit]) -> None:
        """All ranges are those of the present text; told as the whole new text."""
        ordered = sorted(
            edits, key=lambda edit: (edit.range.start.line, edit.range.start.character)
        )
        for edit in reversed(ordered):
            start, end = self.offset(edit.range.start), self.offset(edit.range.end)
            units = self.text.encode("utf-16-le")
            units = units[:start] + edit.new_text.encode("utf-16-le") + units[end:]
            self.text = units.decode("utf-16-le")
        self.version += 1
        document = types.VersionedTextDocumentIdentifier(self.version, self.uri)
        whole = types.TextDocumentContentChangeWholeDocument(self.text)
        self.client.text_document_did_change(types.DidChangeTextDocumentParams(document, [whole]))

    def offset(self, position: types.Position) -> int:
        """In bytes of UTF-16."""
        above = self.text.split("\n")[: position.line]
        return 2 * position.character + sum(len(f"{line}\n".encode("utf-16-le")) for line in above)

    def apply(self, params: types.ApplyWorkspaceEditParams) -> types.ApplyWorkspaceEditResult:
        """`workspace/applyEdit`."""
        self.edits += 1
        if params.edit.document_changes is None:
            assert params.edit.changes is not None
            self.replace(params.edit.changes[self.uri])
            return types.ApplyWorkspaceEditResult(applied=True)
        (change,) = params.edit.document_changes
        assert isinstance(change, types.TextDocumentEdit)
        if change.text_document.version != self.version:
            return types.ApplyWorkspaceEditResult(applied=False)
        self.replace([edit for edit in change.edits if isinstance(edit, types.TextEdit)])
        return types.ApplyWorkspaceEditResult(applied=True)


class Stream:
    """What the sidecar tells of the session."""

    def __init__(self, client: Any) -> None:
        self.seq = 0
        self.stop_reason: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.roles: dict[str, str] = {}
        self.grown: dict[str, str] = {}
        self.completed: dict[str, str] = {}
        self.texts: list[str] = []
        self.change_sets: set[str] = set()
        client.feature("kode/event")(lambda params: self.events(plain(params)))
        client.feature("kode/delta")(lambda params: self.deltas(plain(params)))

    def events(self, params: Mapping[str, Any]) -> None:
        for event in params["events"]:
            self.seq = event.get("seq", self.seq)
            match event["type"]:
                case "message.added":
                    self.roles[event["messageId"]] = event["role"]
                case "block.started":
                    self.grown[event["blockId"]] = ""
                    role = self.roles[event["messageId"]]
                    if role == "assistant" and event["block"]["type"] == "text":
                        self.texts.append(event["blockId"])
                case "block.completed":
                    self.completed[event["blockId"]] = event["block"].get("text", "")
                case "changeSet.updated":
                    self.change_sets.add(event["changeSetId"])
                case "turn.completed":
                    self.stop_reason.set_result(event["stopReason"])

    def deltas(self, params: Mapping[str, Any]) -> None:
        for delta in params["deltas"]:
            assert len(self.grown[delta["blockId"]]) == delta["at"]
            self.grown[delta["blockId"]] += delta["add"]


def handshake(there: Stage, kode: Mapping[str, Any] | None) -> types.InitializeParams:
    """A client with `kode` announces versioned edits as well."""
    edits = types.WorkspaceEditClientCapabilities(document_changes=kode is not None)
    workspace = types.WorkspaceClientCapabilities(apply_edit=True, workspace_edit=edits)
    return types.InitializeParams(
        capabilities=types.ClientCapabilities(workspace=workspace),
        root_uri=there.root.as_uri(),
        initialization_options={"kode": kode} if kode else None,
    )


async def turn(client: Any, there: Stage, ends: str) -> dict[str, Any]:
    """The scene, as `tests/support/foreign.py` tells it."""
    stream = Stream(client)
    buffer = Buffer(client, there.file.as_uri(), "\r\n".join(LINES) + ends)
    client.feature(types.WORKSPACE_APPLY_EDIT)(lambda params: buffer.apply(params))

    async def ask(method: str, params: dict[str, Any]) -> dict[str, Any]:
        return plain(await client.protocol.send_request_async(method, params))

    session = await ask("kode/session/new", {})
    prompt = [{"type": "text", "text": "Please 改 it 🙏"}]
    await ask("kode/turn/start", {"sessionId": session["sessionId"], "input": prompt})
    stop_reason = await stream.stop_reason
    top = types.Position(0, 0)
    buffer.replace([types.TextEdit(types.Range(top, top), f"{TYPED}\r\n")])
    (change_set,) = stream.change_sets
    decided = await ask(
        "kode/changeSet/decide",
        {"changeSetId": change_set, "rest": "accept", "seenSeq": stream.seq},
    )
    return {
        "texts": [stream.grown[block] for block in stream.texts],
        "completed": [stream.completed[block] for block in stream.texts],
        "stopReason": stop_reason,
        "decided": decided,
        "edits": buffer.edits,
        "buffer": buffer.text,
    }


@pytest.mark.parametrize("final_newline", [True, False], ids=["newline", "no newline"])
@pytest.mark.parametrize("kode", [KODE, None], ids=["kode", "plain"])
async def test_a_turn_in_pytest_lsp(  # E1 E3
    tmp_path: Path,
    recwarn: pytest.WarningsRecorder,
    kode: Mapping[str, Any] | None,
    final_newline: bool,
) -> None:
    require_package("pytest_lsp")
    from pytest_lsp import LspSpecificationWarning, make_test_lsp_client

    async with asyncio.timeout(HANG_SECONDS), model() as server:
        there = stage(tmp_path, server.base_url, kode=kode, final_newline=final_newline)
        client = make_test_lsp_client()
        await client.start_io(*SERVE, env=there.environment)
        try:
            await client.initialize_session(handshake(there, kode))
            result = await turn(client, there, "\r\n" if final_newline else "")
            await client.shutdown_session()
        except BaseException:
            client.exit(None)  # `stop` waits for the sidecar's end
            raise
        finally:
            await client.stop()
    assert client.error is None
    assert [
        str(reported.message)
        for reported in recwarn
        if reported.category is LspSpecificationWarning
    ] == []
    check(result, there, final_newline=final_newline)
