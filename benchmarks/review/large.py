"""A review of 2,000 changed files: memory, the first finding, and how soon it stops."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.review.play import changed_repository, sidecar
from kode_sidecar.devtools.demo.answers import answer, text, tool_call
from kode_sidecar.devtools.demo.model_server import RecordedResponse
from kode_sidecar.terminal.client.client_session import ClientSession
from kode_sidecar.terminal.client.connection import Client
from kode_sidecar.terminal.client.fold import Json
from kode_sidecar.terminal.client.watch import Watch

FILES = 2_000
_HANG_SECONDS = 600.0


class _Listener:
    """Notes when findings came first, how many parts were read by then, and the most memory."""

    def __init__(self) -> None:
        self.pid = 0
        self.most = 0.0
        self.first = 0.0
        self.progress = ""
        self.progress_at_first = ""

    def event(self, session: ClientSession, event: Json) -> None:
        """See `client.watch.Listener`."""
        del session
        if event["type"] == "tool.progress":
            self.progress = event["message"]
            self.most = max(self.most, _memory_mb(self.pid))
        if event["type"] == "review.updated" and event["findings"] and not self.first:
            self.first = time.monotonic()
            self.progress_at_first = self.progress

    def growth(self, session: ClientSession, block_id: str, added: str) -> None:
        """See `client.watch.Listener`."""


async def large(folder: Path) -> list[str]:
    """Return a line for each figure."""
    before = {f"src/f_{number:04}.py": "value = 1\n" for number in range(FILES)}
    after = {name: f"value = 2\nname = {name!r}\n" for name in before}
    project = changed_repository(folder, before, after)
    listener = _Listener()
    async with sidecar(folder, project, _answers, listener) as (client, watch, _):
        session, turn_id, began = await _begin(client, watch)
        listener.pid = client.process.pid
        resting = _memory_mb(listener.pid)
        await watch.until(lambda: session.turn_end(turn_id), _HANG_SECONDS)
        whole = time.monotonic() - began
        first, at_first = listener.first - began, listener.progress_at_first
        most = listener.most
        listener.first = 0.0
        stopped, turn_id, began = await _begin(client, watch)
        await watch.until(lambda: listener.first, _HANG_SECONDS)
        asked = time.monotonic()
        await client.request("kode/turn/cancel", {"sessionId": stopped.session_id})
        await watch.until(lambda: stopped.turn_end(turn_id), _HANG_SECONDS)
        stop = time.monotonic() - asked
    return [
        f"whole review           {whole:8.1f} s",
        f"first finding          {first:8.1f} s, when {at_first or 'nothing was read'}",
        f"memory at rest         {resting:8.1f} MB",
        f"memory at its highest  {most:8.1f} MB",
        f"stopped after          {stop * 1e3:8.0f} ms",
    ]


async def _begin(client: Client, watch: Watch[ClientSession]) -> tuple[ClientSession, str, float]:
    created = await client.request("kode/session/new", {"agent": "reviewer"})
    session = watch.session(created["sessionId"], created["seq"])
    content = [{"type": "text", "text": "Review."}]
    asked = {"sessionId": session.session_id, "input": content}
    began = time.monotonic()
    return session, (await client.request("kode/turn/start", asked))["turnId"], began


def _memory_mb(pid: int) -> float:
    """Return the memory of the process without its children, which come and go."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


def _answers(body: Mapping[str, Any]) -> RecordedResponse:
    tools = {tool["function"]["name"] for tool in body.get("tools", ())}
    if "report_findings" not in tools:
        done = body["messages"][-1]["role"] == "tool"
        return answer(text("Reviewed.") if done else tool_call("review_changes", {}))
    asked = next(one["content"] for one in body["messages"] if one["role"] == "user")
    path = f"src/f_{asked.split('src/f_')[1][:4]}.py"
    if not any(one["role"] == "assistant" for one in body["messages"]):
        calls = [tool_call("read_file", {"path": path})]
        calls += [tool_call("changes", {"paths": ["src"]})] if "changes" in tools else []
        return answer(*calls)
    if "changes" not in tools:
        verdicts = [{"id": "n1", "holds": True, "reason": "I read it."}]
        return answer(tool_call("report_findings", {"summary": "Read.", "verdicts": verdicts}))
    finding = {
        **{"severity": "warning", "category": "value", "title": f"The value of {path} is wrong"},
        **{"explanation": "It was 1.", "path": path, "startLine": 1, "endLine": 1},
        "quote": "value = 2",
    }
    return answer(tool_call("report_findings", {"summary": "Read.", "findings": [finding]}))
