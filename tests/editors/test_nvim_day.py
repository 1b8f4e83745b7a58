"""A job of three files in real Neovim: prompt, edits, tests fail, fix, tests pass, commit (F1).

Every key comes from the keyboard's side. Beside the prompt the user chooses the mode once and
answers three questions: trust, the tests, the commit.
"""

import subprocess
from pathlib import Path

from tests.editors.neovim_scene import Play, proposal
from tests.support.model_script import answer, text, tool_call

FILES = {
    "prices.py": "TEA = 38\nTAX = 0\n",
    "cart.py": "from prices import TEA\n\n\ndef total(count):\n    return TEA\n",
    "receipt.py": (
        "from cart import total\nfrom prices import TAX\n\n\n"
        "def line(count):\n    return f'合计 {total(count)}'\n"
    ),
    "test_shop.py": (
        "import unittest\nfrom receipt import line\n\n\nclass Shop(unittest.TestCase):\n"
        "    def test_line(self):\n        self.assertEqual(line(2), '合计 77.5')\n"
    ),
}
TESTS = tool_call("run_command", {"argv": ["python3", "-m", "unittest"]})
COMMIT = tool_call("run_command", {"argv": ["git", "commit", "-qam", "Add tax 税"]})
ANSWERS = (
    answer(
        proposal("prices.py", ("TAX = 0", "TAX = 1.5")),
        proposal("cart.py", ("return TEA", "return TEA * count")),
        proposal("receipt.py", ("{total(count)}", "{total(count) - TAX}")),
    ),
    answer(TESTS),
    answer(proposal("receipt.py", ("total(count) - TAX", "total(count) + TAX"))),
    answer(TESTS),
    answer(COMMIT),
    answer(text("The tests pass, and it is committed.")),
)


def git(root: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=root, capture_output=True, encoding="utf-8", check=True
    )
    return done.stdout


def lay_out_shop(root: Path) -> None:
    for name, said in FILES.items():
        (root / name).write_text(said, encoding="utf-8")
    git(root, "init", "-q")
    for name, value in (("name", "Lin"), ("email", "lin@example.com"), ("signingKey", "")):
        git(root, "config", f"user.{name}", value)
    git(root, "add", *FILES)
    git(root, "commit", "-qm", "The shop")


async def test_three_files_are_fixed_tested_and_committed(play: Play) -> None:
    async with play(*ANSWERS) as scene:
        nvim, root = scene.nvim, scene.root
        lay_out_shop(root)
        presses: list[str] = []

        async def press(*keys: str) -> None:
            for key in keys:
                presses.append(key)
                await nvim.typed(key)

        async def question(title: str, keys: str) -> None:
            await nvim.until("Kode.said(...)", f"? {title}")
            await press("\\q")
            await nvim.until("require('kode.chat').of(Kode.session()):entered() ~= nil")
            await press(keys)
            await nvim.until("not Kode.said(...)", f"? {title}")

        await nvim.typed(":edit receipt.py<CR>:Kode chat<CR>")
        await nvim.until("Kode.session() and vim.bo.filetype == 'kode'")
        await nvim.lua("Kode.chosen = {'keep: '}")
        await press("\\m")
        await nvim.until("Kode.fold().mode == 'keep'")
        await nvim.typed("iThe receipt lacks the tax. Fix it, test it, commit it.<C-s><Esc>")
        await question("Run python3 -m unittest", "2")  # trusts the folder
        await nvim.until("Kode.said('FAILED (failures=1)') or Kode.said('? Run python3')")
        await question("Run python3 -m unittest", "4")  # always
        await question("Run git commit", "2")
        await nvim.until("Kode.idle() and Kode.said('it is committed')")
        assert await nvim.lua("return Kode.said('OK')")
        assert git(root, "log", "-1", "--format=%s") == "Add tax 税\n"
        assert git(root, "status", "--short", "-uno") == ""
        assert "total(count) + TAX" in (root / "receipt.py").read_text(encoding="utf-8")
        assert presses == ["\\m", *["\\q", "2", "\\q", "4", "\\q", "2"]]
