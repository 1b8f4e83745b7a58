"""A model host that sends scouts and answers them, at the pace of a fast one. Run as a program.

A scout first searches the whole project, then reads, step by step, and reports; each of five takes
a step more than the one before. Prints its port.
"""

import asyncio
import json
import sys
from collections.abc import Iterator
from typing import Any

from kode_sidecar.devtools.demo.model_server import ModelServer, Piece, RecordedResponse, Recording

THINK_MS = 150
DELTA_MS = 10
DELTAS = 10
FOLDERS, FILES = 50, 100
NEEDLE = "the_needle"

Call = tuple[str, dict[str, Any]]


def path_of(number: int) -> str:
    """The path of one of the project's files."""
    return f"part{number % FOLDERS:02}/module{number // FOLDERS:02}.py"


class ScoutModel(ModelServer):
    """The prompt's last word names the scouts to send: `0,3` for the first and the fourth."""

    def __init__(self) -> None:
        super().__init__(Recording(()))

    def _chat(self, request: Any) -> RecordedResponse:
        self.chats.append(request)
        messages = request.body["messages"]
        said = [message["content"] for message in messages if message["role"] == "user"]
        steps = sum(message["role"] == "assistant" for message in messages)
        tools = {tool["function"]["name"] for tool in request.body.get("tools", ())}
        if "report_findings" in tools:
            return _answer(_scout_calls(int(said[0].splitlines()[0].split()[-1]), steps))
        return _answer([] if steps else [_explore(said[-1].split()[-1])])


def _explore(numbers: str) -> Call:
    tasks = [{"title": f"scout {n}", "question": "Where is it?"} for n in numbers.split(",")]
    return "explore", {"tasks": tasks}


def _scout_calls(number: int, step: int) -> list[Call]:
    if step == 0:
        return [("search_code", {"query": NEEDLE}), ("list_files", {"pattern": "module00.py"})]
    if step < 2 + number:
        files = (path_of(50 * step + 7 * number + n) for n in range(2))
        return [("read_file", {"path": path}) for path in files]
    finding = {"claim": "It is here.", "path": path_of(7), "quote": NEEDLE}
    findings = [{**finding, "startLine": 3, "endLine": 3}]
    return [("report_findings", {"summary": "Found.", "findings": findings})]


def _answer(calls: list[Call]) -> RecordedResponse:
    """Reasoning first, as it comes; then the calls at once."""
    chunks = [_chunk({"role": "assistant", "content": ""})]
    chunks += [_chunk({"reasoning_content": "let me look further "})] * DELTAS
    if calls:
        called = [
            {
                "index": index,
                "id": f"{name}:{index}",
                "type": "function",
                "function": {"name": name, "arguments": json.dumps(arguments)},
            }
            for index, (name, arguments) in enumerate(calls)
        ]
        chunks.append(_chunk({"tool_calls": called}))
    else:
        chunks.append(_chunk({"content": "Now I know."}))
    chunks.append(_chunk({}, "tool_calls" if calls else "stop"))
    return RecordedResponse((*_paced(chunks), Piece(b"data: [DONE]\n\n")))


def _paced(chunks: list[bytes]) -> Iterator[Piece]:
    for number, chunk in enumerate(chunks):
        yield Piece(chunk, DELTA_MS if number else THINK_MS)


def _chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    body = {"id": "r", "object": "chat.completion.chunk", "model": "kimi-k2.6", "choices": [choice]}
    return b"data: " + json.dumps(body, separators=(",", ":")).encode() + b"\n\n"


async def main() -> None:
    """Serve until killed."""
    async with ScoutModel() as server:
        port = server.base_url.removesuffix("/v1").rsplit(":", 1)[-1]
        sys.stdout.write(f"{port}\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
