"""The agent loop against a scripted model."""

import asyncio
from dataclasses import replace

import msgspec
import pytest

from kode_sidecar.core.domain.agent_event import BlockCompleted, BlockDelta, MessageCompleted
from kode_sidecar.core.domain.error_info import failure
from kode_sidecar.core.domain.message import TextBlock, ThinkingBlock, ToolResultBlock, ToolUseBlock
from kode_sidecar.core.domain.model_event import (
    AttemptDropped,
    ModelEvent,
    ResponseFailed,
    ResponseFinished,
    ResponseStarted,
    TextDelta,
    ThinkingDelta,
    ThinkingSigned,
    ToolUseDelta,
    ToolUseStarted,
)
from kode_sidecar.core.kernel import run_turn
from kode_sidecar.core.kernel.contracts import Incoming, ToolCall, ToolOutcome, TurnLimits
from kode_sidecar.core.kernel.tool_runner import MAX_CALLS
from kode_sidecar.errors import KodeError
from tests.support.turn_world import (
    LIMITS,
    Batches,
    EchoParams,
    MemoryContext,
    Recorder,
    ScriptedModel,
    assert_block_order,
    assert_valid_history,
    calls,
    echo_tool,
    says,
    scope,
    turn,
)


async def test_text_streams_and_is_committed() -> None:  # C4 E2
    context, emit = MemoryContext(), Recorder()
    end = await turn(ScriptedModel(says("Hel", "lo")), context=context, emit=emit)
    assert end.stop_reason == "end_turn"
    assert emit.names() == [
        "message.added",
        "block.started",
        "delta",
        "delta",
        "block.completed",
        "message.completed",
    ]
    deltas = [e for e in emit.seen if isinstance(e, BlockDelta)]
    assert [(d.at, d.add) for d in deltas] == [(0, "Hel"), (3, "lo")]
    assert isinstance(context.messages[-1].content[0], TextBlock)
    assert context.messages[-1].content[0].text == "Hello"


async def test_all_growth_of_one_batch_is_one_delta() -> None:
    batch = [ResponseStarted("r", "m"), *(TextDelta(c) for c in "a漢😀b")]
    model = ScriptedModel([batch, [ResponseFinished("stop")]])
    emit = Recorder()
    await turn(model, context=MemoryContext(), emit=emit)
    deltas = [e for e in emit.seen if isinstance(e, BlockDelta)]
    assert [d.add for d in deltas] == ["a漢😀b"]


async def test_thinking_then_text_then_tools_keep_their_order() -> None:  # C2
    first = [
        [ResponseStarted("r", "m"), ThinkingDelta("hm"), TextDelta("\n\nI look")],
        [ToolUseStarted(0, "echo:0", "echo"), ToolUseStarted(1, "echo:1", "echo")],
        [ToolUseDelta(1, '{"text"'), ToolUseDelta(0, '{"text": "a"}'), ToolUseDelta(1, ':"b"}')],
        [ResponseFinished("tool_calls")],
    ]
    context, emit = MemoryContext(), Recorder()
    await turn(ScriptedModel(first, says("done")), echo_tool(), context=context, emit=emit)
    kinds = [type(b) for b in context.messages[1].content]
    assert kinds == [ThinkingBlock, TextBlock, ToolUseBlock, ToolUseBlock]
    assert context.messages[1].content[1].text == "I look"
    results = context.messages[2].content
    assert [b.content[0].text for b in results] == ["a", "b"]
    assert_block_order(emit.seen)


async def test_neighbouring_read_only_calls_run_side_by_side_writers_alone() -> None:
    running: list[str] = []
    seen: list[tuple[str, ...]] = []

    def tool(name: str, read_only: bool):
        async def run(params, call):
            running.append(name)
            for _ in range(5):
                await asyncio.sleep(0)
            seen.append(tuple(running))
            running.remove(name)
            return ToolOutcome(ok=True, summary="ok")

        return echo_tool(name, read_only=read_only, run=run)

    model = ScriptedModel(
        calls(("one", ""), ("two", ""), ("writer", ""), ("three", "")), says("done")
    )
    tools = [tool("one", True), tool("two", True), tool("writer", False), tool("three", True)]
    context = MemoryContext()
    await turn(model, *tools, context=context, emit=Recorder())
    assert seen[0] == ("one", "two")
    assert seen[2:] == [("writer",), ("three",)]
    assert_valid_history(context.messages)


async def test_results_stand_in_the_order_of_the_calls_whichever_came_first() -> None:
    second_is_done = asyncio.Event()

    async def slow(_params: EchoParams, _call: ToolCall) -> ToolOutcome:
        await second_is_done.wait()
        return ToolOutcome(ok=True, summary="slow")

    async def quick(_params: EchoParams, _call: ToolCall) -> ToolOutcome:
        second_is_done.set()
        return ToolOutcome(ok=True, summary="quick")

    model = ScriptedModel(calls(("slow", ""), ("quick", "")), says("done"))
    context = MemoryContext()
    tools = [echo_tool("slow", run=slow), echo_tool("quick", run=quick)]
    await turn(model, *tools, context=context, emit=Recorder())
    assert_valid_history(context.messages)


async def test_at_the_limit_the_model_sums_up_with_the_same_tools() -> None:  # A15
    model = ScriptedModel(calls(("echo", "")), calls(("echo", "")), says("summary"))
    context = MemoryContext()
    end = await turn(
        model,
        echo_tool(),
        context=context,
        emit=Recorder(),
        limits=TurnLimits(max_tool_rounds=2, limit_instruction="Sum up."),
    )
    assert end.stop_reason == "max_tool_rounds"
    assert [r.tool_choice for r in model.requests] == ["auto", "auto", "none"]
    assert model.requests[2].tools == model.requests[0].tools
    asked = model.requests[2].messages[-1]
    assert asked.role == "user"
    assert asked.meta == {"origin": "reminder", "ownWords": True}
    assert_valid_history(context.messages)


async def test_a_model_that_calls_tools_in_its_summary_gets_them_answered_not_run() -> None:
    model = ScriptedModel(calls(("echo", "")), calls(("echo", "")))
    context = MemoryContext()
    limits = TurnLimits(max_tool_rounds=1, limit_instruction="Sum up.")
    end = await turn(model, echo_tool(), context=context, emit=Recorder(), limits=limits)
    assert end.stop_reason == "max_tool_rounds"
    assert_valid_history(context.messages)
    assert context.messages[-1].content[0].status == "cancelled"


@pytest.mark.parametrize(
    ("name", "arguments", "says_what"),
    [
        ("nothing", "{}", "no tool named 'nothing'. Tools on offer: echo."),
        ("echo", '{"text": ', "not a valid JSON object"),
        ("echo", "[1]", "not a valid JSON object"),
        ("echo", '{"text": [1]}', "$.text"),
    ],
)
async def test_bad_calls_are_results_the_model_can_read(  # A14 W10
    name: str, arguments: str, says_what: str
) -> None:
    context = MemoryContext()
    model = ScriptedModel(calls((name, arguments)), says("ok"))
    end = await turn(model, echo_tool(), context=context, emit=Recorder())
    result = context.messages[2].content[0]
    assert isinstance(result, ToolResultBlock)
    assert result.is_error
    assert says_what in result.content[0].text
    assert end.stop_reason == "end_turn"


async def test_a_cut_answer_runs_no_tool() -> None:  # W10
    ran = []

    async def run(params, call):
        ran.append(1)

    context = MemoryContext()
    model = ScriptedModel(calls(("echo", '{"text": "a"}'), finish="length"))
    end = await turn(model, echo_tool(run=run), context=context, emit=Recorder())
    assert end.stop_reason == "max_tokens"
    assert ran == []
    assert_valid_history(context.messages)


async def test_a_tool_that_breaks_is_a_result_and_a_log_line() -> None:
    async def run(params, call):
        raise ZeroDivisionError("secret detail")

    bugs: list[str] = []
    context = MemoryContext()
    model = ScriptedModel(calls(("echo", "")), says("ok"))
    await turn(model, echo_tool(run=run), context=context, emit=Recorder(), bugs=bugs)
    assert bugs == ["tool echo"]
    assert "secret detail" not in context.messages[2].content[0].content[0].text


async def test_large_output_becomes_an_artifact_with_a_stated_cut() -> None:  # A14
    artifacts: list[str] = []
    context = MemoryContext()
    model = ScriptedModel(calls(("echo", '{"text": "%s"}' % ("x" * 200))), says("ok"))
    limits = TurnLimits(max_tool_rounds=5, limit_instruction="", max_result_chars=50)
    await turn(
        model,
        echo_tool(),
        context=context,
        emit=Recorder(),
        limits=limits,
        artifacts=artifacts,
    )
    result = context.messages[2].content[0]
    text = result.content[0].text
    assert text.startswith("x" * 50 + "\n[cut after 50 of 200 characters")
    assert result.artifact.ref == "s.artifact-1"
    assert "s.artifact-1" in text
    assert artifacts == ["x" * 200]


async def test_a_dropped_attempt_takes_its_blocks_back() -> None:
    answer = [
        [ResponseStarted("r1", "m"), TextDelta("wrong")],
        [AttemptDropped("connection lost")],
        [ResponseStarted("r2", "m"), TextDelta("right")],
        [ResponseFinished("stop")],
    ]
    context, emit = MemoryContext(), Recorder()
    await turn(ScriptedModel(answer), context=context, emit=emit)
    assert [b.text for b in context.messages[-1].content] == ["right"]
    assert emit.names().count("block.dropped") == 1
    assert_block_order(emit.seen)


async def test_a_failure_is_a_message_the_user_sees() -> None:  # C8
    error = failure("Network", "The connection was lost; try again.")
    answer = [[ResponseStarted("r", "m"), TextDelta("half")], [ResponseFailed(error)]]
    context, emit = MemoryContext(), Recorder()
    end = await turn(ScriptedModel(answer), context=context, emit=emit)
    assert end.stop_reason == "error"
    assert end.error == error
    last = context.messages[-1]
    assert last.is_api_error_message
    assert [b.text for b in last.content] == ["half", error.message]
    assert [e for e in emit.seen if isinstance(e, MessageCompleted)][-1].is_api_error_message
    assert_block_order(emit.seen)


async def test_reminders_join_after_the_tool_results() -> None:
    context = MemoryContext()

    async def run(params, call):
        from kode_sidecar.core.kernel.contracts import ToolOutcome

        context.incoming.append(
            Incoming("user", (TextBlock(text="hunk accepted"),), {"origin": "reminder"})
        )
        return ToolOutcome(ok=True, summary="ok")

    model = ScriptedModel(calls(("echo", "")), says("ok"))
    await turn(model, echo_tool(run=run), context=context, emit=Recorder())
    assert [m.role for m in context.messages] == ["user", "assistant", "tool", "user", "assistant"]


async def test_steering_gets_another_step() -> None:  # O8
    context = MemoryContext()
    emit = Recorder()

    def steer_once(count: int) -> None:
        if isinstance(emit.seen[-1], BlockCompleted) and len(context.messages) == 1:
            context.incoming.append(Incoming("user", (TextBlock(text="and more"),)))
            context.steered = True

    emit._at_event = steer_once
    end = await turn(ScriptedModel(says("one"), says("two")), context=context, emit=emit)
    assert end.stop_reason == "end_turn"
    assert [m.role for m in context.messages] == ["user", "assistant", "user", "assistant"]


async def test_a_failing_store_ends_the_turn_with_an_error() -> None:
    context = MemoryContext()

    def commit(message):
        raise KodeError("Storage", "not saved: disk full")

    context.commit = commit  # type: ignore[method-assign]
    end = await turn(ScriptedModel(says("x")), context=context, emit=Recorder())
    assert end.error is not None
    assert end.error.code == "Storage"


async def test_cancel_at_every_event_leaves_a_valid_history() -> None:  # W10 O8
    def model() -> ScriptedModel:
        return ScriptedModel(
            calls(("echo", '{"text": "a"}'), ("echo", '{"text": "b"}'), ("slow", "{}")),
            says("the", " end"),
        )

    total = len((await _run_cancelled(model(), at=None)).seen)
    assert total > 20
    for at in range(1, total + 1):
        emit = await _run_cancelled(model(), at=at)
        assert_block_order(emit.seen)


async def _run_cancelled(model: ScriptedModel, at: int | None) -> Recorder:
    context = MemoryContext()
    task: asyncio.Task[object]

    def cancel(count: int) -> None:
        if count == at:
            task.cancel()

    emit = Recorder(cancel)
    tools = [echo_tool(), echo_tool("slow", read_only=False)]
    task = asyncio.create_task(turn(model, *tools, context=context, emit=emit))
    try:
        await task
    except asyncio.CancelledError:
        assert at is not None
    assert_valid_history(context.messages)
    return emit


async def test_an_answer_is_cut_off_before_its_task_is_unwound() -> None:  # O8
    """Who cancels ends the answer first; whatever the task does then, it has nothing to say."""

    def model() -> ScriptedModel:
        return ScriptedModel(calls(("echo", '{"text": "a"}')), says("the", " end"))

    total = len((await _run_cancelled(model(), at=None)).seen)
    ends = [await _cut_off(model(), at) for at in range(1, total + 1)]
    assert sum(ends) > 3


async def _cut_off(model: ScriptedModel, at: int) -> bool:
    """Cancel after some events. Was an answer cut off?"""
    here, context = scope(), MemoryContext()
    said: list[int] = []
    task: asyncio.Task[object]

    def cut() -> None:
        if here.cut_off():
            said.append(len(emit.seen))
            assert not here.cut_off()

    def cancel(count: int) -> None:
        if count == at:
            asyncio.get_running_loop().call_soon(cut)
            task.cancel()

    emit = Recorder(cancel)
    task = asyncio.create_task(run_turn(here, model, [echo_tool()], context, LIMITS, emit))
    await asyncio.wait([task])
    assert said in ([], [len(emit.seen)])
    assert not said or (task.cancelled() and context.messages[-1].role == "assistant")
    assert_block_order(emit.seen)
    assert_valid_history(context.messages)
    return bool(said)


async def test_a_stream_that_ends_although_it_was_cut_off_ends_the_turn() -> None:  # O8
    here, context, emit = scope(), MemoryContext(), Recorder()
    model = ScriptedModel(says("half", " of it"), says("never asked"))
    seen: list[int] = []

    async def flow() -> None:
        if "delta" in emit.names() and here.cut_off():
            seen.append(len(emit.seen))

    emit.flow = flow  # type: ignore[method-assign]
    with pytest.raises(asyncio.CancelledError):
        await run_turn(here, model, [], context, LIMITS, emit)
    assert seen == [len(emit.seen)]
    assert len(model.requests) == 1
    assert context.messages[-1].content[0].text == "half"


def paused() -> list[list[ModelEvent]]:
    return [
        [ResponseStarted("r", "m"), TextDelta("half"), ResponseFinished("paused", "pause_turn")]
    ]


async def test_a_host_that_pauses_is_asked_to_go_on() -> None:
    model, context = ScriptedModel(paused(), says(" done")), MemoryContext()
    end = await turn(model, context=context, emit=Recorder())
    assert end.stop_reason == "end_turn"
    assert [message.role for message in context.messages] == ["user", "assistant", "assistant"]
    assert model.requests[1].messages[-1].content[0].text == "half"


async def test_a_host_that_pauses_for_ever_is_stopped_by_the_limit() -> None:  # A15
    model = ScriptedModel(*[paused() for _ in range(9)])
    limits = TurnLimits(max_tool_rounds=2, limit_instruction="Sum up.")
    end = await turn(model, context=MemoryContext(), emit=Recorder(), limits=limits)
    assert end.stop_reason == "max_tool_rounds"
    assert len(model.requests) == 3


async def test_sealed_thinking_becomes_blocks_of_its_own() -> None:  # C2
    answer = [
        [ResponseStarted("r", "m", "anthropic"), ThinkingDelta("a"), ThinkingSigned("s1")],
        [ThinkingDelta(""), ThinkingSigned("s2"), ThinkingSigned("hidden", redacted=True)],
        [ThinkingDelta("b"), TextDelta("done"), ResponseFinished("stop")],
    ]
    context, emit = MemoryContext(), Recorder()
    await turn(ScriptedModel(answer), context=context, emit=emit)
    message = context.messages[-1]
    assert message.provider == "anthropic"
    assert [msgspec.structs.replace(block, id="") for block in message.content] == [
        ThinkingBlock(text="a", signature="s1"),
        ThinkingBlock(text="", signature="s2"),
        ThinkingBlock(text="", signature="hidden", redacted=True),
        ThinkingBlock(text="b"),
        TextBlock(text="done"),
    ]
    assert_block_order(emit.seen)


async def test_a_late_signature_belongs_to_its_thought() -> None:
    answer = [
        [ResponseStarted("r", "m", "anthropic"), ThinkingDelta("a"), TextDelta("do")],
        [ThinkingSigned("s1"), TextDelta("ne"), ResponseFinished("stop")],
    ]
    context, emit = MemoryContext(), Recorder()
    await turn(ScriptedModel(answer), context=context, emit=emit)
    assert [msgspec.structs.replace(block, id="") for block in context.messages[-1].content] == [
        ThinkingBlock(text="a", signature="s1"),
        TextBlock(text="done"),
    ]
    assert_block_order(emit.seen)


def refuses(code: str) -> Batches:
    return [[ResponseFailed(failure(code, "too long"))]]


async def test_a_refused_question_is_asked_again_when_there_is_another_one() -> None:
    model = ScriptedModel(refuses("ContextOverflow"), says("shorter"))
    context, emit = MemoryContext(), Recorder()
    context.recoveries = 1
    end = await turn(model, context=context, emit=emit)
    assert (end.stop_reason, end.error) == ("end_turn", None)
    assert context.refusals == ["ContextOverflow"]
    assert [message.role for message in context.messages] == ["user", "assistant"]
    assert not context.messages[-1].is_api_error_message


async def test_a_refused_question_without_another_one_is_told() -> None:
    model = ScriptedModel(refuses("ContextOverflow"), refuses("ContextOverflow"))
    context, emit = MemoryContext(), Recorder()
    context.recoveries = 1
    end = await turn(model, context=context, emit=emit)
    assert end.error is not None
    assert (end.stop_reason, end.error.code) == ("error", "ContextOverflow")
    assert [message.is_api_error_message for message in context.messages] == [False, True]


async def test_an_answer_that_began_is_never_asked_again() -> None:
    batches = [*says("half")[:2], [ResponseFailed(failure("ContextOverflow", "cut"))]]
    context, emit = MemoryContext(), Recorder()
    context.recoveries = 1
    end = await turn(ScriptedModel(batches), context=context, emit=emit)
    assert end.stop_reason == "error"
    assert context.refusals == []


@pytest.mark.parametrize("fails", [False, True])
async def test_a_tool_that_ends_the_turn_ends_it_when_it_did_well(fails: bool) -> None:
    async def finish(params: EchoParams, call: ToolCall) -> ToolOutcome:
        if fails:
            raise KodeError("ToolFailed", "not yet")
        return ToolOutcome(ok=True, summary="finished")

    last = replace(echo_tool("finish", read_only=False, run=finish), ends_turn=True)
    model = ScriptedModel(calls(("finish", "{}"), ("echo", "{}")), says("another step"))
    context = MemoryContext()
    end = await turn(model, echo_tool(), last, context=context, emit=Recorder())
    assert (end.stop_reason, end.error) == ("end_turn", None)
    assert len(model.requests) == (2 if fails else 1)
    assert_valid_history(context.messages)


async def test_of_thousands_of_calls_in_one_answer_a_hundred_run() -> None:
    """Each has its result all the same, and others on the loop have their turn in between."""
    many = MAX_CALLS * 30
    model = ScriptedModel(calls(*(("echo", '{"text": "a"}') for _ in range(many))), says("done"))
    context, emit = MemoryContext(), Recorder()
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    beside = asyncio.create_task(others())
    end = await turn(model, echo_tool(), context=context, emit=emit)
    beside.cancel()
    results = context.messages[2].content
    assert end.stop_reason == "end_turn"
    assert [one.status for one in results] == ["ok"] * MAX_CALLS + ["error"] * (many - MAX_CALLS)
    assert "Send the rest in the next one" in results[-1].content[0].text
    assert turns > many - MAX_CALLS
