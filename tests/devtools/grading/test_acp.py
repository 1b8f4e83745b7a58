"""`grade --acp` finds faulty agents and clients of ACP, and nothing wrong with right ones."""

import asyncio
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from kode_sidecar.devtools.grading import verdicts
from kode_sidecar.devtools.grading.acp_rules import ACP_RULES
from kode_sidecar.devtools.grading.acp_talk import AcpSchema, read_acp_talk
from tests.devtools.grading.acp_mutants import (
    AGENT,
    CLIENT,
    MUTANTS,
    AcpMutant,
)
from tests.support.program import PROGRAM, ROOT
from tests.support.sidecar import HANG_SECONDS

SOURCES = ROOT / "kode_sidecar" / "devtools" / "grading"
SCHEMA = AcpSchema((ROOT / "protocol" / "acp.schema.json").read_bytes())
RECORDING = "acp_recording.py"
CAUGHT = 0.95
NOT_CAUGHT: frozenset[str] = frozenset()
"""What the judge does not see: a miss is named."""


def source(name: str, mutant: AcpMutant | None) -> str:
    text = (SOURCES / name).read_text(encoding="utf-8")
    if mutant is None or mutant.file != name:
        return text
    assert mutant.old in text, mutant
    return text.replace(mutant.old, mutant.new, 1)


async def broken(folder: Path, mutant: AcpMutant | None, patience: float) -> dict[str, list[str]]:
    """The rules that the scripted client or agent breaks with one fault, and how."""
    for name in (AGENT, CLIENT, RECORDING):
        # Beside each other they load the standard library alone, and start many times as fast.
        text = source(name, mutant).replace("kode_sidecar.devtools.grading.", "")
        (folder / name).write_text(text, encoding="utf-8")
    talk = folder / "talk.jsonl"
    agent = [sys.executable, str(folder / AGENT), str(folder / "agent.jsonl")]
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-X", "utf8", str(folder / CLIENT), str(talk), str(patience), *agent),
        env={**os.environ, "PYTHONUTF8": "1"},
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    with suppress(TimeoutError):
        await asyncio.wait_for(process.wait(), patience + 40)
    if process.returncode is None:
        process.kill()
        await process.wait()
    found = verdicts(read_acp_talk(talk, SCHEMA), ACP_RULES)
    return {one.rule: [fault.text for fault in one.faults] for one in found if one.faults}


@pytest.mark.program
async def test_a_right_agent_and_a_right_client_break_no_rule(tmp_path: Path) -> None:
    assert await broken(tmp_path, None, HANG_SECONDS) == {}
    states = verdicts(read_acp_talk(tmp_path / "talk.jsonl", SCHEMA), ACP_RULES)
    assert {one.state for one in states} == {"kept"}, "every rule has an occasion"


@pytest.mark.program
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda one: one.name)
async def test_a_faulty_one_is_caught(mutant: AcpMutant, tmp_path: Path) -> None:
    side = "agent/" if mutant.file == AGENT else "client/"
    rules: list[str] = []
    # Some wait for ever for an answer. On a slow machine the others need more time, too.
    for patience in (3.0, HANG_SECONDS / 3):
        if not rules:
            found = await broken(tmp_path, mutant, patience)
            rules = [rule for rule in found if rule.startswith(side)]
    assert rules or mutant.name in NOT_CAUGHT


def test_there_are_enough_of_them() -> None:
    assert len(MUTANTS) >= 60
    assert len({(one.file, one.name) for one in MUTANTS}) == len(MUTANTS)
    assert len(NOT_CAUGHT) <= (1 - CAUGHT) * len(MUTANTS)
    assert [one for one in MUTANTS if one.old == one.new or source(one.file, one) == ""] == []


async def run(*arguments: str, given: bytes = b"") -> tuple[int, str]:
    """The exit code of `grade --acp`, and what it printed."""
    process = await asyncio.create_subprocess_exec(
        *(*PROGRAM, "grade", "--acp", *arguments),
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    async with asyncio.timeout(HANG_SECONDS):
        said, _ = await process.communicate(given)
    return process.returncode or 0, said.decode()


@pytest.mark.program
async def test_the_command_drives_an_agent_and_records_for_a_client(tmp_path: Path) -> None:
    driven, recorded = str(tmp_path / "driven.jsonl"), str(tmp_path / "recorded.jsonl")
    agent = [*PROGRAM, "grade", "--acp", "--record", recorded]
    code, said = await run("--drive", driven, "--", *agent)
    assert (code, said.splitlines()[-1]) == (0, "  18 kept, 0 broken, 0 unseen")
    code, said = await run(recorded, "--side", "agent", "--require", "agent/lists-true")
    assert (code, said.count("ok  ")) == (0, 18)
    # As the agent of a client it passes on to another agent.
    passed = str(tmp_path / "passed.jsonl")
    code, said = await run("--drive", driven, "--", *agent[:-1], passed, "--", *agent)
    assert code == 0
    assert Path(passed).read_text(encoding="utf-8").count('"by"') > 60


@pytest.mark.program
@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ((), 1, "Name a recording."),
        (("--drive", "x.jsonl"), 1, "Name the agent's program after `--`."),
        (("--drive", "TMP/x.jsonl", "--", "TMP/no-program"), 1, "no-program: No such file"),
        (("TMP/none.jsonl",), 2, "Cannot read"),
        (("TMP/text.jsonl",), 2, "is no recording of `kode-sidecar grade --acp --record`"),
    ],
)
async def test_what_cannot_be_judged_is_named(
    arguments: Sequence[str], code: int, said: str, tmp_path: Path
) -> None:
    (tmp_path / "text.jsonl").write_text('{"text": 1}\n', encoding="utf-8")
    given = [one.replace("TMP", str(tmp_path)) for one in arguments]
    ended, shown = await run(*given)
    assert (ended, said in shown) == (code, True), shown
