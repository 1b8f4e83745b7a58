"""A turn of 20,000 deltas, while the user writes.

`python3 -m tests.editors.test_nvim_stream` says how long Neovim keeps a key waiting meanwhile.
"""

import asyncio
import sys
import tempfile
from pathlib import Path
from typing import Any

from kode_sidecar.devtools.demo.model_server import ModelServer, Recording
from tests.editors.neovim_builds import SUITES, neovim
from tests.editors.neovim_driver import Neovim, running
from tests.editors.neovim_scene import Play, lay_out
from tests.support.model_script import DemoText, RecordedResponse, answer, text

DELTAS = 20_000
TYPED = "你好 while it streams 🎹"

# A timer that should come every 5 ms; how much later it comes is how long a key would wait. What
# Neovim computes in between is what it would wait on a machine where nothing else runs.
MEASURE = """
  Kode.late, Kode.busy, Kode.timer = {}, {}, vim.uv.new_timer()
  local function computed()
    local used = vim.uv.getrusage()
    local seconds = used.utime.sec + used.stime.sec
    return seconds * 1e3 + (used.utime.usec + used.stime.usec) / 1e3
  end
  local last, done = vim.uv.hrtime(), computed()
  Kode.timer:start(5, 5, vim.schedule_wrap(function()
    local now, all = vim.uv.hrtime(), computed()
    table.insert(Kode.late, math.max(0, (now - last) / 1e6 - 5))
    table.insert(Kode.busy, all - done)
    last, done = now, all
  end))
"""
FIGURES = """
  Kode.timer:stop()
  local told = { #Kode.late }
  for _, times in ipairs({ Kode.late, Kode.busy }) do
    table.sort(times)
    for _, share in ipairs({ 0.5, 0.99, 1 }) do
      table.insert(told, times[math.ceil(#times * share)])
    end
  end
  return told
"""
MOST_MS = 50


def words() -> tuple[str, ...]:
    """What the model says: prose in lines, code and lists, with words of several bytes."""
    said: list[str] = []
    for number in range(DELTAS):
        word = f"词{number} " if number % 7 == 0 else f"w{number} "
        if number % 240 == 239:
            word += f"\n\n```lua\nlocal x = {number}\n```\n\n- 项目 🍵 `code`\n"
        elif number % 12 == 11:
            word += "\n"
        said.append(word)
    return tuple(said)


def script(delay_ms: float = 0) -> tuple[RecordedResponse, ...]:
    return answer(text("Ready.")), answer(DemoText(words()), delay_ms=delay_ms)


async def stream(nvim: Neovim) -> str:
    """The text that the long answer has become in the chat."""
    await nvim.kode("ask", "Short")
    await nvim.until("Kode.idle()")
    await nvim.lua(MEASURE)
    await nvim.kode("ask", "Long")
    await nvim.until("Kode.fold().turnId")
    for character in TYPED:
        await nvim.keys(f"GA{character}<Esc>")
    await nvim.until("not Kode.fold().turnId")
    return "\n".join(await nvim.chat()).split("## Kode\n")[2].strip()


async def test_twenty_thousand_deltas_come_in_order_while_the_user_writes(play: Play) -> None:  # F1
    async with play(*script()) as scene:
        said = await stream(scene.nvim)
        assert said == "".join(words()).strip()
        written = "return require('kode.chat').of(Kode.session()):input()"
        assert await scene.nvim.lua(written) == TYPED
        *_, most, _ = await scene.nvim.lua(FIGURES)
        assert most < MOST_MS


async def measure(suite: str, delay_ms: float) -> list[Any]:
    """Samples; median, 99th percentile and maximum of the waiting, and of the computing, in ms."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "project"
        lay_out(root)
        async with ModelServer(Recording(script(delay_ms)), paced=delay_ms > 0) as model:
            own = {"KIMI_BASE_URL": model.base_url, "KIMI_API_KEY": "any", "KODE_HOME": folder}
            async with running(neovim(suite), Path(folder) / "nvim", root, own, {}) as nvim:
                await stream(nvim)
                return await nvim.lua(FIGURES)


def main() -> None:
    for suite in SUITES:
        for delay_ms in (0, 0.4):
            count, median, most, longest, *busy = asyncio.run(measure(suite, delay_ms))
            sys.stdout.write(
                f"{suite}, {delay_ms} ms between deltas, {count} samples: a key waits"
                f" {median:.1f} ms (median), {most:.1f} ms (99 %), {longest:.1f} ms (longest);"
                f" of it Neovim computes {busy[0]:.1f}, {busy[1]:.1f}, {busy[2]:.1f} ms\n"
            )


if __name__ == "__main__":
    main()
