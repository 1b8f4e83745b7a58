"""The editor without a screen: how it takes edits, well and badly mannered."""

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from kode_sidecar.core.text.uris import canonical_key, file_path, path_to_uri
from kode_sidecar.terminal.client.buffer import Buffer
from kode_sidecar.terminal.client.connection import Client
from kode_sidecar.terminal.client.editor import ClientEditor
from tests.support.mannered_editor import ManneredEditor

CEILING = 30.0
ROOT = Path(__file__).resolve().parents[3]
Json = dict[str, Any]


@pytest.fixture
async def editor() -> AsyncIterator[ManneredEditor]:
    command = [sys.executable, "-m", "tests.support.echo_sidecar"]
    async with asyncio.timeout(CEILING), await Client.spawn(command, cwd=ROOT) as client:
        yield ManneredEditor(client)


async def apply(editor: ClientEditor, *changes: Json) -> Json:
    """Let the server ask for an edit; what the editor answered."""
    params = {"label": "kode", "edit": {"documentChanges": list(changes)}}
    ask = {"method": "workspace/applyEdit", "params": params}
    return (await editor.client.request("ask", ask))["result"]


def insert(uri: str, text: str, *, version: int | None, line: int = 0) -> Json:
    at = {"line": line, "character": 0}
    edit = {"range": {"start": at, "end": at}, "newText": text}
    return {"textDocument": {"uri": uri, "version": version}, "edits": [edit]}


def sent(editor: ClientEditor, *methods: str) -> list[Json]:
    """What the editor told the server, in order; with `answer` for answers."""
    messages = [frame.message() for frame in editor.client.frames if frame.direction == "out"]
    named = [
        message if "method" in message else {"method": "answer", **message} for message in messages
    ]
    return [message for message in named if message["method"] in methods]


async def test_an_edit_goes_into_the_unsaved_buffer_and_is_told(
    editor: ClientEditor, tmp_path: Path
) -> None:
    file = tmp_path / "茶 a.js"
    file.write_bytes("一\r\n二\r\n".encode())
    buffer = editor.open(file, "零 🍵\r\n一\r\n二\r\n")
    answer = await apply(editor, insert(buffer.uri, "新\r\n", version=1, line=1))
    assert answer == {"applied": True}
    assert buffer.text == "零 🍵\r\n新\r\n一\r\n二\r\n"
    assert file.read_bytes() == "一\r\n二\r\n".encode()
    reported = sent(editor, "textDocument/didOpen", "textDocument/didChange", "answer")
    assert [message["method"] for message in reported] == [
        "textDocument/didOpen",
        "textDocument/didChange",
        "answer",
    ]
    assert reported[1]["params"]["textDocument"]["version"] == buffer.version == 2


async def test_a_file_that_is_not_open_is_changed_in_memory_only(
    editor: ClientEditor, tmp_path: Path
) -> None:
    file = tmp_path / "b.js"
    file.write_bytes(b"\xef\xbb\xbfone\r\n")
    uri = path_to_uri(file)
    assert await apply(editor, insert(uri, "zero\r\n", version=None)) == {"applied": True}
    assert editor.text(uri) == "zero\r\none\r\n"
    assert file.read_bytes() == b"\xef\xbb\xbfone\r\n"
    assert sent(editor, "textDocument/didOpen", "textDocument/didChange") == []
    editor.open_touched = True
    await apply(editor, insert(uri, "first\r\n", version=None))
    reported = sent(editor, "textDocument/didOpen", "textDocument/didChange")
    assert [message["method"] for message in reported] == [
        "textDocument/didOpen",
        "textDocument/didChange",
    ]


async def test_a_stale_edit_is_refused_as_a_whole(editor: ClientEditor, tmp_path: Path) -> None:
    one = editor.open(tmp_path / "a.js", "a\n")
    two = editor.open(tmp_path / "b.js", "b\n", version=5)
    answer = await apply(
        editor, insert(one.uri, "x\n", version=1), insert(two.uri, "y\n", version=4)
    )
    assert answer["applied"] is False
    assert "version" in answer["failureReason"]
    assert (one.text, two.text) == ("a\n", "b\n")


@pytest.mark.parametrize("manner", ["drop", "refuse", "type before", "type after", "answer first"])
async def test_bad_manners(editor: ManneredEditor, tmp_path: Path, manner: str) -> None:
    buffer = editor.open(tmp_path / "a.js", "a\n")

    def key(editor: ClientEditor) -> None:
        buffer.type(0, "k")

    match manner:
        case "drop":
            editor.manners.drop_edits = True
        case "refuse":
            editor.manners.refuse = "no"
        case "type before":
            editor.manners.before_edit = key
        case "type after":
            editor.manners.after_edit = key
        case _:
            editor.manners.answer_first = True
            editor.manners.hold_changes = asyncio.Event()
    answer = await apply(editor, insert(buffer.uri, "x\n", version=1))
    expected = {
        "drop": (True, "a\n", 0),
        "refuse": (False, "a\n", 0),
        "type before": (False, "ka\n", 1),
        "type after": (True, "kx\na\n", 1),
        "answer first": (True, "x\na\n", 0),
    }[manner]
    reported = sent(editor, "textDocument/didChange")
    assert (answer["applied"], buffer.text, len(reported)) == expected
    if manner == "type after":
        assert reported[0]["params"]["textDocument"]["version"] == 3
        assert len(reported[0]["params"]["contentChanges"]) == 2
    if editor.manners.hold_changes is not None:
        editor.manners.hold_changes.set()
        await editor.client.request("echo")
        assert len(sent(editor, "textDocument/didChange")) == 1


@pytest.mark.parametrize("is_open", [True, False])
async def test_text_edited_before_its_file_is_renamed_goes_with_it(
    editor: ClientEditor, tmp_path: Path, is_open: bool
) -> None:
    old, new = path_to_uri(tmp_path / "old.js"), path_to_uri(tmp_path / "deep" / "new.js")
    file_path(old).write_text("saved\n")
    if is_open:
        editor.open(file_path(old))
    rename = {"kind": "rename", "oldUri": old, "newUri": new}
    answer = await apply(editor, insert(old, "hello ", version=None), rename)
    assert answer["applied"]
    assert (editor.text(new), editor.text(old)) == ("hello saved\n", None)
    assert [buffer.uri for buffer in editor.buffers] == [new]
    assert file_path(new).read_text() == "saved\n"


async def test_text_edited_before_its_file_is_deleted_leaves_no_buffer(
    editor: ClientEditor, tmp_path: Path
) -> None:
    old = path_to_uri(tmp_path / "old.js")
    file_path(old).write_text("saved\n")
    await apply(editor, insert(old, "hello ", version=None), {"kind": "delete", "uri": old})
    assert editor.buffers == []
    assert not file_path(old).exists()


async def test_files_are_created_renamed_and_deleted_on_disk_and_text_is_not_saved(
    editor: ClientEditor, tmp_path: Path
) -> None:
    old, new, gone, fresh = (
        path_to_uri(tmp_path / name)
        for name in ("old.js", "sub/new.js", "gone.js", "deep/fresh.js")
    )
    file_path(old).write_text("saved\n")
    file_path(gone).write_bytes(b"\xff\xfe no text of ours")
    editor.open(file_path(old), "unsaved\n")
    options = {"overwrite": False, "ignoreIfExists": True}
    await apply(
        editor,
        {"kind": "create", "uri": fresh, "options": options},
        insert(fresh, "hello\n", version=None),
    )
    await apply(editor, {"kind": "rename", "oldUri": old, "newUri": new})
    await apply(editor, {"kind": "delete", "uri": gone})
    assert (editor.text(fresh), editor.text(new), editor.text(old)) == (
        "hello\n",
        "unsaved\n",
        None,
    )
    assert (file_path(fresh).read_bytes(), file_path(new).read_bytes()) == (b"", b"saved\n")
    assert not file_path(gone).exists()
    assert not file_path(old).exists()
    reported = sent(editor, "textDocument/didOpen", "textDocument/didClose")
    assert [
        (one["method"].rpartition("/did")[2], one["params"]["textDocument"]["uri"])
        for one in reported
    ] == [
        ("Open", old),
        ("Close", old),
        ("Open", new),
    ]
    answer = await apply(editor, insert(gone, "x", version=None))
    assert answer == {"applied": False, "failureReason": f"{gone} does not exist"}


@pytest.mark.parametrize(
    ("change", "applied"),
    [
        ({"kind": "create", "uri": "taken"}, False),
        ({"kind": "create", "uri": "taken", "options": {"ignoreIfExists": True}}, True),
        ({"kind": "rename", "oldUri": "file", "newUri": "taken"}, False),
        ({"kind": "rename", "oldUri": "none", "newUri": "free"}, False),
        ({"kind": "delete", "uri": "none"}, False),
        ({"kind": "delete", "uri": "none", "options": {"ignoreIfNotExists": True}}, True),
        ({"kind": "delete", "uri": "folder"}, False),
    ],
)
async def test_no_file_takes_the_place_of_another(
    editor: ClientEditor, tmp_path: Path, change: Json, applied: bool
) -> None:
    (tmp_path / "folder").mkdir()
    for name in ("file", "taken"):
        (tmp_path / name).write_text(name)
    places = {
        name: path_to_uri(tmp_path / at)
        for name, at in change.items()
        if name.lower().endswith("uri")
    }
    assert (await apply(editor, change | places))["applied"] is applied
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder", "taken"]
    assert [(tmp_path / name).read_text() for name in ("file", "taken")] == ["file", "taken"]


async def test_questions_are_rejected_unless_somebody_answers(editor: ClientEditor) -> None:
    options = [
        {"optionId": "yes", "kind": "allow_once", "name": "Allow"},
        {"optionId": "no", "kind": "reject", "name": "Reject"},
    ]
    ask = {"method": "kode/permission/request", "params": {"options": options}}
    assert (await editor.client.request("ask", ask))["result"] == {"optionId": "no"}

    async def allow(params: Json) -> str:
        return params["options"][0]["optionId"]

    editor.answer_permission = allow
    assert (await editor.client.request("ask", ask))["result"] == {"optionId": "yes"}
    assert len(editor.asked) == 2
    items = {"items": [{"section": "kode"}, {"section": "other"}]}
    editor.configuration["kode"] = {"mode": "review"}
    ask = {"method": "workspace/configuration", "params": items}
    assert (await editor.client.request("ask", ask))["result"] == [{"mode": "review"}, None]
    ask = {"method": "window/showMessageRequest", "params": {"message": "?"}}
    assert (await editor.client.request("ask", ask))["result"] is None


async def test_both_spellings_of_a_uri_are_one_buffer(editor: ClientEditor, tmp_path: Path) -> None:
    buffer = editor.open(tmp_path / "a(1).js", "a\n")
    spelled = buffer.uri.replace("%28", "(").replace("%29", ")")
    assert editor.buffer(spelled) is editor.buffer(buffer.uri.replace("(", "%28")) is buffer
    assert canonical_key("file:///c%3A/x.js") == canonical_key("file:///C:/x.js")


def test_a_closed_buffer_is_not_told() -> None:
    buffer = Buffer("file:///a", "a")
    assert buffer.did_open()["textDocument"]["version"] == 1
    assert buffer.did_close() == {"textDocument": {"uri": "file:///a"}}
    assert not buffer.synced
