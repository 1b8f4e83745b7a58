"""Pydantic AI as an engine (B12): its agent asks the model, our tools run the calls.

Needs the extra `kode-sidecar[pydantic-ai]`, so only `engines` imports this file, and late. Source:
Pydantic AI's documentation, "Iterating over an agent's graph" and "Toolsets".
"""

import json
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from openai import AsyncOpenAI, DefaultAsyncHttpxClient, Timeout
from pydantic_ai import Agent, AgentRun, CallToolsNode, ModelRequestNode, RunContext
from pydantic_ai.exceptions import (
    AgentRunError,
    ContentFilterError,
    ModelAPIError,
    ModelHTTPError,
    ModelTimeoutError,
)
from pydantic_ai.messages import (
    ModelRequestPart,
    ModelResponse,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.moonshotai import MoonshotAIProvider
from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool
from pydantic_ai.usage import UsageLimits
from pydantic_core import SchemaValidator, core_schema

from kode_sidecar.core.domain.error_info import ErrorInfo, failure
from kode_sidecar.core.domain.message import ToolUseBlock, Usage, texts_of
from kode_sidecar.core.domain.model_event import (
    ModelEvent,
    ResponseFailed,
    ResponseFinished,
    ResponseStarted,
    TextDelta,
    ToolUseDelta,
    ToolUseStarted,
    UsageReported,
)
from kode_sidecar.core.kernel import CallCards, ModelStep, ToolRun, tool_message, tool_specs
from kode_sidecar.core.kernel.contracts import (
    Context,
    Emit,
    ModelClient,
    ModelRequest,
    Tool,
    TurnEnd,
    TurnLimits,
    TurnScope,
)
from kode_sidecar.infrastructure.providers.registry import Target
from kode_sidecar.infrastructure.providers.tool_schema import normalize_schema
from kode_sidecar.jobs.run.run_config import ModelPart, RunConfig

_RETRIES = 1_000_000  # the step limit ends a run, not the number of mistakes
_CONNECTION_TRIES = 3
_ANY_OBJECT = SchemaValidator(core_schema.dict_schema(core_schema.str_schema()))


class PydanticAIEngine:
    """`RunTurn` on Pydantic AI's agent, for models that speak OpenAI's chat dialect."""

    def __init__(self, config: RunConfig, target: Callable[[str], Target]) -> None:
        self._config = config
        self._target = target

    async def __call__(
        self,
        scope: TurnScope,
        model: ModelClient,
        tools: Sequence[Tool],
        context: Context,
        limits: TurnLimits,
        emit: Emit,
        /,
    ) -> TurnEnd:
        """Run an agent over one task."""
        del model
        target = self._target(self._config.model.name)
        if target.model.dialect not in ("kimi", "openai_chat"):
            text = (
                f"The engine pydantic-ai asks hosts that speak OpenAI's chat dialect, which "
                f"{target.config.name} does not. Choose another model, or the engine native."
            )
            return TurnEnd("error", failure("ConfigInvalid", text))
        missing = target.config.missing()
        if missing is not None:
            return TurnEnd("error", missing)
        turn = _Turn(scope, tools, context, limits, emit)
        return await _Task(turn, self._config, target).run()


@dataclass(frozen=True)
class _Turn:
    scope: TurnScope
    tools: Sequence[Tool]
    context: Context
    limits: TurnLimits
    emit: Emit


class _OurTools(AbstractToolset[object]):
    """Offers the tools of a run to Pydantic AI; the kernel checks the arguments.

    `answers` runs the calls of the newest answer, each once.
    """

    def __init__(self, tools: Sequence[Tool]) -> None:
        self._tools = [tool for tool in tools if tool.offered]
        self.answers: _Answers | None = None
        self.withdrawn = False
        self.offered = {tool.name for tool in self._tools}

    @property
    def id(self) -> str:
        """The name of this toolset."""
        return "kode"

    async def get_tools(self, ctx: RunContext[object]) -> dict[str, ToolsetTool[object]]:
        """Return the tools, or none once they are withdrawn."""
        del ctx
        return {} if self.withdrawn else {tool.tool_def.name: tool for tool in self._made()}

    async def call_tool(
        self,
        name: str,
        tool_args: dict[str, Any],
        ctx: RunContext[object],
        tool: ToolsetTool[object],
    ) -> str:
        """Run a call; return the result that the model reads."""
        del name, tool_args, tool
        return await self.answer(ctx.tool_call_id or "")

    async def answer(self, call_id: str) -> str:
        """Run a call of the newest answer; return the result that the model reads."""
        assert self.answers is not None, "asked before it is answered"
        return await self.answers.run(call_id)

    def _made(self) -> list[ToolsetTool[object]]:
        return [
            ToolsetTool(
                toolset=self,
                tool_def=ToolDefinition(
                    name=spec.name,
                    description=spec.description,
                    parameters_json_schema=normalize_schema(spec.schema),
                    sequential=not tool.read_only,
                ),
                max_retries=_RETRIES,
                args_validator=_ANY_OBJECT,
            )
            for tool, spec in zip(self._tools, tool_specs(self._tools), strict=True)
        ]


class _Answers:
    """Runs each call of one answer once, in the order that Pydantic AI chooses."""

    def __init__(self, run: ToolRun, calls: Sequence[ToolUseBlock]) -> None:
        self._run = run
        self._left = [call.tool_use_id for call in calls]

    async def run(self, call_id: str) -> str:
        """Run the call with this id; return the result that the model reads."""
        position = self._left.index(call_id)
        self._left[position] = ""  # a model may use an id twice
        result = await self._run.run_one(position)
        return "\n".join(texts_of(result.content))


class _NodeModel:
    """`ModelClient` of one step: Pydantic AI asks, and its answer becomes our events.

    `after` is the node that follows the answer.
    """

    def __init__(
        self, run: AgentRun[object, str], node: ModelRequestNode[object, str], target: Target
    ) -> None:
        self._run = run
        self._node = node
        self._target = target
        self.after: CallToolsNode[object, str] | None = None

    def missing(self, model: str) -> ErrorInfo | None:
        """Return None: the engine has already checked this."""
        del model

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Sequence[ModelEvent], None]:
        """See `ModelClient`."""
        yield [ResponseStarted(None, self._target.model.id)]
        try:
            if request.stream:
                async for text in self._texts():
                    yield [TextDelta(text)]
            after = await self._run.next(self._node)
        except ContentFilterError:
            yield [ResponseFinished("content_filter")]
            return
        except AgentRunError as error:
            yield [ResponseFailed(_error(error, self._target))]
            return
        assert isinstance(after, CallToolsNode), "an answer is followed by its calls"
        self.after, response = after, after.model_response
        if not request.stream and response.text:
            yield [TextDelta(response.text)]
        for index, call in enumerate(response.tool_calls):
            started = ToolUseStarted(index, call.tool_call_id, call.tool_name)
            # The arguments as the model wrote them: Pydantic AI would wrap invalid JSON.
            raw = call.args if isinstance(call.args, str) else call.args_as_json_str()
            yield [started, ToolUseDelta(index, raw)]
        yield [UsageReported(_usage(response))]
        yield [ResponseFinished("length" if response.finish_reason == "length" else "stop")]

    async def _texts(self) -> AsyncGenerator[str]:
        async with self._node.stream(self._run.ctx) as stream:
            async for event in stream:
                match event:
                    case PartStartEvent(part=TextPart(content=text)) if text:
                        yield text
                    case PartDeltaEvent(delta=TextPartDelta(content_delta=text)) if text:
                        yield text
                    case _:
                        pass


class _Task:
    """Runs one task. `_rounds` counts the answers with tool calls."""

    def __init__(self, turn: _Turn, config: RunConfig, target: Target) -> None:
        self._turn = turn
        self._config = config
        self._target = target
        self._tools = _OurTools(turn.tools)
        self._rounds = 0

    async def run(self) -> TurnEnd:
        """Ask and run tools until done. Raises KodeError `Storage`."""
        request = await self._turn.context.request((), "auto")
        prompt = "\n".join(texts_of(request.messages[-1].content))
        async with _http(self._target) as http:
            agent = Agent(
                _model(self._target, http),
                system_prompt=request.system,
                toolsets=[self._tools],
                model_settings=_settings(self._config.model, self._target),
                retries={"tools": _RETRIES, "output": _CONNECTION_TRIES},
            )
            try:
                limits = UsageLimits(request_limit=None)
                async with agent.iter(prompt, usage_limits=limits) as run:
                    return await self._walk(run, request)
            except AgentRunError as error:
                return TurnEnd("error", _error(error, self._target))

    async def _walk(self, run: AgentRun[object, str], request: ModelRequest) -> TurnEnd:
        node, turn = run.next_node, self._turn
        cards = CallCards(turn.tools, turn.scope.uri_of)
        reported: dict[str, str] = {}
        while not Agent.is_end_node(node):
            if not isinstance(node, ModelRequestNode):
                node = await run.next(node)
                continue
            self._prepare(node, reported)
            await turn.emit.flow()
            model = _NodeModel(run, node, self._target)
            step = ModelStep(turn.scope, turn.context, turn.emit, cards)
            await step.run(model, request)
            answer = step.assembler
            if answer.error is not None:
                return TurnEnd("error", answer.error)
            if model.after is None:
                return TurnEnd("refusal")
            async with self._answering(answer.tool_uses):
                if answer.finish_reason == "length":
                    return TurnEnd("max_tokens")
                if answer.tool_uses and self._tools.withdrawn:
                    break
                self._rounds += bool(answer.tool_uses)
                reported = await self._answer_unknown(answer.tool_uses)
                node = await run.next(model.after)
        return TurnEnd("max_tool_rounds" if self._tools.withdrawn else "end_turn")

    def _prepare(self, node: ModelRequestNode[object, str], reported: Mapping[str, str]) -> None:
        """Put our texts into a request: answers to unknown calls, and the step limit's text."""
        node.request.parts = [_answered(part, reported) for part in node.request.parts]
        if self._rounds >= self._config.runtime.max_steps and not self._tools.withdrawn:
            self._tools.withdrawn = True
            order = UserPromptPart(self._turn.limits.limit_instruction)
            node.request.parts = [*node.request.parts, order]

    @asynccontextmanager
    async def _answering(self, calls: Sequence[ToolUseBlock]) -> AsyncGenerator[None]:
        """Let the tools answer these calls, in one message of the session."""
        turn = self._turn
        if not calls:
            yield
            return
        message = tool_message(turn.scope, turn.context, turn.tools, turn.limits, turn.emit, calls)
        async with message as run:
            self._tools.answers = _Answers(run, calls)
            yield

    async def _answer_unknown(self, calls: Sequence[ToolUseBlock]) -> dict[str, str]:
        """Return our answers, by call id, to calls of tools that Pydantic AI does not know.

        Unknown and invalid calls are recorded like all others; a refusal is worded by us.
        """
        reported: dict[str, str] = {}
        for call in calls:
            if call.name not in self._tools.offered or call.invalid_input is not None:
                text = await self._tools.answer(call.tool_use_id)
                if call.invalid_input is None:
                    reported[call.tool_use_id] = text
        return reported


def _http(target: Target) -> DefaultAsyncHttpxClient:
    """Make a client like our own (W9): no system proxy, no redirects, our timeouts."""
    config, times = target.config, target.config.timeouts
    return DefaultAsyncHttpxClient(
        trust_env=False,
        proxy=config.proxy,
        follow_redirects=False,
        timeout=Timeout(times.idle, connect=times.connect, write=times.write),
    )


def _model(target: Target, http: DefaultAsyncHttpxClient) -> OpenAIChatModel:
    config = target.config
    client = AsyncOpenAI(
        base_url=config.base_url,
        api_key=config.api_key or "none",
        default_headers=config.headers({}),
        max_retries=_CONNECTION_TRIES,
        http_client=http,
    )
    if target.model.dialect == "kimi":
        provider = MoonshotAIProvider(openai_client=client)
    else:
        provider = OpenAICompatibleProvider(config.name, openai_client=client)
    return OpenAIChatModel(target.model.id, provider=provider)


def _settings(wanted: ModelPart, target: Target) -> ModelSettings:
    """Return only what the model accepts (A13)."""
    settings = ModelSettings(parallel_tool_calls=True)
    if wanted.max_tokens is not None:
        settings["max_tokens"] = wanted.max_tokens
    if target.model.sampling:
        if wanted.temperature is not None:
            settings["temperature"] = wanted.temperature
        if wanted.top_p is not None:
            settings["top_p"] = wanted.top_p
    return settings


def _usage(response: ModelResponse) -> Usage:
    used = response.usage
    return Usage(
        input_tokens=used.input_tokens,
        output_tokens=used.output_tokens,
        total_tokens=used.input_tokens + used.output_tokens,
        cached_tokens=used.cache_read_tokens,
        cache_write_tokens=used.cache_write_tokens,
        reasoning_tokens=used.details.get("reasoning_tokens", 0),
    )


def _answered(part: ModelRequestPart, answers: Mapping[str, str]) -> ModelRequestPart:
    if isinstance(part, ToolReturnPart) and part.tool_call_id in answers:
        return ToolReturnPart(part.tool_name, answers[part.tool_call_id], part.tool_call_id)
    return part


def _error(error: AgentRunError, target: Target) -> ErrorInfo:
    """Return the failure, worded as elsewhere in the sidecar, without the key."""
    errors = target.config.errors()
    if isinstance(error, ModelHTTPError):
        said = error.body if isinstance(error.body, str) else json.dumps({"error": error.body})
        body = said.encode()
        return errors.response(error.status_code, {}, body, target.model.id)
    host = target.config.host()
    if isinstance(error, ModelTimeoutError):
        return failure("Network", f"{host} did not answer in time. Try again later.")
    if isinstance(error, ModelAPIError):
        return failure("Network", f"{host} cannot be reached. Check the network and the address.")
    return failure("Provider", f"The answer of {host} could not be used by Pydantic AI.")
