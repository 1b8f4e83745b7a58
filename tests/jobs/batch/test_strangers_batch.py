"""Nothing that a stranger's batch asks for happens before its opener says so (W17).

It names a configuration, a file of variables and a scheduler: a host of the stranger's would get
the opener's key, and a scheduler of theirs could run anything.
"""

import asyncio
import json
import os
import subprocess
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from kode_sidecar.devtools.demo.model_server import ModelServer, Recording
from kode_sidecar.jobs.batch import BatchOptions, open_batch
from kode_sidecar.servers.boot.system import SystemClock
from tests.support.files import write
from tests.support.model_script import answer, text
from tests.support.program import PROGRAM, ROOT
from tests.support.sidecar import HANG_SECONDS

pytestmark = pytest.mark.program

KEY = "the-openers-own-key-4711"
JOB = """\
kgent: {schema_version: 1}
profile: {id: tester, role: You test things.}
model: kimi-k2.6
"""


class Opener:
    """A user with a key, who was given `out`; its model is the stranger's own host."""

    def __init__(self, folder: Path, model: ModelServer) -> None:
        self.folder, self.out, self.model = folder, folder / "out", model
        hosts = f"KIMI_BASE_URL={model.base_url}\n"
        write(folder, {"job.yaml": JOB, "their.env": hosts, "repos/a/a.txt": "a\n"})
        self.options = BatchOptions(
            config=folder / "job.yaml",
            tasks=folder / "repos",
            out=self.out,
            prompt="Do it.",
            env_file=str(folder / "their.env"),
        )
        open_batch(self.options, SystemClock()).close()

    def kode(self, *words: str) -> "subprocess.CompletedProcess[str]":
        """Run a command in the opener's account."""
        names = ("KIMI_BASE_URL", "MOONSHOT_API_KEY")
        variables = {name: one for name, one in os.environ.items() if name not in names}
        home = {"KODE_HOME": str(self.folder / "home"), "KIMI_API_KEY": KEY}
        return subprocess.run(
            [*PROGRAM, *words],
            env={**variables, **home, "PYTHONPATH": str(ROOT), "PYTHONUTF8": "1"},
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            timeout=HANG_SECONDS,
            check=False,
        )

    def assert_refused(self) -> None:
        done = self.kode("batch", "resume", "out", "--failed")
        assert done.returncode == 1
        assert "was not begun from your account" in done.stderr
        assert "resume --trust" in done.stderr
        assert "Traceback" not in done.stderr
        assert self.model.chats == []
        assert not list(self.out.glob("runs/*/*"))


@pytest.fixture
async def opener(tmp_path: Path) -> AsyncIterator[Opener]:
    async with ModelServer(Recording((answer(text("Done.")),)), paced=False) as model:
        yield Opener(tmp_path, model)


async def in_thread(opener: Opener, *words: str) -> "subprocess.CompletedProcess[str]":
    """Run a command while the model serves."""
    return await asyncio.to_thread(opener.kode, *words)


async def test_it_is_resumed_on_the_openers_word_only(opener: Opener) -> None:
    opener.assert_refused()
    refused = opener.kode("batch", "resume", "out")
    for named in (str(opener.folder / "job.yaml"), str(opener.folder / "their.env")):
        assert named in refused.stderr
    trusted = await in_thread(opener, "batch", "resume", "out", "--trust")
    assert trusted.returncode == 0, trusted.stderr
    assert len(opener.model.chats) == 1
    assert opener.kode("batch", "resume", "out").returncode == 0  # it is known from now on


@pytest.mark.parametrize("name", ["config_path", "env_file", "scheduler", "prompt"])
async def test_a_batch_of_ones_own_that_others_changed(opener: Opener, name: str) -> None:
    begun = opener.kode(
        "batch",
        "--config",
        "job.yaml",
        "--tasks",
        "repos",
        "--prompt",
        "Do it.",
        "--out",
        "out",
        "--env-file",
        "nothing.env",
        "--budget",
        "0USD",
    )
    assert "was not begun" not in begun.stderr
    opener.model.chats.clear()
    if name == "prompt":
        changed = replace(opener.options, prompt="Do something else.")
        open_batch(changed, SystemClock()).close()
    else:
        file = opener.out / "batch.json"
        record = json.loads(file.read_bytes())
        file.write_text(json.dumps({**record, name: "tcp://127.0.0.1:9"}), encoding="utf-8")
    opener.assert_refused()


async def test_looking_at_it_asks_and_starts_nothing(opener: Opener) -> None:
    for words in (("status", "out"), ("status", "out", "--json"), ("report", "out")):
        done = opener.kode("batch", *words)
        assert done.returncode in (0, 3), done.stderr
        assert KEY not in done.stdout + done.stderr
    for words in (("list", "--folder", "out"), ("show", "out/runs/a/1")):
        opener.kode("runs", *words)
    assert opener.model.chats == []
    assert not list(opener.out.glob("runs/*/*"))
    assert KEY not in (opener.out / "report.html").read_text(encoding="utf-8")
