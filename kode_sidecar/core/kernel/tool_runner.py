"""Runs the tool calls of one answer: in order, adjacent read-only calls in parallel."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import groupby
from typing import Any, cast

import msgspec

from kode_sidecar.core.domain.agent_event import (
    BlockCompleted,
    BlockDelta,
    BlockStarted,
    ToolProgress,
)
from kode_sidecar.core.domain.error_info import error_info, failure
from kode_sidecar.core.domain.message import (
    Blob,
    ResultStatus,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from kode_sidecar.core.kernel.call_cards import read_arguments
from kode_sidecar.core.kernel.contracts import (
    ArtifactSink,
    Emit,
    Tool,
    ToolCall,
    ToolOutcome,
    ToolSpec,
    TurnLimits,
    TurnScope,
    tool_failure,
)
from kode_sidecar.core.kernel.repeats import Repeats
from kode_sidecar.core.text.tool_arguments import arguments_of
from kode_sidecar.errors import KodeError

MAX_CALLS = 100
"""How many calls of one answer are run at most."""
_LENGTHS = ("minLength", "maxLength")
_REFUSED = ("permission", "sandbox")


def tool_specs(tools: Sequence[Tool]) -> tuple[ToolSpec, ...]:
    """Return the specs of the offered tools: docstring and JSON Schema of the params struct."""
    return tuple(spec_of(tool) for tool in tools if tool.offered and not tool.deferred)


def spec_of(tool: Tool) -> ToolSpec:
    """Return what a model reads of a tool, whether it is offered or found."""
    return tool.spec or _spec(tool.name, tool.params)


@lru_cache(maxsize=256)
def _spec(name: str, params: type[msgspec.Struct]) -> ToolSpec:
    return ToolSpec(
        name=name,
        description=_described(params),
        schema=_short(msgspec.json.schema(params)),
    )


def _short(schema: Any) -> Any:
    """Return a schema without lengths of texts, which each call is checked for, and docstrings."""
    if isinstance(schema, list):
        return [_short(one) for one in cast(list[object], schema)]
    if not isinstance(schema, dict):
        return schema
    members = cast(dict[str, Any], schema)
    found = {name: _short(one) for name, one in members.items() if name not in _LENGTHS}
    if "properties" in members:  # named by a struct, whatever else its names mean
        found.pop("description", None)
        found["properties"] = {name: _short(one) for name, one in members["properties"].items()}
    return found


def _described(params: type[msgspec.Struct]) -> str:
    """Return what a docstring says, without its line breaks and indentation, which cost tokens."""
    paragraphs = (params.__doc__ or "").split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs).strip()


class ToolRun:
    """The calls of one answer. Every call gets exactly one result, in call order.

    `ends_turn`: a call of a tool that ends the turn succeeded.
    """

    def __init__(
        self,
        scope: TurnScope,
        tools: Sequence[Tool],
        limits: TurnLimits,
        emit: Emit,
        message_id: str,
        calls: Sequence[ToolUseBlock],
        repeats: Repeats | None = None,
    ) -> None:
        self._repeats = repeats or Repeats()
        self._scope = scope
        self._tools = {tool.name: tool for tool in tools}
        self._limits = limits
        self._emit = emit
        self._message_id = message_id
        self._calls = calls
        self._siblings = tuple(call.tool_use_id for call in calls)
        self._block_ids: dict[int, str] = {}
        self._results: dict[int, ToolResultBlock] = {}
        self.ends_turn = False

    async def run(self) -> None:
        """Run up to `MAX_CALLS` calls; each further one gets an error result.
        When cancelled, call `answer_rest` afterwards.
        """
        await self._run_calls(min(len(self._calls), MAX_CALLS))
        text = f"Not run: one answer may hold {MAX_CALLS} calls. Send the rest in the next one."
        for position in range(MAX_CALLS, len(self._calls)):
            await self._emit.flow()
            await asyncio.sleep(0)  # thousands of calls must not block the event loop
            self._finish(position, tool_failure(failure("Overloaded", text)), "error")

    async def _run_calls(self, count: int) -> None:
        for group in self._groups(count):
            if len(group) == 1:
                await self.run_one(group[0])
                continue
            try:
                async with asyncio.TaskGroup() as running:
                    for position in group:
                        running.create_task(self.run_one(position))
            except* KodeError as failed:
                # Only a failing store raises; the turn ends with its error, not with a group.
                raise failed.exceptions[0] from None

    def answer_rest(self, reason: str) -> None:
        """Give every call without a result the error `Cancelled`. Call it when none runs."""
        for position in range(len(self._calls)):
            if position not in self._results:
                self._finish(position, tool_failure(failure("Cancelled", reason)), "cancelled")

    @property
    def results(self) -> tuple[ToolResultBlock, ...]:
        """All results in call order."""
        return tuple(self._results[position] for position in range(len(self._calls)))

    def _groups(self, count: int) -> Iterator[list[int]]:
        def shared(position: int) -> bool:
            tool = self._tools.get(self._calls[position].name)
            return tool is not None and tool.read_only

        for together, positions in groupby(range(count), shared):
            if together:
                yield list(positions)
            else:
                yield from ([position] for position in positions)

    async def run_one(self, position: int) -> ToolResultBlock:
        """Run one call and return its result; for a loop that chooses the order itself."""
        await self._emit.flow()
        self._start(position)
        outcome = await self._outcome(position)
        outcome = self._repeats.noted(self._calls[position], outcome, self._message_id)
        self._finish(position, outcome, _status(outcome))
        return self._results[position]

    async def _outcome(self, position: int) -> ToolOutcome:
        call = self._calls[position]
        tool = self._tools.get(call.name)
        if tool is None:
            names = (name for name, known in self._tools.items() if known.offered)
            offered = ", ".join(sorted(names)) or "none"
            text = f"There is no tool named {call.name!r}. Tools on offer: {offered}."
            return tool_failure(failure("UnknownTool", text))
        if call.invalid_input is not None:
            text = "The arguments were not a valid JSON object; send the call again, whole."
            return tool_failure(failure("InvalidArguments", text))
        try:
            params, notes = read_arguments(tool, call.input)
            if tool.passes_on is not None and (passed := tool.passes_on(params)) is not None:
                tool, arguments = passed
                params, notes = read_arguments(tool, arguments)
        except msgspec.ValidationError as error:
            text = f"Invalid arguments for {tool.name}: {error}. Mend them and call again."
            if not tool.foreign:
                text += f" Its arguments are {arguments_of(tool.params)}."
            return tool_failure(failure("InvalidArguments", text))
        try:
            named = replace(self._call(call, self._block_ids[position]), name=tool.name)
            outcome = await self._scope.run_call(tool, params, named)
            self.ends_turn = self.ends_turn or (tool.ends_turn and outcome.ok)
            return _with_notes(outcome, notes)
        except KodeError as error:
            return tool_failure(error_info(error))
        except Exception as error:
            self._scope.report_bug(f"tool {tool.name}", error)
            text = f"{tool.name} failed inside the sidecar; the log has the details. Go on without."
            return tool_failure(failure("ToolFailed", text))

    def _call(self, call: ToolUseBlock, result_id: str) -> ToolCall:
        length = 0

        def grow(text: str) -> None:
            nonlocal length
            self._emit(BlockDelta(block_id=result_id, at=length, add=text))
            length += len(text)

        def progress(message: str, completed: int | None, total: int | None) -> None:
            self._emit(
                ToolProgress(
                    turn_id=self._scope.turn_id,
                    message_id=self._message_id,
                    block_id=call.id,
                    tool_use_id=call.tool_use_id,
                    sibling_tool_use_ids=self._siblings,
                    message=message,
                    completed=completed,
                    total=total,
                )
            )

        return ToolCall(
            tool_use_id=call.tool_use_id,
            name=call.name,
            session_id=self._scope.session_id,
            turn_id=self._scope.turn_id,
            message_id=self._message_id,
            block_id=call.id,
            progress=progress,
            grow=grow,
        )

    def _start(self, position: int) -> str:
        block_id = self._block_ids[position] = self._scope.new_id("block")
        self._emit(
            BlockStarted(
                turn_id=self._scope.turn_id,
                message_id=self._message_id,
                block_id=block_id,
                block=ToolResultBlock(
                    id=block_id,
                    tool_use_id=self._calls[position].tool_use_id,
                    call_block_id=self._calls[position].id,
                    status="running",
                ),
            )
        )
        return block_id

    def _finish(self, position: int, outcome: ToolOutcome, status: ResultStatus) -> None:
        block_id = self._block_ids.get(position) or self._start(position)
        text, artifact = bounded_output(
            outcome.content or outcome.summary,
            self._limits.max_result_chars,
            self._scope.save_artifact,
        )
        block = ToolResultBlock(
            id=block_id,
            tool_use_id=self._calls[position].tool_use_id,
            call_block_id=self._calls[position].id,
            content=(TextBlock(text=text), *outcome.images),
            is_error=not outcome.ok,
            status=status,
            summary=outcome.summary,
            artifact=artifact or outcome.whole,
        )
        self._results[position] = block
        self._scope.call_ended(block.tool_use_id, outcome)
        self._emit(
            BlockCompleted(
                turn_id=self._scope.turn_id,
                message_id=self._message_id,
                block_id=block_id,
                block=block,
            )
        )


def bounded_output(text: str, limit: int, save: ArtifactSink) -> tuple[str, Blob | None]:
    """Return an output cut to `limit` characters, and the artifact with all of it if cut."""
    if len(text) <= limit:
        return text, None
    try:
        artifact = save(text)
        where = f"the whole output is kept for the user as artifact {artifact.ref}"
    except KodeError:
        artifact = None
        where = "the rest could not be kept"
    return f"{text[:limit]}\n[cut after {limit} of {len(text)} characters; {where}]", artifact


def _with_notes(outcome: ToolOutcome, notes: Sequence[str]) -> ToolOutcome:
    if not notes:
        return outcome
    content = outcome.content or outcome.summary
    return msgspec.structs.replace(
        outcome, content=f"{content}\n[Your arguments were corrected: {'; '.join(notes)}.]"
    )


def _status(outcome: ToolOutcome) -> ResultStatus:
    if outcome.ok:
        return "ok"
    refused = outcome.error is not None and outcome.error.category in _REFUSED
    return "denied" if refused else "error"
