"""Who reads what a command prints may go, and a disk may be full: no traceback, no hang."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kode_sidecar.devtools.demo.model_server import ModelServer, Recording
from tests.support.model_script import answer, text
from tests.support.program import PROGRAM
from tests.support.sidecar import HANG_SECONDS
from tests.terminal.cli.test_commands import environment

pytestmark = pytest.mark.program
COMMANDS = [["ask", "hello"], ["ask", "--json", "hello"], ["doctor"], ["skills"], ["chat"]]


async def ended(model: ModelServer, root: Path, arguments: list[str], out: int) -> tuple[int, str]:
    child = await asyncio.create_subprocess_exec(
        *(*PROGRAM, *arguments),
        cwd=root,
        env=environment(model),
        stdin=subprocess.PIPE,
        stdout=out,
        stderr=subprocess.PIPE,
    )
    os.close(out)
    async with asyncio.timeout(HANG_SECONDS):
        _, err = await child.communicate(b"hello\n")
    return child.returncode or 0, err.decode()


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
async def test_a_reader_that_has_gone_ends_a_command_silently(
    tmp_path: Path, arguments: list[str]
) -> None:
    async with ModelServer(Recording((answer(text("Hi.", size=1)),)), paced=False) as model:
        reader, writer = os.pipe()
        os.close(reader)
        assert await ended(model, tmp_path, arguments, writer) == (1, "")


@pytest.mark.skipif(sys.platform != "linux", reason="/dev/full is Linux")
@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
async def test_a_full_disk_behind_stdout_is_told(tmp_path: Path, arguments: list[str]) -> None:
    async with ModelServer(Recording((answer(text("Hi.", size=1)),)), paced=False) as model:
        code, said = await ended(model, tmp_path, arguments, os.open("/dev/full", os.O_WRONLY))
    assert (code, said) == (1, "kode-sidecar: cannot write: No space left on device\n")
