"""The answer of `kode/session/attach` as a fold: what an editor shows that was not there before."""

from collections.abc import Iterable, Mapping
from typing import Any

from kode_sidecar.client.fold import SessionFold
from kode_sidecar.client.session_view import (
    BlockView,
    ChangeSetView,
    FileView,
    HunkView,
    Json,
    MessageView,
    TurnView,
)


def attached(
    session_id: str, result: Mapping[str, Any], fold: SessionFold | None = None
) -> SessionFold:
    """A snapshot makes a new fold, a replay leads `fold` on to where the stream goes on."""
    if result["mode"] == "replay":
        fold = fold or SessionFold(session_id)
        for event in result.get("events", ()):
            fold.event(event)
    else:
        fold = _snapshot(session_id, result)
    for block in result.get("openBlocks", ()):
        view = fold.blocks.get(block["blockId"])
        if view is not None and view.state == "open":
            view.text, view.lost = block["text"], False
    return fold


def _snapshot(session_id: str, result: Mapping[str, Any]) -> SessionFold:
    fold = SessionFold(session_id, result["seq"])
    fold.title = result["session"]["title"]
    fold.head_id = result.get("headId")
    fold.usage = {name: result[name] for name in ("usage", "cost", "costUsd") if name in result}
    _add_messages(fold, result.get("messages", ()))
    grows = [block["blockId"] for block in result.get("openBlocks", ())]
    _add_messages(fold, result.get("openMessages", ()), completed=False, grows=grows)
    turn_id = result.get("activeTurnId")
    if turn_id is not None:
        fold.turns[turn_id] = TurnView(turn_id)
    for question in result.get("pending", ()):
        fold.questions[question["requestId"]] = dict(question)
    for change_set in result.get("changeSets", ()):
        fold.change_sets[change_set["changeSetId"]] = _change_set(change_set)
    return fold


def _add_messages(
    fold: SessionFold,
    messages: Iterable[Json],
    *,
    completed: bool = True,
    grows: Iterable[str] = (),
) -> None:
    for message in messages:
        view = MessageView(
            message["id"], message["role"], message.get("parentId"), dict(message), [], completed
        )
        fold.messages[view.id] = view
        for block in message.get("content", ()):
            shown = BlockView(block.get("id", ""), block["type"], dict(block))
            if shown.id not in grows:
                shown.complete(dict(block))
            view.blocks.append(shown)
            fold.blocks[shown.id] = shown


def _change_set(sent: Json) -> ChangeSetView:
    view = ChangeSetView(sent["changeSetId"], sent["state"])
    for file in sent.get("files", ()):
        hunks = {
            hunk["hunkId"]: HunkView(hunk["hunkId"], hunk["state"], dict(hunk))
            for hunk in file.get("hunks", ())
        }
        view.files[file["uri"]] = FileView(file["uri"], file["path"], file.get("version"), hunks)
    return view
