"""What the plugin answers to `workspace/applyEdit`, and files that come, go and move."""

from typing import Any

import pytest

from tests.editors.neovim_scene import RECEIPT, Play, Scene, proposal
from tests.support.model_script import answer, text, tool_call

NEW = "// 新 🆕\nexport {};\n"


async def apply(scene: Scene, change: dict[str, Any], *more: dict[str, Any]) -> dict[str, Any]:
    """What the plugin says to an edit, as the sidecar would send it."""
    code = """
      local client = require('kode.process').client()
      return require('kode.edits').apply({ edit = { documentChanges = ... } }, client.id)
    """
    return await scene.nvim.lua(code, [change, *more])


async def opened(scene: Scene) -> str:
    """The sidecar runs, and sees `receipt.js`; its URI."""
    await scene.nvim.lua("vim.cmd.edit('receipt.js')")
    await scene.nvim.kode("new")
    await scene.nvim.until("Kode.session() and require('kode.documents').version(1) ~= nil")
    return (scene.root / "receipt.js").as_uri()


def text_edit(uri: str, version: int | None, line: int, start: int, end: int) -> dict[str, Any]:
    """One that puts 新 there; positions are those of ASCII, the same in each encoding."""
    places = {"line": line, "character": start}, {"line": line, "character": end}
    edit = {"range": {"start": places[0], "end": places[1]}, "newText": "新"}
    return {"textDocument": {"uri": uri, "version": version}, "edits": [edit]}


@pytest.mark.parametrize("off", [-1, 1])
async def test_an_edit_for_another_text_is_refused(play: Play, off: int) -> None:  # E4
    async with play() as scene:
        uri = await opened(scene)
        version = await scene.nvim.lua("return require('kode.documents').version(1)")
        refused = await apply(scene, text_edit(uri, version + off, 2, 0, 4))
        assert not refused["applied"]
        assert "version" in refused["failureReason"]
        assert await scene.nvim.lua("return Kode.text('receipt.js')") == RECEIPT
        assert await apply(scene, text_edit(uri, version, 2, 0, 4)) == {"applied": True}
        fixed = RECEIPT.replace("keep();", "新();")
        assert await scene.nvim.lua("return Kode.text('receipt.js')") == fixed


async def test_what_cannot_be_done_is_said(play: Play) -> None:  # E4
    async with play() as scene:
        uri = await opened(scene)
        version = await scene.nvim.lua("return require('kode.documents').version(1)")
        beyond = await apply(scene, text_edit(uri, version, 99, 0, 1))
        assert beyond == {"applied": False, "failureReason": "a range is not in the text"}
        await scene.nvim.lua("vim.bo[1].modifiable = false")
        locked = await apply(scene, text_edit(uri, version, 2, 0, 4))
        assert locked == {"applied": False, "failureReason": "the buffer cannot be changed"}
        await scene.nvim.lua("vim.bo[1].modifiable = true")
        both = await apply(scene, *[text_edit(uri, version, 2, 0, 4)] * 2)
        assert both == {"applied": False, "failureReason": "one file at a time"}
        gone = await apply(scene, text_edit(uri + ".none", None, 0, 0, 0))
        assert not gone["applied"]
        there = await apply(scene, {"kind": "create", "uri": uri})
        assert there == {"applied": False, "failureReason": "there is such a file already"}
        await scene.nvim.lua("vim.api.nvim_buf_set_lines(1, 0, 0, true, {'mine'})")
        dirty = await apply(scene, {"kind": "delete", "uri": uri})
        assert not dirty["applied"]
        assert await scene.nvim.lua("return Kode.text('receipt.js')") == f"mine\r\n{RECEIPT}"
        assert (scene.root / "receipt.js").read_bytes() == RECEIPT.encode()


async def test_files_are_made_moved_and_deleted(play: Play) -> None:  # F1
    def proposed(action: str, path: str, **more: str) -> Any:
        arguments = {"action": action, "path": path, **more}
        return tool_call("propose_file", arguments, call_id=f"{action}-{path}")

    calls = [
        proposed("create", "新/file.js", content=NEW),
        proposed("move", "菜单.js", to="moved/菜单.js"),
        proposed("delete", "receipt.js"),
    ]
    async with play(answer(*calls), answer(text("Three files."))) as scene:
        nvim, root = scene.nvim, scene.root
        await nvim.lua("vim.cmd.edit('菜单.js')")
        await nvim.kode("ask", "Tidy up")
        await nvim.until("Kode.idle()")
        assert len(await nvim.lua("return Kode.states()")) == 3
        waiting = "require('kode.review').waiting()"
        await nvim.until(f"#{waiting} == 3")
        for left in (2, 1, 0):
            await nvim.kode("next")
            await nvim.until("vim.b.kode_hunk ~= nil")
            await nvim.kode("accept")
            await nvim.until(f"#{waiting} == {left}")
        assert await nvim.lua("return Kode.states()") == ["applied"] * 3
        assert not (root / "receipt.js").exists()
        assert (root / "moved" / "菜单.js").exists()
        assert not (root / "菜单.js").exists()
        assert await nvim.lua("return Kode.text('新/file.js')") == NEW
        await nvim.until("not vim.bo[vim.fn.bufnr('新/file.js')].modified")
        assert (root / "新" / "file.js").read_bytes() == NEW.encode()


async def test_a_closed_file_is_opened_before_it_is_edited(play: Play) -> None:  # F1
    edit = proposal("receipt.js", ("end = 1", "end = 2"))
    async with play(answer(edit), answer(text("One."))) as scene:
        nvim = scene.nvim
        await nvim.kode("ask", "Mend it")
        await nvim.until("Kode.idle()")
        await nvim.kode("accept", "all")
        await nvim.until("Kode.states()[1] == 'applied'")
        fixed = RECEIPT.replace("end = 1", "end = 2")
        assert await nvim.lua("return Kode.text('receipt.js')") == fixed
        await nvim.until("not vim.bo[vim.fn.bufnr('receipt.js')].modified")
        assert (scene.root / "receipt.js").read_bytes() == fixed.encode()
        assert await nvim.lua("return vim.bo[vim.fn.bufnr('receipt.js')].buflisted")


async def test_the_users_unsaved_work_stays_unsaved_beside_an_accepted_edit(play: Play) -> None:
    edit = proposal("receipt.js", ("end = 1", "end = 2"))
    async with play(answer(edit), answer(text("One."))) as scene:
        nvim = scene.nvim
        await nvim.lua("vim.cmd.edit('receipt.js')")
        await nvim.lua("vim.api.nvim_buf_set_lines(0, 0, 0, true, {'// mine'})")
        await nvim.kode("ask", "Mend it")
        await nvim.until("Kode.idle() and #require('kode.review').waiting() == 1")
        await nvim.kode("accept", "all")
        await nvim.until("Kode.states()[1] == 'applied'")
        fixed = "// mine\r\n" + RECEIPT.replace("end = 1", "end = 2")
        assert await nvim.lua("return Kode.text('receipt.js')") == fixed
        assert await nvim.lua("return vim.bo[vim.fn.bufnr('receipt.js')].modified")
        assert (scene.root / "receipt.js").read_bytes() == RECEIPT.encode()


async def test_only_the_known_version_of_a_buffer_is_saved_and_nothing_is_asked(play: Play) -> None:
    async with play(answer(text("Hi."))) as scene:
        nvim, file = scene.nvim, scene.root / "receipt.js"
        await nvim.lua("vim.cmd.edit('receipt.js')")
        await nvim.kode("ask", "Hi")
        await nvim.until("Kode.idle()")
        await nvim.lua("vim.api.nvim_buf_set_lines(0, 0, 0, true, {'// mine'})")
        save = (
            "local documents = require('kode.documents') local buffer = vim.fn.bufnr('receipt.js')"
            " local version = documents.version(buffer) + (...) return #documents.save({{"
            " uri = vim.uri_from_bufnr(buffer), version = version }})"
        )
        await nvim.lua("vim.cmd('buffer receipt.js')")
        assert await nvim.lua(save, 1) == 0
        assert file.read_bytes() == RECEIPT.encode()
        foreign = b"// written by somebody else\n"
        file.write_bytes(foreign)
        assert await nvim.lua(save, 0) == 0
        assert file.read_bytes() == foreign


async def test_the_users_words_in_a_hunk_are_never_lost(play: Play) -> None:  # F1
    edit = proposal("receipt.js", ("let end = 1;", "let end = 2;"))
    async with play(answer(edit), answer(text("One."))) as scene:
        nvim = scene.nvim
        await nvim.lua("vim.cmd.edit('receipt.js')")
        await nvim.kode("ask", "Mend it")
        await nvim.until("Kode.idle() and #require('kode.review').waiting() == 1")
        await nvim.lua("vim.api.nvim_buf_set_text(1, 4, 0, 4, 3, {'const'})")
        await nvim.kode("accept", "all")
        await nvim.until("Kode.states()[1] ~= 'proposed'")
        assert await nvim.lua("return Kode.states()") == ["conflict"]
        assert await nvim.lua("return Kode.text('receipt.js')") == RECEIPT.replace(
            "let end", "const end"
        )
        await nvim.until("table.concat(Kode.notes):find('not applied')")
