"""The job of a day: a bug over three files, its tests, a fix, a commit; with real programs."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kode_sidecar.devtools.demo.model_server import RecordedResponse
from tests.support.files import write
from tests.support.git import git
from tests.support.long_job import edit, with_python
from tests.support.model_script import answer, text, tool_call

FILES = {
    "menu.py": 'PRICES = {"tea": 3, "cake": 4}\n',
    "bill.py": "from menu import PRICES\n\n\ndef total(items):\n"
    "    return sum(PRICES[item] for item in items)\n",
    "receipt.py": "from bill import total\n\n\ndef lines(items):\n"
    '    return [*items, f"total {total(items)}"]\n',
    "test_receipt.py": "import unittest\n\nimport receipt\n\n\n"
    "class Receipt(unittest.TestCase):\n    def test_a_discount_is_taken_off(self):\n"
    '        self.assertEqual(receipt.lines(["tea", "cake"], 2)[-1], "total 5 茶")\n',
}
PROMPT = "Let a receipt take a discount, run the tests, and commit."
FINISHED = {
    "menu.py": FILES["menu.py"] + 'CURRENCY = "茶"\n',
    "bill.py": FILES["bill.py"].replace("items)", "items, discount=0)", 1)[:-1] + " - discount\n",
    "receipt.py": "from bill import total\nfrom menu import CURRENCY\n\n\n"
    'def lines(items, discount=0):\n    return [*items, f"total {total(items, discount)} '
    '{CURRENCY}"]\n',
}
_TESTS = tool_call("run_command", {"argv": ["python", "-m", "unittest", "-q"]})
_COMMIT = ["git", "commit", "-qam", "Take a discount off the total"]
_HEAD = "def lines(items):\n"
_OLD = '    return [*items, f"total {total(items)}"]\n'
_NEW = '    return [*items, f"total {total(items, discount)} {CURRENCY}"]\n'

SCRIPT: Sequence[RecordedResponse] = (
    answer(*(tool_call("read_file", {"path": name}) for name in FILES)),
    answer(
        text("The discount goes through all three."),
        edit("menu.py", FILES["menu.py"], FINISHED["menu.py"]),
        edit("bill.py", "def total(items):", "def total(items, discount=0):"),
        edit(
            "receipt.py",
            f"from bill import total\n\n\n{_HEAD}{_OLD}",
            f"from bill import total\nfrom menu import CURRENCY\n\n\n"
            f"def lines(items, discount=0):\n{_NEW}",
        ),
    ),
    answer(_TESTS),
    answer(
        text("The discount is not taken off yet."),
        edit("bill.py", "for item in items)", "for item in items) - discount"),
    ),
    answer(_TESTS),
    answer(tool_call("run_command", {"argv": _COMMIT})),
    answer(text("Done. 完成")),
)
"""What the model says: its first try leaves out the discount, and the tests say so."""


def lay_out(project: Path) -> dict[str, str]:
    """Make the project, a repository with one commit; return variables for the program."""
    write(project, {**FILES})
    git(project, "init", "-q")
    for name, value in {"user.name": "Lin", "user.email": "lin@example.org"}.items():
        git(project, "config", name, value)
    git(project, "add", ".")
    git(project, "commit", "-qm", "Begin")
    return {"PATH": with_python()}


def results(body: dict[str, Any]) -> list[str]:
    """What tools said to the model, as a request has it."""
    return [str(one["content"]) for one in body["messages"] if one["role"] == "tool"]


def is_done(project: Path, said: Sequence[str]) -> None:
    """Check the files, and what the tests said to the model."""
    assert {name: (project / name).read_text("utf-8") for name in FINISHED} == FINISHED
    failed, passed = (one for one in said if "Ran 1 test" in one)
    assert "'total 7 茶' != 'total 5 茶'" in failed
    assert "OK" in passed.splitlines()


def is_committed(project: Path) -> None:
    """Check the history: one more commit, and nothing left."""
    assert git(project, "log", "--format=%s").split() == [*_COMMIT[-1].split(), "Begin"]
    assert git(project, "status", "--short", "--untracked-files=no") == ""
