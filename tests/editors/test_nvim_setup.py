"""The plugin as it is installed: what it loads, how it starts, what it says is missing."""

import re

from tests.editors.neovim_driver import PLUGIN
from tests.editors.neovim_scene import Play
from tests.support.model_script import answer, hold, text
from tests.support.processes import children, gone


async def test_nothing_is_loaded_before_it_is_used(play: Play) -> None:  # F1
    async with play() as scene:
        nvim = scene.nvim
        assert await nvim.lua("return vim.fn.exists(':Kode')") == 2
        assert not [
            name
            for name in await nvim.lua("return vim.tbl_keys(package.loaded)")
            if name.startswith("kode")
        ]
        assert await nvim.lua("return require('kode').statusline()") == ""
        assert await nvim.lua("return vim.fn.maparg('<Plug>(kode-accept-hunk)', 'n')") != ""
        listed = await nvim.lua("return vim.fn.execute('nmap')")
        own = [line.split()[1] for line in listed.splitlines() if "Kode " in line]
        assert own
        assert all(keys.startswith("<Plug>(kode-") for keys in own)


async def test_the_command_completes_its_verbs(play: Play) -> None:  # F1
    async with play() as scene:
        verbs = await scene.nvim.lua("return vim.fn.getcompletion('Kode ', 'cmdline')")
        assert {"accept", "chat", "demo", "edit", "fork", "sessions", "undo"} <= set(verbs)
        assert await scene.nvim.lua("return vim.fn.getcompletion('Kode accept ', 'cmdline')") == [
            "all",
            "file",
        ]
        await scene.nvim.lua("vim.cmd('Kode nonsense')")
        await scene.nvim.until("#Kode.notes > 0")  # verbs in files are looked up first
        assert "there is no :Kode nonsense" in (await scene.nvim.lua("return Kode.notes"))[0]


async def test_every_verb_and_map_is_in_the_help(play: Play) -> None:  # F1
    said = (PLUGIN / "doc" / "kode.txt").read_text(encoding="utf-8")
    maps = set(re.findall(r"\['([a-z-]+)'\] = '", (PLUGIN / "plugin" / "kode.lua").read_text()))
    async with play() as scene:
        verbs = await scene.nvim.lua("return vim.fn.getcompletion('Kode ', 'cmdline')")
        assert [verb for verb in verbs if f":Kode {verb}" not in said] == []
        assert [name for name in maps if f"<Plug>(kode-{name})" not in said] == []
        await scene.nvim.lua("vim.cmd('helptags ' .. vim.env.KODE_NVIM_PLUGIN .. '/doc')")
        (PLUGIN / "doc" / "tags").unlink()


async def test_health_says_what_is_missing(play: Play) -> None:  # F1
    async with play(cmd=["no-such-sidecar", "serve"], nonsense=1) as scene:
        nvim = scene.nvim
        await nvim.lua("vim.cmd('checkhealth kode')")
        said = "\n".join(await nvim.lua("return vim.api.nvim_buf_get_lines(0, 0, -1, false)"))
        assert "no-such-sidecar cannot be run" in said
        assert "pipx install kode-sidecar" in said
        assert "there is no option `nonsense`" in said
        await nvim.kode("new")
        await nvim.until("#Kode.notes > 0")
        assert "no-such-sidecar cannot be run" in (await nvim.lua("return Kode.notes"))[0]


async def test_health_of_a_sidecar_that_runs(play: Play) -> None:  # F1
    async with play() as scene:
        nvim = scene.nvim
        await nvim.kode("new")
        await nvim.until("Kode.session()")
        await nvim.lua("vim.cmd('checkhealth kode')")
        said = "\n".join(await nvim.lua("return vim.api.nvim_buf_get_lines(0, 0, -1, false)"))
        assert re.search(r"it runs, protocol \d", said)
        assert "cannot be run" not in said


async def test_the_sidecar_ends_with_neovim_in_mid_turn(play: Play) -> None:  # F1
    async with play(answer(text("It goes on"), hold("never"))) as scene:
        await scene.nvim.kode("ask", "Go")
        await scene.nvim.until("Kode.said('It goes on')")
        (sidecar,) = children(scene.nvim.process.pid)
        scene.nvim.process.kill()
        await scene.nvim.process.wait()
        assert gone(sidecar)


async def test_a_program_that_dies_at_once_is_told_and_not_started_again(play: Play) -> None:  # F1
    async with play(cmd=["sh", "-c", "exit 3"]) as scene:
        await scene.nvim.kode("new")
        await scene.nvim.until("#Kode.notes > 0 and table.concat(Kode.notes):find('with code 3')")


async def test_the_demo_plays_without_a_key(play: Play) -> None:  # F1
    async with play() as scene:
        nvim = scene.nvim
        await nvim.lua("vim.env.KIMI_BASE_URL, vim.env.KIMI_API_KEY = nil, nil")
        await nvim.kode("demo")
        await nvim.until("Kode.idle()")
        assert await nvim.lua("return Kode.states()") == ["proposed", "proposed"]
        await nvim.kode("accept", "all")
        await nvim.until("vim.deep_equal(Kode.states(), {'applied', 'applied'})")
        assert "priceOf(name) * count" in await nvim.lua("return Kode.text('receipt.js')")
        started = children(nvim.process.pid)
    assert all(gone(process) for process in started)


async def test_lsp_enable_is_enough(play: Play) -> None:  # F3
    async with play(answer(text("Hello."))) as scene:
        nvim = scene.nvim
        if await nvim.lua("return vim.fn.has('nvim-0.11')") == 0:
            return
        await nvim.lua("vim.lsp.enable('kode') vim.cmd.edit('receipt.js')")
        await nvim.until("#vim.lsp.get_clients({name = 'kode', bufnr = 0}) == 1")
        await nvim.kode("ask", "Hi")
        await nvim.until("Kode.said('Hello.')")
        assert await nvim.lua("return #vim.lsp.get_clients({name = 'kode'})") == 1
