"""Edits over ACP: shown, asked for, put where the text is, and never over what is not saved."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.acp_client import FILES, Buffers, Json, prompt_params
from tests.support.acp_world import AcpWorld, acp_world
from tests.support.model_script import answer, text, tool_call

APP = "one\ntwo\nthree\n"


def edit(old: str, new: str, path: str = "app.py") -> Any:
    return tool_call("propose_edit", {"path": path, "edits": [{"old": old, "new": new}]})


def turn(*calls: Any) -> list[Any]:
    """Reads first, as a model must, then calls, then says so."""
    return [
        answer(tool_call("read_file", {"path": "app.py"})),
        *(answer(call) for call in calls),
        answer(text("Done.")),
    ]


def results(world: AcpWorld) -> str:
    """What the model was told last by a tool."""
    return str([m for m in world.asked()["messages"] if m["role"] == "tool"][-1]["content"])


async def test_an_edit_is_shown_then_asked_for_then_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {"app.py": "one\r\ntwo\r\nthree\r\n"}
    async with acp_world(
        tmp_path, monkeypatch, turn(edit("two", "zwei")), files=files, capabilities=FILES
    ) as world:
        client, path = world.client, world.project / "app.py"
        shown: list[list[Json]] = []

        def decide(params: Json) -> str:
            call = params["toolCall"]
            reported = [u for u in client.updates if u.get("toolCallId") == call["toolCallId"]]
            shown.append([c for u in reported for c in u.get("content", ()) if c["type"] == "diff"])
            assert path.read_bytes() == b"one\r\ntwo\r\nthree\r\n"
            kinds = [option["kind"] for option in params["options"]]
            assert kinds == ["allow_once", "allow_always", "reject_once", "reject_always"]
            return "allow_once"

        client.answer_permission = decide
        session_id = await client.new(world.project)
        await client.prompt(session_id, "Translate")
        diff = {"type": "diff", "path": str(path), "oldText": "two\n", "newText": "zwei\n"}
        assert shown == [[diff]]
        assert path.read_bytes() == b"one\r\nzwei\r\nthree\r\n"
        assert "applied" in results(world)
        assert client.of_kind("tool_call_update")[-1]["status"] == "completed"
        assert client.files.written == []


@pytest.mark.parametrize("kind", ["reject_once", None])
async def test_what_is_not_granted_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str | None
) -> None:
    async with acp_world(
        tmp_path, monkeypatch, turn(edit("two", "zwei")), files={"app.py": APP}
    ) as world:
        world.client.answer_permission = lambda _: kind
        session_id = await world.client.new(world.project)
        await world.client.prompt(session_id, "Translate")
        assert (world.project / "app.py").read_text() == APP
        assert "reject" in results(world)
        assert world.client.of_kind("tool_call_update")[-1]["status"] == "failed"


@pytest.mark.parametrize(("kind", "asked"), [("allow_always", 1), ("reject_always", 1)])
async def test_a_lasting_answer_is_for_that_file_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, asked: int
) -> None:
    calls = [edit("two", "zwei"), edit("three", "drei"), edit("a", "b", "other.py")]
    responses = turn(answer_reads := tool_call("read_file", {"path": "other.py"}), *calls)
    del answer_reads
    files = {"app.py": APP, "other.py": "a\n"}
    async with acp_world(tmp_path, monkeypatch, responses, files=files) as world:
        world.client.answer_permission = lambda _: kind
        session_id = await world.client.new(world.project)
        await world.client.prompt(session_id, "Translate")
        paths = [p["toolCall"]["locations"][0]["path"] for p in world.client.permissions()]
        assert [Path(path).name for path in paths] == ["app.py", "other.py"]
        expected = "one\nzwei\ndrei\n" if kind == "allow_always" else APP
        assert (world.project / "app.py").read_text() == expected


async def test_unsaved_text_is_read_and_written_in_the_client(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with acp_world(
        tmp_path,
        monkeypatch,
        turn(edit("two", "zwei")),
        files={"app.py": APP},
        capabilities=FILES,
    ) as world:
        client, path = world.client, str(world.project / "app.py")
        client.files.texts[path] = "unsaved\n" + APP
        session_id = await client.new(world.project)
        await client.prompt(session_id, "Translate")
        assert client.files.texts[path] == "unsaved\none\nzwei\nthree\n"
        assert client.files.written == [path]
        assert Path(path).read_text() == APP
        assert "unsaved" in str(world.asked(1)["messages"])
        assert "applied" in results(world)
        await client.prompt(session_id, "/undo")
        assert client.files.texts[path] == "unsaved\n" + APP
        await client.prompt(session_id, "/undo")
        assert client.files.texts[path] == "unsaved\none\nzwei\nthree\n"


async def test_a_client_that_reads_the_disk_and_overwrites_buffers_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The trap of `design/editors.md`: CodeCompanion answers from the disk, and writes buffers."""
    async with acp_world(
        tmp_path,
        monkeypatch,
        turn(edit("two", "zwei")),
        files={"app.py": APP},
        capabilities=FILES,
    ) as world:
        client, path = world.client, str(world.project / "app.py")
        client.files = Buffers({path: APP + "not saved\n"}, reads_disk=True)
        session_id = await client.new(world.project)
        await client.prompt(session_id, "Translate")
        assert client.files.texts[path] == APP + "not saved\n"
        assert Path(path).read_text() == "one\nzwei\nthree\n"
        assert "applied" in results(world)


@pytest.mark.parametrize("unsaved", [True, False])
async def test_a_text_that_changes_while_the_user_is_asked_is_rebased(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unsaved: bool
) -> None:
    await _typed_meanwhile(
        tmp_path,
        monkeypatch,
        lambda before: "new first line\n" + before,
        "new first line\none\nzwei\nthree\n",
        unsaved=unsaved,
    )


@pytest.mark.parametrize("unsaved", [True, False])
async def test_a_line_that_the_user_changed_is_not_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unsaved: bool
) -> None:
    await _typed_meanwhile(
        tmp_path,
        monkeypatch,
        lambda before: before.replace("two", "two of mine"),
        "one\ntwo of mine\nthree\n",
        unsaved=unsaved,
    )


async def _typed_meanwhile(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    typing: Callable[[str], str],
    expected: str,
    *,
    unsaved: bool,
) -> None:
    async with acp_world(
        tmp_path,
        monkeypatch,
        turn(edit("two", "zwei")),
        files={"app.py": APP},
        capabilities=FILES if unsaved else {},
    ) as world:
        client, path = world.client, str(world.project / "app.py")
        if unsaved:
            client.files.texts[path] = APP + "tail\n"

        def decide(_: Json) -> str:
            if unsaved:
                client.files.texts[path] = typing(client.files.texts[path])
            else:
                Path(path).write_text(typing(APP))
            return "allow_once"

        client.answer_permission = decide
        session_id = await client.new(world.project)
        await client.prompt(session_id, "Translate")
        if unsaved:
            assert client.files.texts[path] == expected + "tail\n"
            assert Path(path).read_text() == APP
        else:
            assert Path(path).read_text() == expected


@pytest.mark.parametrize("encoding", ["gb18030", "utf-8-sig"])
async def test_encodings_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, encoding: str
) -> None:
    monkeypatch.setenv("KODE_FILE_ENCODING", "gb18030")
    async with acp_world(
        tmp_path, monkeypatch, turn(edit("二", "贰")), capabilities=FILES
    ) as world:
        path = world.project / "app.py"
        path.write_bytes("一\r\n二\r\n".encode(encoding))
        world.client.files.texts[str(path)] = path.read_bytes().decode(encoding, "replace")
        session_id = await world.client.new(world.project)
        await world.client.prompt(session_id, "Translate")
        assert path.read_bytes() == "一\r\n贰\r\n".encode(encoding)


async def test_files_come_move_and_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = [
        tool_call("propose_file", {"action": "create", "path": "sub/new.py", "content": "x\n"}),
        tool_call("propose_file", {"action": "move", "path": "app.py", "to": "moved.py"}),
        tool_call("propose_file", {"action": "delete", "path": "old.py"}),
    ]
    async with acp_world(
        tmp_path, monkeypatch, turn(*calls), files={"app.py": APP, "old.py": "o\n"}
    ) as world:
        client = world.client
        session_id = await client.new(world.project)
        await client.prompt(session_id, "Tidy up")
        assert (world.project / "sub" / "new.py").read_text() == "x\n"
        assert not (world.project / "app.py").exists()
        assert (world.project / "moved.py").read_text() == APP
        assert not (world.project / "old.py").exists()
        assert len(client.permissions()) == 3
        reported = {u["toolCallId"]: u["kind"] for u in client.updates if "kind" in u}
        assert list(reported.values()) == ["read", "edit", "move", "delete"]
        await client.prompt(session_id, "/undo")
        assert (world.project / "app.py").read_text() == APP
        assert not (world.project / "sub" / "new.py").exists()
        assert (world.project / "old.py").read_text() == "o\n"


async def test_sensitive_files_are_asked_for_once_also_when_edits_apply_unasked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = tool_call("propose_file", {"action": "create", "path": ".nvim.lua", "content": "x\n"})
    for mode in ("ask", "auto"):
        async with acp_world(tmp_path, monkeypatch, [answer(call), answer(text("So."))]) as world:
            client = world.client
            session_id = await client.new(world.project)
            await client.request("session/set_mode", {"sessionId": session_id, "modeId": mode})
            await client.prompt(session_id, "Write it")
            (asked,) = client.permissions()
            kinds = [option["kind"] for option in asked["options"]]
            assert sorted(kinds) == ["allow_always", "allow_once", "reject_always", "reject_once"]
            assert "+x" in str(asked["toolCall"]["content"])
            assert (world.project / ".nvim.lua").read_text() == "x\n"
            (world.project / ".nvim.lua").unlink()


async def test_edits_apply_unasked_in_their_mode_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with acp_world(
        tmp_path, monkeypatch, turn(edit("two", "zwei")), files={"app.py": APP}
    ) as world:
        client = world.client
        session_id = await client.new(world.project)
        await client.request("session/set_mode", {"sessionId": session_id, "modeId": "auto"})
        await client.prompt(session_id, "Translate")
        assert client.permissions() == []
        assert (world.project / "app.py").read_text() == "one\nzwei\nthree\n"
        shown = [one.get("content", ()) for one in client.of_kind("tool_call_update")]
        assert any(one["type"] == "diff" for content in shown for one in content)


async def test_a_cancel_takes_the_question_back_and_rejects(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, never = asyncio.Event(), asyncio.Event()

    async def wait(_: Json) -> None:
        asked.set()
        await never.wait()

    async with acp_world(
        tmp_path,
        monkeypatch,
        [*turn(edit("two", "zwei"))[:2], answer(text("Next."))],
        files={"app.py": APP},
    ) as world:
        client = world.client
        client.answer_permission = wait
        session_id = await client.new(world.project)
        number = await client.send("session/prompt", prompt_params(session_id, "Translate"))
        await asked.wait()
        await client.notify("session/cancel", {"sessionId": session_id})
        assert (await client.wait_for(number))["stopReason"] == "cancelled"
        await client.prompt(session_id, "What became of it?")
        assert (world.project / "app.py").read_text() == APP
        assert "reject" in str(world.asked()["messages"]).lower()


async def test_a_file_that_cannot_be_written_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unsaved text, and a client that takes no texts: nothing may be done."""
    read_only = {"fs": {"readTextFile": True}}
    async with acp_world(
        tmp_path,
        monkeypatch,
        turn(edit("two", "zwei")),
        files={"app.py": APP},
        capabilities=read_only,
    ) as world:
        path = world.project / "app.py"
        world.client.files.texts[str(path)] = APP + "unsaved\n"
        session_id = await world.client.new(world.project)
        await world.client.prompt(session_id, "Translate")
        assert path.read_text() == APP
        assert "not applied" in results(world)


async def test_a_write_that_the_client_refuses_is_told_with_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {"app.py": APP}
    async with acp_world(
        tmp_path, monkeypatch, turn(edit("two", "zwei")), files=files, capabilities=FILES
    ) as world:
        client, path = world.client, world.project / "app.py"
        client.files.texts[str(path)] = APP + "unsaved\n"

        def refuse(_: str) -> None:
            raise PermissionError(13, "permission denied by the editor")

        client.files.before_write = refuse
        session_id = await client.new(world.project)
        await client.prompt(session_id, "Translate")
        assert "permission denied by the editor" in results(world)
        assert "changed meanwhile" not in results(world)
        shown = client.of_kind("tool_call_update")[-1]["content"]
        assert "permission denied by the editor" in str(shown)


@pytest.mark.parametrize("unsaved_elsewhere", [False, True])
async def test_a_buffer_that_the_client_has_not_reloaded_is_not_unsaved_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unsaved_elsewhere: bool
) -> None:
    """A command rewrites a file that is open and unchanged; then comes an edit."""
    files = {"app.py": APP, "other.py": "x\n"}
    responses = [
        answer(tool_call("read_file", {"path": "app.py"})),
        answer(tool_call("read_file", {"path": "other.py"})),
        answer(text("Read.")),
        answer(edit("two", "zwei")),
        answer(text("Done.")),
    ]
    async with acp_world(
        tmp_path, monkeypatch, responses, files=files, capabilities=FILES
    ) as world:
        client, path = world.client, world.project / "app.py"
        client.files.texts[str(path)] = APP
        if unsaved_elsewhere:  # then it is known to serve buffers, and is written through
            client.files.texts[str(world.project / "other.py")] = "unsaved\n"
        session_id = await client.new(world.project)
        await client.prompt(session_id, "Read")
        path.write_text("# formatted\n" + APP)
        await client.prompt(session_id, "Translate")
        wanted = "# formatted\none\nzwei\nthree\n"
        now = client.files.texts[str(path)] if unsaved_elsewhere else path.read_text()
        assert now == wanted


async def test_a_second_edit_keeps_the_first_before_the_client_reloads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {"app.py": APP}
    responses = turn(edit("two", "zwei"), edit("three", "drei"))
    async with acp_world(
        tmp_path, monkeypatch, responses, files=files, capabilities=FILES
    ) as world:
        client, path = world.client, world.project / "app.py"
        client.files.texts[str(path)] = APP
        session_id = await client.new(world.project)
        await client.prompt(session_id, "Translate")
        assert path.read_text() == "one\nzwei\ndrei\n"


async def test_a_text_that_was_never_compared_is_told_to_differ(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {"app.py": "disk\n"}
    async with acp_world(tmp_path, monkeypatch, turn(), files=files, capabilities=FILES) as world:
        client = world.client
        client.files.texts[str(world.project / "app.py")] = "buffer\n"
        session_id = await client.new(world.project)
        await client.prompt(session_id, "Read")
        assert "open buffer, which is not what the disk has" in results(world)


async def test_a_new_file_is_written_as_editorconfig_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    style = (
        "root = true\n[*]\nend_of_line = crlf\ncharset = utf-8-bom\ninsert_final_newline = true\n"
    )
    files = {"app.py": APP, ".editorconfig": style}
    new = {"action": "create", "path": "new.py", "content": "x \ny"}
    script = turn(tool_call("propose_file", new), edit("y", "z", "new.py"))
    async with acp_world(tmp_path, monkeypatch, script, files=files) as world:
        session_id = await world.client.new(world.project)
        await world.client.prompt(session_id, "Write")
        assert (world.project / "new.py").read_bytes() == b"\xef\xbb\xbfx \r\nz\r\n"


async def test_what_the_mode_keep_applies_is_kept_or_taken_back_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {"app.py": APP, "b.py": APP}
    answers = turn(edit("two", "zwei"), edit("two", "zwei", "b.py"))
    async with acp_world(tmp_path, monkeypatch, answers, files=files) as world:
        client, asked = world.client, list[Json]()
        client.answer_permission = lambda params: asked.append(params) or "reject_once"
        session_id = await client.new(world.project)
        await client.request("session/set_mode", {"sessionId": session_id, "modeId": "keep"})
        await client.prompt(session_id, "Translate")
        texts = [(world.project / name).read_text() for name in files]
        assert texts == [APP.replace("two", "zwei")] * 2
        assert "has yet to keep or undo it" in results(world)
        for command, said in (
            ("/undo b.py", "Took back 1 edit."),
            ("/keep", "Kept 1 edit."),
            ("/keep", "No edit waits to be kept or taken back."),
        ):
            await client.prompt(session_id, command)
            assert said in str(client.updates[-1])
        texts = [(world.project / name).read_text() for name in files]
        assert texts == [APP.replace("two", "zwei"), APP]
        assert asked == []
