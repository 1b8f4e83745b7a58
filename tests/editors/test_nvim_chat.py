"""How the chat in Neovim looks, and where one goes from it: the screen itself is read."""

from tests.editors.neovim_driver import Neovim
from tests.editors.neovim_scene import Play
from tests.support.model_script import answer, hold, text, tool_call

SLOW = """
import pathlib, time
for number in range(12):
    print("line", number, flush=True)
while not pathlib.Path("go").exists():
    time.sleep(0.01)
print("the end 完")
"""
ANSWER = """It is in `receipt.js:5` and **there**.

| 文件 | Lines |
|---|---|
| `receipt.js` | 12 |
| 菜单 | **3** |

```python
def total(): return 1  # 税
```

Done."""


async def screen(nvim: Neovim) -> list[str]:
    return await nvim.lua("return Kode.screen()")


async def alone(nvim: Neovim) -> None:
    """Only the chat is on the screen."""
    await nvim.lua("vim.cmd.only() vim.o.columns, vim.o.lines = 90, 40")


async def test_a_commands_output_is_seen_while_it_runs_and_after(play: Play) -> None:
    run = answer(tool_call("run_command", {"argv": ["python3", "slow.py"]}))
    async with play(run, answer(text("It ran.")), trusted=True) as scene:
        nvim = scene.nvim
        (scene.root / "slow.py").write_text(SLOW)
        await nvim.kode("ask", "Go")
        await nvim.until("Kode.said('? Run python3 slow.py')")
        await nvim.kode("answer")
        await nvim.until("require('kode.chat').of(Kode.session()):entered() ~= nil")
        await nvim.typed("2")
        await nvim.until("Kode.said('┆ line 11')")
        lines = await nvim.chat()
        at = lines.index("▸ ◌ Run python3 slow.py")
        assert lines[at + 1 :] == [f"  ┆ line {number}" for number in range(2, 12)]
        assert "running" in await nvim.lua("return require('kode').statusline()")
        (scene.root / "go").touch()
        await nvim.until("Kode.idle() and Kode.said('It ran.')")
        lines = await nvim.chat()
        at = next(n for n, line in enumerate(lines) if line.startswith("▸ ✓ Run python3 slow.py"))
        assert lines[at + 10] == "  ┆ the end 完"
        assert not await nvim.lua("return Kode.said('┆ line 2\\n')")
        await nvim.keys(f"{at + 1}G<Tab>")
        assert await nvim.lua("return Kode.said('line 0')")


async def test_tables_are_drawn_and_code_has_its_colours(play: Play) -> None:
    parts = [text(part) for part in ANSWER.split("|")]
    barred = [part for one in parts for part in (one, text("|"))][:-1]
    async with play(answer(*barred), answer(text("Again."))) as scene:
        nvim = scene.nvim
        await nvim.kode("ask", "Go")
        await nvim.until("Kode.idle() and Kode.said('Done.')")
        await alone(nvim)
        await nvim.lua("vim.api.nvim_win_set_cursor(0, {1, 0})")
        rows = await screen(nvim)
        at = next(n for n, row in enumerate(rows) if "文件" in row)
        assert rows[at : at + 4] == [
            "│ 文件       │ Lines │",
            "│────────────│───────│",
            "│ receipt.js │ 12    │",
            "│ 菜单       │ 3     │",
        ]
        assert ANSWER.split("\n")[4] in await nvim.chat()
        code = (await nvim.chat()).index("def total(): return 1  # 税")
        groups = await nvim.lua(
            "local chat = require('kode.chat').of(Kode.session()) return vim.tbl_map(function(mark)"
            " return mark[4].hl_group end, vim.api.nvim_buf_get_extmarks(chat.buffer, -1, {..., 0},"
            " {..., -1}, {details = true}))".replace("...", str(code))
        )
        assert {"pythonStatement", "pythonFunction", "pythonComment"} <= set(groups)


async def test_a_place_that_an_answer_names_is_gone_to_in_a_window_for_code(play: Play) -> None:
    async with play(answer(text(ANSWER))) as scene:
        nvim = scene.nvim
        await nvim.kode("ask", "Go")
        await nvim.until("Kode.idle() and Kode.said('Done.')")
        row = next(n for n, line in enumerate(await nvim.chat(), 1) if "receipt.js:5" in line)
        for keys in ("f:<CR>", "gf"):
            await nvim.lua("vim.fn.win_gotoid(vim.fn.bufwinid('kode://chat'))")
            await nvim.keys(f"{row}G0fj{keys}")
            assert await nvim.lua("return vim.fn.expand('%:t')") == "receipt.js"
            assert await nvim.lua("return vim.fn.line('.')") == 5
        assert await nvim.lua("return #vim.api.nvim_list_wins()") == 2


async def test_the_chats_window_stays_the_chats(play: Play) -> None:
    async with play(answer(text("Hi."))) as scene:
        nvim = scene.nvim
        await nvim.lua("vim.cmd.edit('receipt.js')")
        await nvim.kode("ask", "Go")
        await nvim.until("Kode.idle()")
        chat = await nvim.lua("return vim.api.nvim_get_current_win()")
        await nvim.lua("vim.cmd.edit('菜单.js')")
        await nvim.until("vim.api.nvim_get_current_win() ~= ...", chat)
        assert await nvim.lua("return vim.fn.expand('%:t')") == "菜单.js"
        shown = "return vim.bo[vim.api.nvim_win_get_buf(...)].filetype"
        assert await nvim.lua(shown, chat) == "kode"


async def test_a_wait_is_read_whole_in_a_narrow_window(play: Play) -> None:
    async with play(answer(hold("gate"), text("Hi."))) as scene:
        nvim = scene.nvim
        await nvim.kode("ask", "Go")
        await nvim.until("Kode.fold() and Kode.fold().turnId")
        await nvim.lua("vim.cmd('vertical resize 30')")
        await nvim.lua(
            "Kode.fold():event({ type = 'model.waiting', turnId = Kode.fold().turnId, message ="
            " 'waits 40 s: the host allows three requests a minute 每分钟三次' })"
        )
        await nvim.chat()
        rows = "\n".join(row.rsplit("│", 1)[-1].rstrip() for row in await screen(nvim))
        assert "waits 40 s: the host allows\nthree requests a minute\n每分钟三次" in rows
        assert "running 0 s" in rows or "waiting 0 s" in rows
        scene.model.release("gate")
        await nvim.until("Kode.idle()")
