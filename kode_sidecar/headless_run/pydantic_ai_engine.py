"""Pydantic AI as an engine (B12): its agent asks the model, the tools stay ours.

The extra `kode-sidecar[pydantic-ai]`; only `engines` imports this file, and late. Source: Pydantic
AI's documentation, "Iterating over an agent's graph" and "Toolsets".
"""

import json
from collections.abc import Callable, Mapping
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

from kode_sidecar.domain.error_info import ErrorInfo, failure
from kode_sidecar.domain.message import Usage
from kode_sidecar.headless_run.contracts import (
    EngineNote,
    EngineRequest,
    EngineResult,
    ModelSaid,
    StepStarted,
    TextGrew,
)
from kode_sidecar.headless_run.engine_limits import within_limits
from kode_sidecar.kernel import bounded_output, tool_specs
from kode_sidecar.kernel.contracts import ArtifactSink, TurnLimits
from kode_sidecar.providers.registry import Target
from kode_sidecar.providers.tool_schema import normalize_schema

_MAX_RESULT_CHARS = TurnLimits(0, "").max_result_chars
_RETRIES = 1_000_000  # the step limit ends a run, not the number of mistakes
_CONNECTION_TRIES = 3
_ANY_OBJECT = SchemaValidator(core_schema.dict_schema(core_schema.str_schema()))


class PydanticAIEngine:
    """`contracts.Engine` on Pydantic AI's agent.

    `target` gives the model behind a name; it must speak OpenAI's chat dialect. `limit_instruction`
    is told at the step limit, `save_artifact` keeps what tools say too much.
    """

    name = "pydantic-ai"

    def __init__(
        self, target: Callable[[str], Target], limit_instruction: str, save_artifact: ArtifactSink
    ) -> None:
        self._target = target
        self._limit_instruction = limit_instruction
        self._save_artifact = save_artifact

    async def run(self, request: EngineRequest) -> EngineResult:
        """See `contracts.Engine`."""
        target = self._target(request.model)
        if target.model.dialect == "anthropic_messages":
            text = (
                f"The engine pydantic-ai asks hosts that speak OpenAI's dialect, which "
                f"{target.config.name} does not. Choose another model, or the engine native."
            )
            return EngineResult("failed", error=failure("ConfigInvalid", text))
        missing = target.config.missing()
        if missing is not None:
            return EngineResult("failed", error=missing)
        work = _Work(request, target, self._limit_instruction, self._save_artifact)
        return await within_limits(request, work.run())


class _OurTools(AbstractToolset[object]):
    """The tools of a run as Pydantic AI takes them; arguments are checked by the tools."""

    def __init__(self, request: EngineRequest, save_artifact: ArtifactSink) -> None:
        self._tools = request.tools
        self._save_artifact = save_artifact
        self.withdrawn = False
        self.known = {tool.name: tool.offered for tool in self._tools.offered}

    @property
    def id(self) -> str:
        """Its name among toolsets."""
        return "kode"

    async def get_tools(self, ctx: RunContext[object]) -> dict[str, ToolsetTool[object]]:
        """None once they are withdrawn."""
        del ctx
        return {} if self.withdrawn else {tool.tool_def.name: tool for tool in self._made()}

    async def call_tool(
        self,
        name: str,
        tool_args: dict[str, Any],
        ctx: RunContext[object],
        tool: ToolsetTool[object],
    ) -> str:
        """What the model reads of a call."""
        del tool
        return await self.answer(name, tool_args, ctx.tool_call_id or "")

    async def answer(self, name: str, arguments: Mapping[str, Any], call_id: str) -> str:
        """The same for any name, also of a tool that there is none of."""
        outcome = await self._tools.call(name, arguments, call_id)
        text = outcome.content or outcome.summary
        return bounded_output(text, _MAX_RESULT_CHARS, self._save_artifact)[0]

    def _made(self) -> list[ToolsetTool[object]]:
        offered = [tool for tool in self._tools.offered if tool.offered]
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
            for tool, spec in zip(offered, tool_specs(offered), strict=True)
        ]


class _Work:
    """One task. `steps` are the answers so far, `rounds` those with tool calls."""

    def __init__(
        self,
        request: EngineRequest,
        target: Target,
        limit_instruction: str,
        save_artifact: ArtifactSink,
    ) -> None:
        self._request = request
        self._target = target
        self._limit_instruction = limit_instruction
        self._tools = _OurTools(request, save_artifact)
        self._steps = 0
        self._rounds = 0
        self._said = ""
        self._usage = Usage()

    async def run(self) -> EngineResult:
        """Ask and run tools until done. Raises what `RunTools.call` raises."""
        async with _http(self._target) as http:
            agent = Agent(
                _model(self._target, http),
                system_prompt=self._request.system,
                toolsets=[self._tools],
                model_settings=_settings(self._request, self._target),
                retries={"tools": _RETRIES, "output": _CONNECTION_TRIES},
            )
            try:
                limits = UsageLimits(request_limit=None)
                async with agent.iter(self._request.prompt, usage_limits=limits) as run:
                    return await self._walk(run)
            except AgentRunError as error:
                return self._result("failed", _error(error, self._target))

    async def _walk(self, run: AgentRun[object, str]) -> EngineResult:
        node = run.next_node
        answers: dict[str, str] = {}
        while not Agent.is_end_node(node):
            if isinstance(node, ModelRequestNode):
                node.request.parts = [_answered(part, answers) for part in node.request.parts]
                await self._ask(run, node)
            elif isinstance(node, CallToolsNode):
                ended = self._tell(node.model_response)
                if ended is not None:
                    return ended
                answers = await self._answer_unknown(node.model_response)
            node = await run.next(node)
        return self._result("step_limit" if self._tools.withdrawn else "finished")

    async def _ask(self, run: AgentRun[object, str], node: ModelRequestNode[object, str]) -> None:
        self._steps += 1
        self._request.on_event(StepStarted(step=self._steps))
        if self._rounds >= self._request.max_steps and not self._tools.withdrawn:
            self._tools.withdrawn = True
            order = UserPromptPart(self._limit_instruction)
            node.request.parts = [*node.request.parts, order]
        if self._request.stream:
            async with node.stream(run.ctx) as stream:
                async for event in stream:
                    match event:
                        case PartStartEvent(part=TextPart(content=text)):
                            self._grow(text)
                        case PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
                            self._grow(text)
                        case _:
                            pass

    def _grow(self, text: str) -> None:
        if text:
            self._request.on_event(TextGrew(text=text))

    def _tell(self, response: ModelResponse) -> EngineResult | None:
        """Report an answer; the end, where it is one that no tool call follows."""
        usage = _usage(response)
        self._usage = self._usage.plus(usage)
        text = response.text or ""
        self._said = text or self._said
        names = tuple(call.tool_name for call in response.tool_calls)
        said = ModelSaid(
            step=self._steps,
            text=text,
            calls=names,
            model=response.model_name or self._target.model.id,
            usage=usage,
        )
        self._request.on_event(said)
        if response.finish_reason == "length":
            cut = "The model's answer was cut off at its token limit; raise model.max_tokens."
            return self._result("failed", failure("IncompleteAnswer", cut))
        if names and self._tools.withdrawn:
            return self._result("step_limit")
        self._rounds += bool(names)
        return None

    async def _answer_unknown(self, response: ModelResponse) -> dict[str, str]:
        """What the model is told of calls that Pydantic AI knows no tool for, by call id.

        They are recorded like all others; a refusal has its own words.
        """
        answers: dict[str, str] = {}
        for call in response.tool_calls:
            name, call_id = call.tool_name, call.tool_call_id
            try:
                arguments = call.args_as_dict(raise_if_invalid=True)
            except (ValueError, AssertionError):
                self._note("InvalidArguments", f"{name} was called without valid JSON.")
                continue
            if not self._tools.known.get(name):
                answers[call_id] = await self._tools.answer(name, arguments, call_id)
            if name not in self._tools.known:
                self._note("UnknownTool", f"The model asked for a tool {name!r}.")
        return answers

    def _note(self, code: str, message: str) -> None:
        self._request.on_event(EngineNote(code=code, message=message))

    def _result(self, outcome: Any, error: ErrorInfo | None = None) -> EngineResult:
        return EngineResult(outcome, self._said, self._steps, self._usage, error)


def _http(target: Target) -> DefaultAsyncHttpxClient:
    """As our own client asks (W9): no proxy of the system, no redirects, patience with silence."""
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


def _settings(request: EngineRequest, target: Target) -> ModelSettings:
    """Only what the model accepts (A13)."""
    settings = ModelSettings(parallel_tool_calls=True)
    if request.max_tokens is not None:
        settings["max_tokens"] = request.max_tokens
    if target.model.sampling:
        if request.temperature is not None:
            settings["temperature"] = request.temperature
        if request.top_p is not None:
            settings["top_p"] = request.top_p
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
    """The failure as the rest of the sidecar tells it, without the key."""
    errors = target.config.errors()
    if isinstance(error, ModelHTTPError):
        said = error.body if isinstance(error.body, str) else json.dumps({"error": error.body})
        body = said.encode()
        return errors.response(error.status_code, {}, body, target.model.id)
    if isinstance(error, ContentFilterError):
        text = "The host filtered the model's answer; change the task or the model."
        return failure("ContentFiltered", text)
    host = target.config.host()
    if isinstance(error, ModelTimeoutError):
        return failure("Network", f"{host} did not answer in time. Try again later.")
    if isinstance(error, ModelAPIError):
        return failure("Network", f"{host} cannot be reached. Check the network and the address.")
    return failure("Provider", f"The answer of {host} could not be used by Pydantic AI.")
