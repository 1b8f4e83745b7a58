"""The plugin in real Neovim, over the real sidecar and a scripted model: what its users do."""

import base64
import json
import re
import sys

from tests.editors.neovim_scene import MENU, RECEIPT, Play, proposal
from tests.support.model_script import answer, hold, text, thinking, tool_call
from tests.support.processes import children, gone, kill
from tests.support.program import ROOT

UNSAVED = "// 没有存盘 😀"
STATUS = "return require('kode').statusline()"


def kill_sidecar(editor_id: int) -> int:
    (sidecar,) = children(editor_id)
    kill(sidecar)
    return sidecar


async def test_an_answer_grows_in_the_chat(play: Play) -> None:  # F1
    script = answer(
        thinking("先想一想"), text("第一句 🍵, then\n\n- a"), hold("middle"), text(" list\n- 完 👋")
    )
    async with play(script) as scene:
        nvim = scene.nvim
        await nvim.kode("ask", "你好", "🙏")
        await nvim.until("Kode.said('- a')")
        assert not await nvim.lua("return Kode.said('完')")
        assert "running" in await nvim.lua("return require('kode').statusline()")
        scene.model.release("middle")
        await nvim.until("Kode.idle()")
        assert await nvim.chat() == [
            "# 你好 🙏",
            "",
            "## You",
            "你好 🙏",
            "",
            "## Kode",
            "▸ thought  先想一想",
            "",
            "第一句 🍵, then",
            "",
            "- a list",
            "- 完 👋",
        ]
        assert "ready" in await nvim.lua("return require('kode').statusline()")


async def test_a_tool_card_is_one_line_until_it_is_opened(play: Play) -> None:  # D8
    reading = answer(tool_call("read_file", {"path": "菜单.js"}))
    async with play(reading, answer(text("Read it."))) as scene:
        nvim = scene.nvim
        await nvim.kode("ask", "Read")
        await nvim.until("Kode.idle()")
        (card,) = [line for line in await nvim.chat() if "read_file" in line]
        assert card == "▸ ✓ read_file · Read 菜单.js 1-4"
        assert not await nvim.lua("return Kode.said('龙井')")
        row = (await nvim.chat()).index(card) + 1
        await nvim.keys(f"{row}G<Tab>")
        assert await nvim.lua("return Kode.said('龙井') and Kode.said('path: 菜单.js')")
        await nvim.keys("<CR>")
        assert card in await nvim.chat()
        assert not await nvim.lua("return Kode.said('龙井')")


async def test_two_files_are_reviewed_hunk_by_hunk_while_the_user_types(play: Play) -> None:  # F1
    proposals = answer(
        proposal("菜单.js", ("龙井: 38", "龙井: 42, 普洱: 58"), ("tax = 0", "tax = 0.06 // 税 🧾")),
        proposal(
            "receipt.js", ("let 合计 = 1;", "let 合计 = 2; // 🫖"), ("let end = 1;", "let end = 3;")
        ),
    )
    async with play(proposals, answer(text("Four proposals."))) as scene:
        nvim = scene.nvim
        for name in ("菜单.js", "receipt.js"):
            await nvim.lua("vim.cmd.edit((...))", name)
            await nvim.lua("vim.api.nvim_buf_set_lines(0, 0, 0, true, {...})", UNSAVED)
        assert await nvim.lua("return vim.bo.fileformat") == "dos"
        await nvim.kode("ask", "Mend it")
        await nvim.until("Kode.idle()")
        await nvim.until("#require('kode.review').waiting() == 4")

        await nvim.kode("next")
        here = "require('kode.review').here()"
        await nvim.until(f"{here} and {here}.path == '菜单.js'")
        await nvim.lua("vim.api.nvim_buf_set_lines(0, 0, 0, true, {'// 你在打字 🎹'})")
        await nvim.kode("accept")
        await nvim.until("Kode.states()[1] == 'applied'")
        await nvim.until(f"{here} and {here}.newText:find('税')")
        await nvim.kode("comment", "no tax, please 不要税")
        await nvim.until("Kode.states()[2] == 'rejected'")

        await nvim.until(f"{here} and {here}.path == 'receipt.js'")
        await nvim.kode("change")
        await nvim.lua("vim.api.nvim_buf_set_lines(0, 0, -1, true, {'let 合计 = 9; // 我的 🙂'})")
        await nvim.keys("<C-s>")
        await nvim.until("Kode.states()[3] == 'replaced'")
        await nvim.until(f"{here} and {here}.newText:find('end = 3')")
        await nvim.lua("vim.api.nvim_buf_set_lines(0, 4, 4, true, {'// 中间 🎹'})")
        await nvim.kode("accept")
        await nvim.until("Kode.states()[4] == 'applied'")

        menu = f"// 你在打字 🎹\r\n{UNSAVED}\r\n{MENU.replace('龙井: 38', '龙井: 42, 普洱: 58')}"
        fixed = RECEIPT.replace("合计 = 1;", "合计 = 9; // 我的 🙂").replace("end = 1", "end = 3")
        receipt = f"{UNSAVED}\r\n{fixed}".replace("more", "// 中间 🎹\r\nmore")
        assert await nvim.lua("return Kode.text('菜单.js')") == menu
        assert await nvim.lua("return Kode.text('receipt.js')") == receipt

        await nvim.kode("undo", "turn")
        await nvim.until(
            "vim.deep_equal(Kode.states(), {'undone', 'rejected', 'undone', 'undone'})"
        )
        assert (
            await nvim.lua("return Kode.text('菜单.js')")
            == f"// 你在打字 🎹\r\n{UNSAVED}\r\n{MENU}"
        )
        assert await nvim.lua(
            "return Kode.text('receipt.js')"
        ) == f"{UNSAVED}\r\n{RECEIPT}".replace("more", "// 中间 🎹\r\nmore")
        await nvim.kode("redo")
        await nvim.until(
            "vim.deep_equal(Kode.states(), {'applied', 'rejected', 'replaced', 'applied'})"
        )
        assert await nvim.lua("return Kode.text('菜单.js')") == menu
        assert await nvim.lua("return Kode.text('receipt.js')") == receipt
        assert (scene.root / "菜单.js").read_bytes() == MENU.encode()
        assert (scene.root / "receipt.js").read_bytes() == RECEIPT.encode()


async def test_a_decision_is_one_undo_step_and_saving_accepts_nothing(play: Play) -> None:  # F1
    edits = proposal("receipt.js", ("合计 = 1", "合计 = 2"), ("end = 1", "end = 2"))
    async with play(answer(edits), answer(text("Two."))) as scene:
        nvim = scene.nvim
        await nvim.lua("vim.cmd.edit('receipt.js')")
        await nvim.kode("ask", "Mend it")
        await nvim.until("Kode.idle()")
        await nvim.lua("vim.cmd('wincmd p') vim.cmd.write()")
        assert await nvim.lua("return Kode.states()") == ["proposed", "proposed"]
        assert (scene.root / "receipt.js").read_bytes() == RECEIPT.encode()
        await nvim.kode("accept", "all")
        await nvim.until("vim.deep_equal(Kode.states(), {'applied', 'applied'})")
        await nvim.lua("vim.api.nvim_buf_set_lines(0, 0, 0, true, {'typed'})")
        await nvim.keys("u")
        both = RECEIPT.replace("合计 = 1", "合计 = 2").replace("end = 1", "end = 2")
        assert await nvim.lua("return Kode.text('receipt.js')") == both
        await nvim.keys("u")
        assert await nvim.lua("return Kode.text('receipt.js')") == RECEIPT


async def test_a_turn_is_stopped_and_the_next_one_runs(play: Play) -> None:  # F1
    endless = answer(text("It goes on"), hold("never"), text(" and on"))
    async with play(endless, answer(text("Here I am."))) as scene:
        nvim = scene.nvim
        await nvim.kode("ask", "Go")
        await nvim.until("Kode.said('It goes on')")
        await nvim.kode("stop")
        await nvim.until("Kode.idle()")
        assert await nvim.lua("return Kode.fold().lastTurn.stopReason") == "cancelled"
        assert (await nvim.chat())[-1] == "Stopped."
        await nvim.kode("ask", "Again")
        await nvim.until("Kode.said('Here I am.')")
        assert not await nvim.lua("return Kode.said('and on')")


async def test_an_earlier_prompt_is_edited_in_a_branch_of_its_own(play: Play) -> None:  # F1
    async with play(*(answer(text(f"answer {n}")) for n in (1, 2, 3))) as scene:
        nvim = scene.nvim
        for number, prompt in enumerate(("alpha", "beta"), 1):
            await nvim.kode("ask", prompt)
            await nvim.until("Kode.idle() and Kode.said(...)", f"answer {number}")
        row = (await nvim.chat()).index("beta") + 1
        await nvim.keys(f"{row}G")
        await nvim.kode("edit")
        assert await nvim.lua("return require('kode.chat').of(Kode.session()):input()") == "beta"
        await nvim.keys("Sgamma<Esc>")
        await nvim.kode("send")
        await nvim.until("Kode.idle() and Kode.said('answer 3')")
        lines = await nvim.chat()
        assert [
            line for line in lines if line.startswith(("alpha", "beta", "gamma", "answer"))
        ] == [
            "alpha",
            "answer 1",
            "gamma",
            "answer 3",
        ]
        assert "beta" not in scene.asked(2)

        await nvim.lua("Kode.chosen = {'answer 2', 'Go on'}")
        await nvim.kode("tree")
        await nvim.until("Kode.said('answer 2')")
        assert "gamma" not in await nvim.chat()


async def test_a_session_is_forked_and_both_go_on(play: Play) -> None:  # F1
    async with play(*(answer(text(f"answer {n}")) for n in (1, 2, 3))) as scene:
        nvim = scene.nvim
        await nvim.kode("ask", "alpha")
        await nvim.until("Kode.idle() and Kode.said('answer 1')")
        first = await nvim.lua("return Kode.session().id")
        await nvim.kode("fork")
        await nvim.until("Kode.session().id ~= ...", first)
        await nvim.kode("ask", "in the copy")
        await nvim.until("Kode.idle() and Kode.said('answer 2')")
        await nvim.lua("Kode.chosen = {'alpha  '}")
        await nvim.lua(
            "require('kode.sessions').current = require('kode.sessions').all[...]", first
        )
        await nvim.lua("require('kode.chat').open(Kode.session())")
        assert "in the copy" not in await nvim.chat()
        await nvim.kode("ask", "in the first")
        await nvim.until("Kode.idle() and Kode.said('answer 3')")
        assert "in the copy" not in scene.asked(2)
        assert "alpha" in scene.asked(1)


async def test_commands_right_behind_a_new_session_are_about_that_one(play: Play) -> None:  # F1
    async with play(*(answer(text(f"answer {n}")) for n in (1, 2, 3))) as scene:
        nvim = scene.nvim
        both = "vim.cmd('edit receipt.js') vim.cmd('Kode {}') vim.cmd('1,2Kode ask {}')"
        await nvim.lua(both.format("new", "alpha"))
        await nvim.until("Kode.idle() and Kode.said('answer 1')")
        await nvim.lua(both.format("new", "beta"))
        await nvim.until("Kode.idle() and Kode.said('answer 2')")
        assert "合计" in scene.asked(1)
        assert "alpha" not in scene.asked(1)
        await nvim.lua(both.format("fork", "gamma"))
        await nvim.until("Kode.idle() and Kode.said('answer 3')")
        assert await nvim.lua("return vim.tbl_count(require('kode.sessions').all)") == 3


async def test_a_process_killed_in_mid_turn_is_back_with_every_character(play: Play) -> None:  # F1
    first = answer(text("Half of 一个句子 🍵"), hold("never"), text(" gone"))
    async with play(first, answer(text("whole."))) as scene:
        nvim = scene.nvim
        await nvim.kode("ask", "Tell me")
        await nvim.until("Kode.said('🍵')")
        await nvim.lua("require('kode.chat').of(Kode.session()):set_input('a draft 草稿')")
        sidecar = kill_sidecar(nvim.process.pid)
        await nvim.until("Kode.session().lost")
        await nvim.until("Kode.idle() and not Kode.session().lost")
        lines = await nvim.chat()
        assert "Tell me" in lines
        assert lines[-1].startswith("The sidecar ended in the middle of this turn.")
        assert (
            await nvim.lua("return require('kode.chat').of(Kode.session()):input()")
            == "a draft 草稿"
        )
        assert "Half of 一个句子 🍵" in lines
        await nvim.kode("retry")
        await nvim.until("Kode.idle() and Kode.said('whole.')")
        (again,) = children(nvim.process.pid)
        assert again != sidecar
    assert gone(again)


async def test_prompts_wait_for_the_turn_or_are_heard_in_it(play: Play) -> None:  # F1
    reading = answer(text("I read."), hold("gate"), tool_call("read_file", {"path": "菜单.js"}))
    async with play(reading, answer(text("Heard.")), answer(text("And next."))) as scene:
        nvim = scene.nvim
        await nvim.kode("ask", "Go")
        await nvim.until("Kode.said('I read.')")
        await nvim.kode("ask", "later", "please")
        await nvim.kode("steer", "mind", "the", "tax")
        await nvim.until("#Kode.fold().steered == 1")
        assert await nvim.lua("return Kode.session().queue[1].text") == "later please"
        scene.model.release("gate")
        await nvim.until("Kode.idle() and Kode.said('And next.')")
        lines = await nvim.chat()
        said = [
            x for x in lines if x in ("Go", "mind the tax", "Heard.", "later please", "And next.")
        ]
        assert said == ["Go", "mind the tax", "Heard.", "later please", "And next."]
        assert "mind the tax" in scene.asked(1)
        assert "later please" not in scene.asked(1)


async def test_drafts_stay_with_their_sessions(play: Play) -> None:  # F1
    async with play(answer(text("one")), answer(text("two"))) as scene:
        nvim = scene.nvim
        await nvim.kode("ask", "alpha")
        await nvim.until("Kode.idle()")
        first = await nvim.lua("return Kode.session().id")
        await nvim.keys("Ghalf a thought 半<Esc>".replace("h", "ih", 1))
        await nvim.until("Kode.session().kept_draft == 'half a thought 半'")
        await nvim.kode("new")
        await nvim.until("Kode.session().id ~= ... and Kode.said('New session')", first)
        assert await nvim.lua("return require('kode.chat').of(Kode.session()):input()") == ""
    async with play() as scene:
        nvim = scene.nvim
        await nvim.lua("Kode.chosen = {'alpha'}")
        await nvim.kode("sessions", "alpha")
        await nvim.until("Kode.said('one')")
        draft = await nvim.lua("return require('kode.chat').of(Kode.session()):input()")
        assert draft == "half a thought 半"


async def test_what_is_attached_goes_along(play: Play) -> None:  # F1
    async with play(answer(text("Seen."))) as scene:
        nvim = scene.nvim
        (scene.root / "a.png").write_bytes(b"\x89PNG not really")
        await nvim.kode("add", "a.png")
        await nvim.until("#Kode.session().attachments == 1")
        await nvim.lua(
            "vim.cmd.edit('receipt.js') vim.api.nvim_buf_set_lines(0, 0, 1, true, {'// 改过'})"
        )
        await nvim.lua(
            "vim.diagnostic.set(vim.api.nvim_create_namespace('t'), 0,"
            " {{lnum = 1, col = 4, message = 'no such price', severity = 1}})"
        )
        await nvim.lua(
            "require('kode.command').run({fargs = {'add'}, range = 2, line1 = 1, line2 = 2})"
        )
        await nvim.kode("add", "diagnostics")
        await nvim.until("#Kode.session().attachments == 3")
        await nvim.kode("ask", "look", "at", "@菜单.js,", "please")
        await nvim.until("Kode.idle()")
        asked = scene.asked(0)
        for reported in (
            base64.b64encode(b"\x89PNG not really").decode(),
            "// 改过",
            "no such price",
            "龙井: 38",
            "look at @菜单.js, please",
        ):
            assert reported in asked
        assert await nvim.lua("return #Kode.session().attachments") == 0


async def test_what_happens_to_the_transcript_is_put_right(play: Play) -> None:  # F1
    async with play(answer(text("Words that stay."))) as scene:
        nvim = scene.nvim
        await nvim.kode("ask", "alpha")
        await nvim.until("Kode.idle()")
        before = await nvim.chat()
        await nvim.keys("Gimine<Esc>")
        await nvim.lua("vim.cmd('1,4delete')")
        await nvim.until("not require('kode.chat').of(Kode.session()).damaged")
        assert await nvim.chat() == before
        assert await nvim.lua("return require('kode.chat').of(Kode.session()):input()") == "mine"
        await nvim.keys("gg")
        assert not await nvim.lua("vim.cmd('doautocmd CursorMoved') return vim.bo.modifiable")
        await nvim.keys("G")
        assert await nvim.lua("vim.cmd('doautocmd CursorMoved') return vim.bo.modifiable")
        await nvim.keys("A and more<Esc>u")
        assert await nvim.lua("return require('kode.chat').of(Kode.session()):input()") == "mine"
        await nvim.keys("uuu")
        assert await nvim.chat() == before


async def test_one_hunk_is_taken_back_and_the_rest_decided_by_file(play: Play) -> None:  # F1
    calls = [
        proposal("receipt.js", ("合计 = 1", "合计 = 2"), ("end = 1", "end = 2")),
        proposal("菜单.js", ("tax = 0", "tax = 1")),
    ]
    async with play(answer(*calls), answer(text("Three."))) as scene:
        nvim = scene.nvim
        await nvim.lua("vim.cmd.edit('receipt.js')")
        await nvim.kode("ask", "Mend it")
        await nvim.until("Kode.idle() and #require('kode.review').waiting() == 3")
        await nvim.lua("vim.cmd('wincmd p')")
        await nvim.kode("accept", "file")
        await nvim.until("vim.deep_equal(Kode.states(), {'applied', 'applied', 'proposed'})")
        await nvim.until("require('kode.review').applied_here() == nil")
        await nvim.lua("vim.api.nvim_win_set_cursor(0, {5, 0})")
        await nvim.until("require('kode.review').applied_here() ~= nil")
        await nvim.kode("undo", "hunk")
        await nvim.until("vim.deep_equal(Kode.states(), {'applied', 'undone', 'proposed'})")
        fixed = RECEIPT.replace("合计 = 1", "合计 = 2")
        assert await nvim.lua("return Kode.text('receipt.js')") == fixed
        await nvim.kode("hunks")
        await nvim.until("#vim.fn.getqflist() == 1")
        assert "菜单.js" in await nvim.lua("return vim.fn.bufname(vim.fn.getqflist()[1].bufnr)")
        await nvim.kode("reject", "all")
        await nvim.until("Kode.states()[3] == 'rejected'")


async def test_a_process_that_keeps_dying_is_left_alone(play: Play) -> None:  # F1
    async with play(answer(text("Here.")), restarts=1) as scene:
        nvim = scene.nvim
        await nvim.kode("new")
        await nvim.until("Kode.said('New session')")
        for number in (1, 2):
            kill_sidecar(nvim.process.pid)
            if number == 1:
                await nvim.until("Kode.session().lost")
                await nvim.until("not Kode.session().lost")
        await nvim.until("table.concat(Kode.notes):find(':Kode restart tries again')")
        assert children(nvim.process.pid) == []
        await nvim.kode("restart")
        await nvim.until("require('kode.process').state.ready")
        await nvim.until("not Kode.session().lost")
        await nvim.kode("ask", "Still there?")
        await nvim.until("Kode.said('Here.')")


async def test_a_budget_is_shown_and_kept(play: Play) -> None:  # D8
    async with play(answer(text("Cheap.")), budget={"currency": "USD", "turn": 5}) as scene:
        nvim = scene.nvim
        await nvim.kode("ask", "Within it")
        await nvim.until("Kode.idle() and Kode.said('Cheap.')")
        assert re.search(r"turn 0\.0\d+ of 5 USD", await nvim.lua(STATUS))
        await nvim.kode("budget", "0.000001", "USD")
        await nvim.kode("ask", "Beyond it")
        await nvim.until("Kode.idle() and Kode.fold().lastTurn.stopReason == 'budget'")
        assert len(scene.model.chats) == 1
        assert "has no room for another request" in "\n".join(await nvim.chat())
        await nvim.kode("budget", "plenty")
        assert "such as 5 CNY" in (await nvim.lua("return Kode.notes"))[-1]


async def test_what_the_model_is_told_is_in_the_users_hand(play: Play) -> None:  # F12
    """Left out, restored, and a summary undone: the next request proves each."""
    says = [answer(text(one)) for one in ("First.", "Second.", "Third.", "The gist.", "Last.")]
    async with play(*says) as scene:
        nvim = scene.nvim

        async def ask(prompt: str, received: str) -> None:
            await nvim.kode("ask", prompt)
            await nvim.until("Kode.idle() and Kode.said(...)", received)

        async def choose(*labels: str) -> None:
            await nvim.lua("Kode.chosen = {...}", *labels)
            await nvim.kode("context", "edit")
            await nvim.until("#Kode.chosen == 0 and Kode.notes[#Kode.notes]:find('read anew')")

        await ask("the secret word 密语", "First.")
        await choose("密语", "Leave it out")
        await ask("And now?", "Second.")
        assert "密语" not in scene.asked(1)
        await choose("− ", "Restore it")
        await choose("密语", "Pin it")
        await ask("And then?", "Third.")
        assert "密语" in scene.asked(2)
        await nvim.kode("compact")
        await nvim.until("Kode.said('The gist.') or Kode.said('a summary of')")
        await nvim.lua("Kode.notes = {''}")
        await nvim.kode("context", "undo")
        await nvim.until("Kode.notes[#Kode.notes]:find('read anew')")
        await ask("What was it?", "Last.")
        assert "The gist." not in scene.asked(4)
        assert "密语" in scene.asked(4)


async def test_a_projects_mcp_server_waits_for_the_users_yes(play: Play) -> None:  # F5
    async with play(trusted=True) as scene:
        nvim, raw = scene.nvim, ROOT / "tests" / "support" / "mcp_server.py"
        entry = {"command": sys.executable, "args": [str(raw), "plain"]}
        named = json.dumps({"mcpServers": {"theirs": entry}})
        (scene.root / ".mcp.json").write_text(named, encoding="utf-8")
        await nvim.lua("Kode.chosen = {'theirs', 'Allow it', 'not started', 'Start it'}")
        await nvim.kode("mcp")
        await nvim.until("#Kode.offered == 2")
        labels, asked = await nvim.lua("return Kode.offered")
        assert "waits for your yes" in labels["labels"][0]
        assert str(raw) in asked["prompt"]
        assert asked["labels"] == ["Allow it", "Refuse it"]
        await nvim.kode("mcp")
        await nvim.until("#Kode.notes > 0")
        assert (await nvim.lua("return Kode.notes"))[-1] == "kode: theirs runs, and has 4 tools"


async def test_resources_of_mcp_servers_are_completed_and_go_along(play: Play) -> None:  # F5
    async with play(answer(text("Seen.")), trusted=True) as scene:
        nvim, raw = scene.nvim, ROOT / "tests" / "support" / "mcp_server.py"
        entry = {"command": sys.executable, "args": [str(raw), "offers"]}
        named = json.dumps({"mcpServers": {"shop": entry}})
        (scene.root / ".mcp.json").write_text(named, encoding="utf-8")
        await nvim.lua("Kode.chosen = {'shop', 'Allow it', 'not started', 'Start it'}")
        await nvim.kode("mcp")
        await nvim.until("#Kode.offered == 2")
        await nvim.kode("mcp")
        await nvim.until("#Kode.notes > 0")
        complete = "return require('kode.command').complete('@shop:', 'Kode add @shop:')"
        offered = ["@shop:shop://logo", "@shop:shop://rules", "@shop:shop://shelf/"]
        assert await nvim.lua(complete) == offered
        await nvim.kode("add", "@shop:shop://rules")
        await nvim.until("#Kode.session().attachments == 1")
        await nvim.kode("add", "@nobody:shop://rules")
        await nvim.until("Kode.notes[#Kode.notes]:find('nobody')")
        await nvim.kode("ask", "keep", "to", "@shop:shop://shelf/7,", "and", "@who:what")
        await nvim.until("Kode.idle() and Kode.said('Seen.')")
        for reported in ("只卖苹果", "on 7: 茶", "data, not instructions"):
            assert reported in scene.asked(0)
