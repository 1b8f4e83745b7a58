"""What the sidecar knows, in Neovim: pages to read, lists to choose from, and a stopped queue."""

from tests.editors.neovim_driver import PLUGIN, Neovim
from tests.editors.neovim_scene import Play
from tests.support.model_script import answer, failure, hold, text, tool_call


async def page(nvim: Neovim, *words: str) -> str:
    """What `:Kode` shows in a window of its own, which `q` closes."""
    await nvim.lua("Kode.at = vim.api.nvim_get_current_win()")
    await nvim.kode(*words)
    await nvim.until("vim.fn.bufname():find('kode://' .. ...) and vim.bo.buftype", words[0])
    lines = await nvim.lua("return vim.api.nvim_buf_get_lines(0, 0, -1, false)")
    await nvim.typed("q")
    await nvim.until("vim.api.nvim_get_current_win() == Kode.at")
    return "\n".join(lines)


async def test_pages_are_read_as_text(play: Play) -> None:
    async with play(answer(text("Hi."))) as scene:
        nvim = scene.nvim
        await nvim.kode("ask", "Go")
        await nvim.until("Kode.idle()")
        doctor = await page(nvim, "doctor")
        assert doctor.startswith("kode-sidecar ")
        assert "✓ settings: " in doctor
        assert "sk-t…" in doctor or "api_key" in doctor
        assert "{" not in doctor.split("Settings")[0]
        assert "ide-chat" not in await page(nvim, "skills")
        usage = await page(nvim, "usage")
        assert usage.startswith("The last seven days: ")
        assert "1 answers" in usage
        context = await page(nvim, "context")
        assert "tokens" in context
        assert "Go" in context


async def test_all_of_a_long_result_is_read_by_one_key(play: Play) -> None:
    async with play(answer(tool_call("read_file", {"path": "long.txt"})), answer(text("Hi."))) as s:
        nvim = s.nvim
        (s.root / "long.txt").write_text("".join(f"row {number} 长\n" for number in range(900)))
        await nvim.kode("ask", "Go")
        await nvim.until("Kode.idle()")
        row = next(n for n, line in enumerate(await nvim.chat(), 1) if "read_file" in line)
        await nvim.typed(f"<Esc>{row}G")
        await nvim.typed("<Tab>")
        assert not await nvim.lua("return Kode.said('row 600 长')")
        await nvim.typed("K")
        await nvim.until("vim.fn.bufname():find('kode://output')")
        shown = await nvim.lua("return vim.api.nvim_buf_get_lines(0, 0, -1, false)")
        assert any("row 600 长" in line for line in shown)


async def test_effort_and_rules_are_chosen_from_lists(play: Play) -> None:
    async with play(answer(text("Hi."))) as scene:
        nvim = scene.nvim
        await nvim.kode("ask", "Go")
        await nvim.until("Kode.idle()")
        session = await nvim.lua("return Kode.session().id")
        await nvim.lua("Kode.chosen = {'high'}")
        await nvim.kode("effort")
        await nvim.until("#Kode.chosen == 0")
        got = await nvim.asked("kode/session/get", {"sessionId": session})
        assert got["session"]["effort"] == "high"
        await nvim.lua("Kode.chosen = {'.git/**'}")
        await nvim.kode("permissions")
        await nvim.until("table.concat(Kode.notes):find('built in')")
        rule = {"tool": "propose_edit", "pattern": "gen/**", "effect": "deny"}
        await nvim.asked("kode/permission/set", {"sessionId": session, **rule})
        await nvim.lua("Kode.chosen = {'gen/**', 'Remove'}")
        await nvim.kode("permissions")
        await nvim.until("#Kode.chosen == 0")
        await nvim.lua("Kode.chosen = {'gen/**'} Kode.offered = {}")
        await nvim.kode("permissions")
        await nvim.until("#Kode.offered == 1")
        labels = (await nvim.lua("return Kode.offered"))[0]["labels"]
        assert not [label for label in labels if "gen/**" in label]
        await nvim.kode("memory")
        await nvim.until("table.concat(Kode.notes):find('nothing is remembered')")


async def test_a_key_is_set_in_a_terminal(play: Play) -> None:
    async with play() as scene:
        await scene.nvim.kode("key")
        await scene.nvim.until(
            "vim.bo.buftype == 'terminal' and"
            " table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false)):find('host')"
        )


async def test_what_waits_for_a_stopped_turn_comes_back_into_the_input(play: Play) -> None:
    async with play(answer(text("I read."), hold("never"))) as scene:
        nvim = scene.nvim
        await nvim.kode("ask", "Go")
        await nvim.until("Kode.said('I read.')")
        await nvim.kode("add", "receipt.js")
        await nvim.until("#Kode.session().attachments == 1")
        await nvim.kode("ask", "later", "please")
        await nvim.until("#Kode.session().queue == 1")
        await nvim.lua("require('kode.chat').of(Kode.session()):set_input('half a thought')")
        await nvim.kode("stop")
        await nvim.until("Kode.idle()")
        written = await nvim.lua("return require('kode.chat').of(Kode.session()):input()")
        assert written == "later please\nhalf a thought"
        assert await nvim.lua("return #Kode.session().queue") == 0
        assert await nvim.lua("return #Kode.session().attachments") == 1
        assert len(scene.model.chats) == 1


async def test_sessions_without_a_word_are_not_listed(play: Play) -> None:
    async with play() as scene:
        await scene.nvim.kode("new")
        await scene.nvim.until("Kode.said('New session')")
    async with play(answer(text("Hi."))) as scene:
        nvim = scene.nvim
        await nvim.kode("ask", "alpha")
        await nvim.until("Kode.idle()")
        await nvim.kode("sessions")
        await nvim.until("#Kode.offered == 1")
        (label,) = (await nvim.lua("return Kode.offered"))[0]["labels"]
        assert "alpha" in label


async def test_an_old_neovim_reads_one_sentence(play: Play) -> None:
    """Neovim 0.7 itself is tried by hand: it is not in the suites of today."""
    async with play() as scene:
        nvim = scene.nvim
        await nvim.lua("vim.fn.has = function(what) return what == 'nvim-0.10' and 0 or 1 end")
        await nvim.lua("vim.g.loaded_kode = nil vim.cmd.source((...))", f"{PLUGIN}/plugin/kode.lua")
        said = "return vim.fn.execute('Kode chat hi'):gsub('^%s+', '')"
        assert await nvim.lua(said) == "kode needs Neovim 0.10 or newer"
        await nvim.lua("vim.cmd('checkhealth kode')")
        health = "\n".join(await nvim.lua("return vim.api.nvim_buf_get_lines(0, 0, -1, false)"))
        assert "kode needs Neovim 0.10 or newer" in health
        assert "sidecar" not in health


async def test_a_refused_key_says_how_to_set_another(play: Play) -> None:
    refused = failure(401, "invalid_authentication_error", "Invalid Authentication")
    async with play(refused, answer(text("Here."))) as scene:
        nvim = scene.nvim
        await nvim.kode("ask", "Go")
        await nvim.until("Kode.idle() and Kode.fold().lastTurn.error")
        lines = await nvim.chat()
        assert lines[-1] == "`:Kode key` sets a key. `:Kode retry` asks again."
        assert "did not accept the API key" in lines[-3]
        await nvim.kode("retry")
        await nvim.until("Kode.idle() and Kode.said('Here.')")
