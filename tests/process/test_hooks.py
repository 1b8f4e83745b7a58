"""The user's hooks over the real process: real scripts, which allow, forbid and add."""

import asyncio
import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from kode_sidecar.terminal.client.connection import RpcError
from tests.support.headless_world import HEAD
from tests.support.model_script import answer, text, tool_call
from tests.support.program import PROGRAM, ROOT
from tests.support.session_fold import SessionFold
from tests.support.sidecar import HANG_SECONDS, World, sidecar

Json = dict[str, Any]
# As such scripts are: it reads all of standard input, and writes down what it was given.
_SCRIPT = """
import json, pathlib, sys
given = json.load(sys.stdin)
with open(pathlib.Path(__file__).with_name("given.jsonl"), "a", encoding="utf-8") as file:
    file.write(json.dumps(given) + "\\n")
{body}
"""


class Scripts:
    """Hooks of the settings, each with a script of its own."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.folder = folder
        self.hooks: dict[str, list[Json]] = {}

    def add(self, event: str, body: str, matcher: str = "", **more: Any) -> None:
        """Add a hook with the body of a script."""
        script = self.folder / f"{event}{len(self.hooks.get(event, []))}.py"
        script.write_text(_SCRIPT.format(body=body), "utf-8")
        command = {"type": "command", "command": [sys.executable, str(script)], **more}
        self.hooks.setdefault(event, []).append({"matcher": matcher, "hooks": [command]})

    @property
    def environment(self) -> Mapping[str, str]:
        """The variables of a process that has these hooks."""
        config = self.folder / "config.yaml"
        config.write_text(json.dumps({"hooks": self.hooks}), "utf-8")
        return {"KODE_CONFIG": str(config), "KODE_LOCALE": "en"}

    @property
    def given(self) -> Sequence[Json]:
        """What the scripts were given, in order."""
        file = self.folder / "given.jsonl"
        return [json.loads(line) for line in file.read_text("utf-8").splitlines()]


@pytest.fixture
def scripts(tmp_path: Path) -> Scripts:
    return Scripts(tmp_path / "hooks")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "a.py").write_text("a = 1\n", "utf-8")
    (folder / "b.py").write_text("b = 1\n", "utf-8")
    return folder


def results(world: World) -> list[str]:
    """The results of tools in the newest request."""
    return [one["content"] for one in world.asked()["messages"] if one["role"] == "tool"]


def notices(world: World, session: SessionFold) -> list[Json]:
    codes = ("HookFailed", "HookSays")
    events = [one for one in world.journal(session) if one["type"] == "notice"]
    return [one for one in events if one["code"] in codes]


def read(path: str) -> Any:
    return tool_call("read_file", {"path": path})


_EDIT = {"path": "a.py", "edits": [{"old": "a = 1", "new": "a = 2"}]}
_PATCH = (
    "*** Begin Patch\n*** Update File: b.py\n@@\n-b = 1\n+b = 2\n"
    "*** Update File: a.py\n@@\n-a = 1\n+a = 3\n*** End Patch"
)


async def test_a_hook_before_a_tool_forbids_it_and_says_why(
    scripts: Scripts, project: Path
) -> None:
    """A policy of another agent: it knows `Edit`, `file_path`, the exit code 2 and stderr."""
    body = """
if given["tool_input"]["file_path"].endswith("a.py"):
    print("a.py is generated: edit a.in.", file=sys.stderr)
    sys.exit(2)
"""
    scripts.add("PreToolUse", body, "Edit|Write")
    calls = [tool_call("propose_edit", arguments) for arguments in (_EDIT, {"patch": _PATCH})]
    script = [answer(*calls), answer(read("a.py")), answer(text("ok"))]
    async with sidecar(script, roots=[project], environment=scripts.environment) as world:
        session = await world.session()
        await world.turn(session, "edit")
        assert not session.change_sets, "no effect without its verdict"
        edited, patched, shown = results(world)
        assert "a.py is generated: edit a.in." in edited
        assert "a.py is generated: edit a.in." in patched
        assert "a = 1" in shown
        statuses = [b.block["status"] for b in session.blocks.values() if b.type == "tool_result"]
        assert statuses == ["denied", "denied", "ok"]
    first, b, a = scripts.given
    assert first["tool_name"] == "Edit"
    assert first["tool_input"]["file_path"] == str(project / "a.py")
    assert first["tool_input"]["old_string"] == "a = 1"
    assert first["tool_input"]["new_string"] == "a = 2"
    assert (first["hook_event_name"], first["cwd"]) == ("PreToolUse", str(project))
    assert first["session_id"] == session.session_id
    assert [one["tool_input"]["file_path"][-4:] for one in (b, a)] == ["b.py", "a.py"]


@pytest.mark.parametrize("agrees", [True, False])
async def test_answers_in_json_allow_ask_and_deny(
    scripts: Scripts, project: Path, agrees: bool
) -> None:
    body = """
word = {"a.py": "ask", "b.py": "deny"}.get(pathlib.Path(given["tool_input"]["file_path"]).name)
print(json.dumps({"systemMessage": "seen", "hookSpecificOutput": {
    "hookEventName": "PreToolUse", "permissionDecision": word or "allow",
    "permissionDecisionReason": f"by the rule for {word}"}}))
"""
    scripts.add("PreToolUse", body, "Read")
    (project / "c.py").write_text("c = 1\n", "utf-8")
    script = [answer(read("a.py"), read("b.py"), read("c.py")), answer(text("ok"))]
    async with sidecar(script, roots=[project], environment=scripts.environment) as world:
        session = await world.session()
        choice = "allow-once" if agrees else "reject"
        world.editor.answer_permission = lambda _: asyncio.sleep(0, choice)
        await world.turn(session, "read")
        (question,) = world.editor.asked
        assert question["title"] == "Read a.py"
        assert question["reason"] == "by the rule for ask"
        assert [option["kind"] for option in question["options"]] == ["allow_once", "reject"]
        a, b, c = results(world)
        assert ("a = 1" in a, "b = 1" in b, "c = 1" in c) == (agrees, False, True)
        assert ("by the rule for ask" in a) is not agrees
        assert "by the rule for deny" in b
        assert [one["message"] for one in notices(world, session)] == ["seen"] * 3


async def test_what_a_hook_says_after_a_tool_and_beside_a_prompt_reaches_the_model(
    scripts: Scripts, project: Path
) -> None:
    scripts.add("SessionStart", 'print("the session began by", given["source"])')
    scripts.add("UserPromptSubmit", 'print("prompt of", len(given["prompt"]), "characters")')
    body = 'print("run the formatter", file=sys.stderr); sys.exit(2)'
    scripts.add("PostToolUse", body, "Read")
    script = [answer(read("a.py")), answer(text("1")), answer(text("2"))]
    async with sidecar(script, roots=[project], environment=scripts.environment) as world:
        session = await world.session()
        await world.turn(session, "hello")
        (result,) = results(world)
        assert result.index("a = 1") < result.index("run the formatter")
        await world.turn(session, "hi")
        said = str(world.asked()["messages"])
    assert said.count("the session began by startup") == 1
    assert said.index("prompt of 5 characters") < said.index("prompt of 2 characters")
    (after,) = [one for one in scripts.given if one["hook_event_name"] == "PostToolUse"]
    assert after["tool_response"]["success"] is True
    assert "a = 1" in after["tool_response"]["content"]


async def test_a_prompt_that_a_hook_refuses_starts_no_turn(scripts: Scripts, project: Path) -> None:
    body = """
if "password" in given["prompt"]:
    print(json.dumps({"decision": "block", "reason": "it names a password"}))
"""
    scripts.add("UserPromptSubmit", body)
    script = [answer(text("ok"))]
    async with sidecar(script, roots=[project], environment=scripts.environment) as world:
        session = await world.session()
        with pytest.raises(RpcError) as refused:
            await world.start(session, "my password is x")
        assert refused.value.data["code"] == "Denied"
        assert "it names a password" in refused.value.message
        assert world.model.chats == []
        await world.turn(session, "hello")
        assert "password" not in str(world.asked()["messages"])


async def test_a_hook_at_the_end_makes_the_model_go_on(scripts: Scripts, project: Path) -> None:
    body = """
if not given["stop_hook_active"]:
    print("the tests were not run", file=sys.stderr)
    sys.exit(2)
"""
    scripts.add("Stop", body)
    script = [answer(text("done")), answer(text("now they were"))]
    async with sidecar(script, roots=[project], environment=scripts.environment) as world:
        session = await world.session()
        turn = await world.turn(session, "go")
        assert turn.stop_reason == "end_turn"
        assert "the tests were not run" in str(world.asked()["messages"][-1])
        assert len(world.model.chats) == 2
    assert [one["stop_hook_active"] for one in scripts.given] == [False, True]


async def test_a_hook_before_compaction_forbids_it(scripts: Scripts, project: Path) -> None:
    scripts.add("PreCompact", 'print("not " + given["trigger"], file=sys.stderr); sys.exit(2)')
    script = [answer(text("one")), answer(text("two"))]
    async with sidecar(script, roots=[project], environment=scripts.environment) as world:
        session = await world.session()
        await world.turn(session, "1")
        await world.turn(session, "2")
        params = {"sessionId": session.session_id}
        with pytest.raises(RpcError) as refused:
            await world.client.request("kode/context/compact", params, HANG_SECONDS)
        assert "not manual" in refused.value.message
        assert len(world.model.chats) == 2


_FAILURES: Mapping[str, tuple[str, Json, str]] = {
    "exit": ("sys.exit(3)", {}, "exit code 3"),
    "time": ("import time; time.sleep(600)", {"timeout": 1}, "took too long"),
    "output": ("print('x' * 1_100_000)", {}, "printed too much"),
    "answer": ("print('{\"decision\": ')", {}, "cannot be read"),
    "word": ('print(json.dumps({"decision": "maybe"}))', {}, "'maybe' is no decision"),
    "program": ("", {"command": ["no-such-program-here"]}, "no program no-such-program-here"),
}


@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize("kind", _FAILURES)
async def test_a_hook_without_a_verdict_counts_as_the_user_says(
    scripts: Scripts, project: Path, kind: str, closed: bool
) -> None:
    body, more, why = _FAILURES[kind]
    scripts.add("PreToolUse", body, "Read", **more, **({"fail": "closed"} if closed else {}))
    script = [answer(read("a.py")), answer(text("ok"))]
    async with sidecar(script, roots=[project], environment=scripts.environment) as world:
        session = await world.session()
        await world.turn(session, "read")
        (result,) = results(world)
        (notice,) = notices(world, session)
        assert why in notice["message"]
        assert notice["code"] == "HookFailed"
        assert ("a = 1" in result) is not closed
        assert (why in result) is closed


async def test_hooks_that_cannot_be_read_stop_every_turn(scripts: Scripts, project: Path) -> None:
    """A policy that silently does not hold is worse than none."""
    scripts.hooks["BeforeTool"] = [{"hooks": [{"command": "true"}]}]
    async with sidecar([], roots=[project], environment=scripts.environment) as world:
        session = await world.session()
        with pytest.raises(RpcError) as refused:
            await world.start(session, "hi")
        assert refused.value.data["code"] == "ConfigInvalid"
        assert "no event is named 'BeforeTool'" in refused.value.message


async def test_hooks_hold_in_jobs_too(scripts: Scripts, project: Path) -> None:
    body = """
if given["tool_input"]["file_path"].endswith("first.md"):
    print("not this file", file=sys.stderr)
    sys.exit(2)
"""
    scripts.add("PreToolUse", body, "Write")
    scripts.add("UserPromptSubmit", 'print("written with care")')
    job = scripts.folder / "job.yaml"
    job.write_text(
        f"{HEAD}model: kimi-k2.6\ndeliverables: [{{path: deliverables/second.md}}]\n", "utf-8"
    )
    calls = [
        tool_call("write_artifact", {"path": f"deliverables/{name}.md", "content": "x\n"})
        for name in ("first", "second")
    ]
    script = [answer(*calls), answer(text("Done."))]
    environment = scripts.environment
    async with sidecar(script, handshake={"trusted": True}, environment=environment) as world:
        params = {"config": str(job), "prompt": "Go.", "workspace": str(project)}
        started = await world.client.request("kode/run/start", params, HANG_SECONDS)
        async with asyncio.timeout(HANG_SECONDS):
            while (run := await _run(world, started["runId"]))["status"] in ("pending", "running"):
                pass
        assert run["governance"] == "passed"
        assert ["not this file" in result for result in results(world)] == [True, False]
        assert "written with care" in str(world.asked(0)["messages"])
    written = sorted(path.name for path in Path(started["sandboxRoot"]).glob("deliverables/*"))
    assert written == ["second.md"]


async def _run(world: World, run_id: str) -> Json:
    found = await world.client.request("kode/run/get", {"runId": run_id}, HANG_SECONDS)
    return found["run"]


_POLICY = """
import sys
print("{words}", file=sys.stderr)
sys.exit(2)
"""


async def test_a_projects_hook_runs_only_after_a_yes_to_exactly_its_text(
    scripts: Scripts, project: Path
) -> None:
    folder = project / ".claude"
    folder.mkdir()
    script = folder / "check.py"
    script.write_text(_POLICY.format(words="not in this project"), "utf-8")
    command = f'"{sys.executable}" "$CLAUDE_PROJECT_DIR/.claude/check.py"'
    hooks = {"PreToolUse": [{"matcher": "Read", "hooks": [{"command": command}]}]}
    (folder / "settings.json").write_text(json.dumps({"hooks": hooks, "other": 1}), "utf-8")
    answers = [answer(read("a.py")), answer(text("ok"))] * 3
    environment = scripts.environment
    async with sidecar(answers, roots=[project], environment=environment) as world:
        listed = {**environment, "KODE_HOME": str(world.home)}
        (before,) = await _listed(project, listed)
        assert (before["state"], before["files"]) == ("untrusted", [".claude/check.py"])
        session = await world.session()
        await world.turn(session, "one")
        assert "a = 1" in results(world)[-1]
        (notice,) = [one for one in world.journal(session) if one.get("code") == "HooksUntrusted"]
        assert "kode-sidecar hooks" in notice["message"]
        (after,) = await _listed(project, listed, "--trust", before["id"])
        assert after["state"] == "trusted"
        await world.turn(session, "two")
        assert "not in this project" in results(world)[-1]
        script.write_text(_POLICY.format(words="changed by somebody"), "utf-8")
        await world.turn(session, "three")
        assert "a = 1" in results(world)[-1]
        (changed,) = await _listed(project, listed)
        assert changed["state"] == "changed"
        assert changed["id"] != before["id"]
    async with sidecar(
        answers, roots=[project], environment=listed, handshake={"trusted": False}
    ) as world:
        await _listed(project, listed, "--trust", changed["id"])
        await world.turn(await world.session(), "four")
        assert "a = 1" in results(world)[-1], "the folder is not trusted"


async def _listed(project: Path, environment: Mapping[str, str], *more: str) -> list[Json]:
    child = await asyncio.create_subprocess_exec(
        *(*PROGRAM, "hooks", "--json", *more),
        cwd=project,
        env={**os.environ, **environment, "PYTHONPATH": str(ROOT)},
        stdout=asyncio.subprocess.PIPE,
    )
    output, _ = await child.communicate()
    assert child.returncode == 0
    return json.loads(output)["hooks"]
