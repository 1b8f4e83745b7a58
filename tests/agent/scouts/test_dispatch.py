"""Scouts without a process: another provider, another face, bugs, any order of events (D7)."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kode_sidecar.agent.context.builder import ModelTraits
from kode_sidecar.agent.scouts import Dispatch
from kode_sidecar.agent.scouts.contracts import (
    ExploreReport,
    ExploreRequest,
    ExploreTask,
    ScoutLimits,
    ScoutServices,
)
from kode_sidecar.core.domain.agent_event import ScoutUpdated
from kode_sidecar.core.domain.error_info import ErrorInfo
from kode_sidecar.core.domain.message import Blob, Message, TextBlock
from kode_sidecar.core.domain.model_event import ModelEvent
from kode_sidecar.core.kernel.contracts import ModelRequest, ToolCall
from kode_sidecar.errors import KodeError
from tests.support.turn_world import Batches, Recorder, TickClock, calls, echo_tool, says

REPORT = calls(("report_findings", '{"summary": "found"}'))
READ = calls(("read_file", '{"text": "x"}'))
LIMITS = ScoutLimits()


def well(step: int) -> Batches:
    return REPORT if step else READ


def mute(step: int) -> Batches:
    return says("I do not know.") if step else READ


def broken(step: int) -> Batches:
    raise RuntimeError("a bug of the provider's")


class OtherProvider:
    """A model that nobody configured: it behaves as the title of the question says.

    A title may end in a number: so many turns of the event loop go by before each answer.
    """

    def missing(self, model: str) -> ErrorInfo | None:
        return None

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Sequence[ModelEvent], None]:
        block = request.messages[0].content[0]
        assert isinstance(block, TextBlock)
        name, _, waits = block.text.splitlines()[0].removeprefix("# ").partition(" ")
        for _ in range(int(waits or 0)):
            await asyncio.sleep(0)
        step = sum(message.role == "assistant" for message in request.messages)
        if name == "hung":
            await asyncio.Event().wait()
        for batch in {"well": well, "mute": mute, "broken": broken}[name](step):
            yield batch


class OtherFace(Recorder):
    """An editor that nobody knows, and how many scouts it was told are out."""

    @property
    def states(self) -> list[tuple[str, str]]:
        return [(e.title, e.state) for e in self.seen if isinstance(e, ScoutUpdated)]


class Logs:
    """Records in memory."""

    def __init__(self, *, full: bool = False) -> None:
        self.full = full
        self.out = self.most = 0

    def open(self, scout_id: str) -> "Logs":
        if self.full:
            raise KodeError("Storage", "the disk is full")
        self.out += 1
        self.most = max(self.most, self.out)
        return self

    def append(self, message: Message) -> None:
        """Kept by nobody."""

    def close(self) -> None:
        self.out -= 1


class Field:
    """A session as far as scouts know it."""

    def __init__(self, *, full: bool = False, limits: ScoutLimits = LIMITS) -> None:
        self.face = OtherFace()
        self.logs = Logs(full=full)
        self.bugs: list[str] = []
        self._count = 0
        services = ScoutServices(
            model=OtherProvider(),
            clock=TickClock(),
            new_id=self._new_id,
            system_prompt=lambda: "You are a scout.",
            report_bug=lambda where, _: self.bugs.append(where),
            traits=lambda _: ModelTraits(window=None, returns_thinking=True),
            limits=limits,
        )
        self.dispatch = Dispatch(services)

    async def explore(self, *titles: str) -> list[ExploreReport]:
        tasks = [ExploreTask(title=title, question="?") for title in titles]
        return await self.dispatch.explore(tasks, self._request())

    def _request(self) -> ExploreRequest:
        return ExploreRequest(
            call=ToolCall("explore:0", "explore", "s", "t", "m"),
            model="any",
            tools=[echo_tool("read_file")],
            text_of=lambda _: "",
            emit=self.face,
            spend=lambda _: None,
            open_log=self.logs.open,
            save_artifact=lambda text: Blob(ref="a", bytes=len(text), sha256=""),
        )

    def _new_id(self, kind: str) -> str:
        self._count += 1
        return f"{kind}-{self._count}"


async def test_a_bug_in_one_is_its_own() -> None:
    field = Field()
    reports = await field.explore("well", "broken", "mute", "well 3")
    assert [report.state for report in reports] == ["done", "failed", "failed", "done"]
    assert "failed inside the sidecar" in reports[1].note
    assert reports[2].summary == "I do not know."
    assert len(field.bugs) == 1
    assert field.logs.out == 0


async def test_without_a_record_nobody_sets_out() -> None:
    field = Field(full=True)
    (report,) = await field.explore("well")
    assert report.state == "failed"
    assert "the disk is full" in report.note
    assert field.bugs == []


async def test_a_hung_one_ends_at_its_deadline() -> None:
    field = Field(limits=ScoutLimits(seconds=0.01))
    (report,) = await field.explore("hung")
    assert report.state == "timed_out"
    assert field.face.states[-1] == ("hung", "timed_out")
    assert field.bugs == []


@pytest.mark.parametrize("steps", range(12))
async def test_cancelled_at_any_time_all_places_are_free_again(steps: int) -> None:
    field = Field()
    exploring = asyncio.create_task(field.explore("well 2", "mute", "hung", "broken", "well 9"))
    for _ in range(steps):
        await asyncio.sleep(0)
    exploring.cancel()
    with suppress(asyncio.CancelledError):
        await exploring
    assert field.logs.out == 0
    begun = [title for title, state in field.face.states if state == "running"]
    ends = [title for title, state in field.face.states if state not in ("running", "reporting")]
    assert set(begun) == set(ends)
    assert len(ends) == len(set(ends))
    reports = await field.explore(*["well"] * 5)
    assert [report.state for report in reports] == ["done"] * 5
    assert len(field.bugs) == begun.count("broken") - field.face.states.count(
        ("broken", "cancelled")
    )


names = st.sampled_from(["well", "mute", "broken", "well 1", "well 7", "mute 4", "broken 5"])


# D2 D5: five at once and no more, whatever the order; reports where their tasks were
@given(st.lists(st.tuples(st.lists(names, min_size=1, max_size=5), st.integers(0, 9)), max_size=4))
def test_calls_side_by_side(plan: list[tuple[list[str], int]]) -> None:
    async def play() -> None:
        field = Field()

        async def one(titles: list[str], wait: int) -> None:
            for _ in range(wait):
                await asyncio.sleep(0)
            reports = await field.explore(*titles)
            assert [report.title for report in reports] == titles
            for title, report in zip(titles, reports, strict=True):
                good = "done" if title.startswith("well") else "failed"
                assert report.state in (good, "refused")

        async with asyncio.TaskGroup() as group:
            for titles, wait in plan:
                group.create_task(one(titles, wait))
        assert field.logs.most <= 5
        assert field.logs.out == 0

    asyncio.run(play())
