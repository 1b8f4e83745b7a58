"""`write_memory` as a model calls it (B10)."""

from collections.abc import Sequence

import msgspec
import pytest

from kode_sidecar.agent.tools.knowledge import About, write_memory_tool
from kode_sidecar.core.domain.memory import MemoryItem, MemoryState
from kode_sidecar.errors import KodeError
from tests.support.files import call


class Kept:
    """A memory that keeps what it is given."""

    def __init__(self, state: MemoryState) -> None:
        self.state: MemoryState = state
        self.written: list[tuple[str, str, Sequence[str]]] = []

    async def recall(self, query: str, scope: str, limit: int) -> Sequence[MemoryItem]:
        del query, scope, limit
        return ()

    async def write(self, content: str, scope: str, tags: Sequence[str]) -> MemoryItem:
        self.written.append((content, scope, tags))
        return MemoryItem(id="m1", content=content, scope=scope, state=self.state)


def scope_of(about: About) -> str:
    return {"project": "project:app", "user": "user"}[about]


async def test_a_candidate_is_told_as_one() -> None:
    kept = Kept("candidate")
    tool = write_memory_tool(kept, scope_of)
    outcome = await call(tool, content=" Tests:\npytest\x1b ", tags=["a", " "])
    assert kept.written == [("Tests:\npytest", "project:app", ("a",))]
    assert outcome.ok
    assert "once the user has accepted it" in outcome.content
    assert outcome.summary == "Suggested to remember: Tests: pytest"
    await call(tool, content="x", about="user")
    assert kept.written[-1] == ("x", "user", ())
    assert not tool.read_only


async def test_what_a_service_keeps_is_told_as_kept() -> None:
    outcome = await call(write_memory_tool(Kept("accepted"), scope_of), content="x" * 200)
    assert outcome.content == "It is remembered."
    assert len(outcome.summary) < 140


async def test_credentials_are_not_remembered() -> None:  # W11
    kept = Kept("candidate")
    key = "sk-" + "a1" * 20
    with pytest.raises(KodeError, match="it holds an API key") as caught:
        await call(write_memory_tool(kept, scope_of), content=f"The key is {key}.")
    assert (caught.value.code, kept.written) == ("Denied", [])
    assert key not in caught.value.message


async def test_arguments_are_bounded() -> None:  # W16
    tool = write_memory_tool(Kept("candidate"), scope_of)
    for arguments in ({}, {"content": "x" * 4_001}, {"content": "x", "about": "all"}):
        with pytest.raises(msgspec.ValidationError):
            await call(tool, **arguments)
