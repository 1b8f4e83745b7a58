"""What is ignored of a client is told where its author looks: in the editor's log and on stderr."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.sidecar import HANG_SECONDS, sidecar

pytestmark = pytest.mark.program


async def test_a_dropped_notification_is_told_once(tmp_path: Path) -> None:
    async with sidecar(roots=[tmp_path]) as world:
        for _ in range(3):
            world.client.notify("kode/editor/didChangeContext", {"uri": 7})
        world.client.notify("kode/editor/didShow", {"blockId": "b"})
        await world.client.request("kode/ping", {}, HANG_SECONDS)
        await world.client.close()
        frames: list[dict[str, Any]] = [frame.message() for frame in world.client.frames]
        reported = [f["params"] for f in frames if f.get("method") == "window/logMessage"]
        assert [one["type"] for one in reported] == [2, 2]
        assert reported[0]["message"].startswith("kode: kode/editor/didChangeContext was dropped: ")
        assert "`$.uri`" in reported[0]["message"]
        assert "text" in reported[1]["message"]
        stderr = world.client.process.stderr_tail
        assert stderr.count("kode/editor/didChangeContext was dropped") == 1


async def test_what_is_ignored_or_repaired_is_told_once_in_both_places(tmp_path: Path) -> None:
    """Unknown members of the handshake, and document sync that cannot be."""
    file, other = (tmp_path / "a.txt").as_uri(), (tmp_path / "b.txt").as_uri()
    kode = {"client": {"name": "x", "nmae": "y"}, "settings": {"mdoe": "ask"}, "later": 1}
    sync = [
        ("didOpen", {"uri": file, "languageId": "x", "version": 2, "text": "a\n"}),
        ("didOpen", {"uri": file, "languageId": "x", "version": 2, "text": "b\n"}),
        ("didChange", {"uri": file, "version": 2}),
        ("didChange", {"uri": file, "version": 3}),
        ("didChange", {"uri": other, "version": 1}),
        ("didSave", {"uri": "file:///nowhere/c.txt"}),
        ("didClose", {"uri": "file:///nowhere/c.txt"}),
    ]
    far = {"start": {"line": 99, "character": 0}, "end": {"line": 0, "character": 0}}
    async with sidecar(roots=[tmp_path], initialize=False) as world:
        params = {"capabilities": {}, "initializationOptions": {"kode": kode}}
        await world.client.request("initialize", params, HANG_SECONDS)
        world.client.notify("initialized", {})
        for _ in range(2):
            for name, document in sync:
                reported: dict[str, Any] = {"textDocument": document}
                if name == "didChange":
                    text = (
                        {"text": "c\n"} if document["version"] < 3 else {"text": "", "range": far}
                    )
                    reported["contentChanges"] = [text]
                world.client.notify(f"textDocument/{name}", reported)
        await world.client.request("kode/ping", {}, HANG_SECONDS)
        await world.client.close()
        frames: list[dict[str, Any]] = [frame.message() for frame in world.client.frames]
        logged = [f["params"] for f in frames if f.get("method") == "window/logMessage"]
        lines = [one["message"].removeprefix("kode: ") for one in logged]
        stderr = world.client.process.stderr_tail
    assert {one["type"] for one in logged} == {2}
    assert len(lines) == len(set(lines))
    for part in (
        "initialize: `$.initializationOptions.kode.client.nmae` is not known",
        "initialize: `$.initializationOptions.kode.settings.mdoe` is not known",
        "initialize: `$.initializationOptions.kode.later` is not known",
        f"didOpen: {file} is open already",
        f"didChange: {file}: version 2 came after 2",
        f"didChange: {file}: a change does not fit",
        f"didChange: {other} is not open",
        "didSave: file:///nowhere/c.txt is not open",
        "didClose: file:///nowhere/c.txt is not open",
    ):
        assert len([line for line in lines if line.startswith(part)]) == 1, (part, lines)
        assert stderr.count(part) == 1
