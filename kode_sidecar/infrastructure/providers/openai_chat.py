"""Decodes the stream of OpenAI-compatible chat hosts into model events. Sans-IO."""

from collections.abc import Iterable
from typing import Any

from kode_sidecar.core.domain.model_event import FinishReason, ModelEvent, OpaqueData
from kode_sidecar.infrastructure.providers.answer_events import TEXT, THINKING
from kode_sidecar.infrastructure.providers.event_decoder import (
    NO_CONTEXT,
    AnswerContext,
    EventDecoder,
)
from kode_sidecar.infrastructure.providers.openai_wire import (
    ChunkReader,
    ContentPart,
    Delta,
    OpenAIChoice,
    OpenAIChunk,
    OpenAIUsage,
    ReasoningDetails,
    error_of,
    reported_cost,
    usage_of,
)
from kode_sidecar.infrastructure.providers.profiles import usage_event
from kode_sidecar.infrastructure.providers.tool_call_assembly import ToolCallAssembly

_FINISH_REASONS: dict[str, FinishReason] = {
    "stop": "stop",
    "eos": "stop",
    "end_turn": "stop",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "model_context_window_exceeded": "length",
    "content_filter": "content_filter",
    "insufficient_system_resource": "incomplete",
    "abort": "incomplete",
}


class ChatDecoder(EventDecoder):
    """Decodes one answer, which its finish reason completes."""

    _think_tags = True
    _needs_done = False

    def __init__(self, context: AnswerContext = NO_CONTEXT) -> None:
        super().__init__(context)
        self._reader = ChunkReader(context.names)
        self._identity = AnswerIdentity()
        self._is_over = False

    def _begin(self) -> None:
        super()._begin()
        self._calls = ToolCallAssembly(self._taken)
        self._started = False
        self._named_reasoning = False
        self._details = ReasoningDetails()
        self._usage: OpenAIUsage | None = None

    @property
    def complete(self) -> bool:
        """True if the model's answer is complete, whatever happens to the connection now."""
        return self._done or (self._raw_reason is not None and not self._needs_done)

    def feed_many(self, batch: Iterable[bytes]) -> list[ModelEvent]:
        identity = self._identity
        for data, chunk in self._read_events(batch, self._reader.exact, self._reader.tolerant):
            if chunk.id == identity.id:
                identity.seen += 1
                if identity.seen == _SECOND:
                    identity.note_second(chunk)
            elif self._is_of_another_answer(chunk):
                continue
            choices = chunk.choices
            # The common case, growth and nothing else, takes the short way.
            if choices and chunk.usage is None and chunk.error is None:
                choice = choices[0]
                delta = choice.delta
                if (
                    delta is not None
                    and choice.finish_reason is None
                    and not choice.index
                    and choice.usage is None
                    and choice.error is None
                ):
                    if not self._started:
                        self._start(chunk)
                    self._grow(delta)
                    continue
            self._read_rest(data, chunk)
        return self._runs.take()

    def finish(self) -> list[ModelEvent]:
        if self._failed:
            return []
        self._start(None)
        runs, calls = self._runs, self._calls
        for leaked in runs.end_leaks(take_calls=not calls.count):
            self._put_all(calls.add_complete(*leaked))
        self._put_all(calls.finish())
        if self._details.whole:
            runs.put(OpaqueData({"reasoning_details": self._details.whole}))
        if self._usage is not None:
            runs.put(usage_event(usage_of(self._usage), self._price, reported_cost(self._usage)))
        return self._put_end(has_calls=calls.count > 0, has_nameless_call=calls.has_nameless_call())

    def _is_of_another_answer(self, chunk: OpenAIChunk) -> bool:
        """Return whether to skip a chunk, as part of a second answer after the end of the first.

        A gateway that repeats a request appends a second answer, with another id. Before the end
        of the first answer, the second one replaces it.
        """
        if self._raw_reason is not None:
            self._is_over = self._is_over or self._identity.lasts or self._identity.begins(chunk)
            return self._is_over and bool(chunk.choices)
        if self._identity.begins(chunk):
            self._drop_attempt()
            self._begin()
        return False

    def _start(self, chunk: OpenAIChunk | None) -> None:
        if not self._started:
            self._started = True
            self._put_start(chunk and chunk.id, chunk and chunk.model)

    def _grow(self, delta: Delta) -> None:
        runs = self._runs
        reasoning = delta.reasoning_content or delta.reasoning
        if reasoning:
            self._named_reasoning = True
        if delta.reasoning_details:
            reported = self._details.add(delta.reasoning_details)
            # Most hosts that send the list send its text in another field, too.
            reasoning = reasoning if self._named_reasoning else reported
        if reasoning or (delta.reasoning_content is not None and not runs.has_any):
            runs.add(THINKING, reasoning or "")
        content = delta.content
        if content:
            if isinstance(content, str):
                runs.add(TEXT, content)
            else:
                self._add_parts(content, TEXT)
        if delta.refusal:
            runs.add(TEXT, delta.refusal)
        if delta.tool_calls:
            self._put_all(self._calls.feed(delta.tool_calls))

    def _add_parts(self, parts: list[ContentPart], kind: int) -> None:
        for part in parts:
            if isinstance(part.thinking, str):
                self._runs.add(THINKING, part.thinking)
            elif part.thinking:
                self._add_parts(part.thinking, THINKING)
            if part.text:
                self._runs.add(kind, part.text)

    def _read_rest(self, data: bytes, chunk: OpenAIChunk) -> None:
        """Read anything but plain growth: errors, usage, the end, a whole completion."""
        error = error_of(data, chunk)
        if error is not None:
            self._fail(error)
            return
        groq = chunk.x_groq.usage if chunk.x_groq else None
        self._usage = chunk.usage or groq or self._usage
        if not chunk.choices:
            return
        self._start(chunk)
        choice = _first(chunk.choices)
        if choice is None:
            return
        self._usage = chunk.usage or choice.usage or self._usage
        delta, message = choice.delta, choice.message
        if delta is not None and message is not None and choice.finish_reason is not None:
            # A whole answer beside an empty delta (Perplexity): nothing came before.
            delta = None if not any(_shape(delta)) and not self._runs.has_any else delta
        if delta is not None:
            self._grow(delta)
        elif choice.message is not None:
            calls, choice.message.tool_calls = choice.message.tool_calls, None
            self._grow(choice.message)
            self._put_all(self._calls.feed(calls or (), whole=True))
            self._done = True
        self._raw_reason = choice.finish_reason or self._raw_reason

    def _ends_with_mark(self) -> bool:
        return True

    def _reason(self) -> FinishReason:
        if not self.complete or (self._calls.count and (self._has_gap or self._runs.call_is_torn)):
            # A part of a call may be lost, so the call must not run.
            return "incomplete"
        if self._raw_reason is None:
            return "tool_calls" if self._calls.count else "other"
        reason = _FINISH_REASONS.get(self._raw_reason, "other")
        return "tool_calls" if reason in ("stop", "other") and self._calls.count else reason


# The chunk of an answer that shows whether each of its chunks has a role.
_SECOND = 2


def _first(choices: list[OpenAIChoice]) -> OpenAIChoice | None:
    """Return the choice 0, the only one requested; a host may send several, in any order."""
    return next((choice for choice in choices if not choice.index), None)


class KimiDecoder(ChatDecoder):
    """Decodes an answer that only `[DONE]` completes, no finish reason."""

    _needs_done = True


class AnswerIdentity:
    """Detects by the ids of chunks where a second answer begins.

    A gateway that repeats a request appends a second answer to the first. Hosts differ in their
    ids: most give an answer one id, some a new one to every chunk, some none to the first event.

    `id` is the newest id, and `seen` counts its chunks: the reader counts up for each chunk with
    the same id, and calls `begins` only for another id.
    """

    def __init__(self) -> None:
        self.id: str | int | None = None
        self.seen = 0
        self._changes = False
        self._role_left = False
        self._role_waits = False
        self._role_stays = False
        self._opening: Any = None

    @property
    def lasts(self) -> bool:
        """True if the host gives an answer one id."""
        return self.seen > 1 and not self._changes and self.id is not None

    def note_second(self, chunk: OpenAIChunk) -> None:
        """Look whether the second chunk of an id has a role again: then a role begins nothing."""
        delta = chunk.choices[0].delta if chunk.choices else None
        self._role_stays = self._role_stays or (delta is not None and delta.role is not None)

    def begins(self, chunk: OpenAIChunk) -> bool:
        """Return whether a chunk whose id is not `id` begins another answer.

        An answer begins with a role. If every chunk has another id, the chunk must also have the
        shape of the first one, and chunks without a role must lie between the two.
        """
        choice = chunk.choices[0] if chunk.choices else None
        delta = choice.delta if choice else None
        has_role = delta is not None and delta.role is not None
        if not chunk.id:
            # The role of an answer may come in a chunk before its id.
            self._role_waits = self._role_waits or (has_role and self.id is not None)
            return False
        has_role, self._role_waits = has_role or self._role_waits, False
        if self.id is None:
            self._open(chunk, delta)
            return False
        if self.lasts:
            begins = has_role and not self._role_stays
        else:
            opens = choice is not None and choice.finish_reason is None
            begins = opens and has_role and self._role_left and _shape(delta) == self._opening
        if begins:
            self._open(chunk, delta)
            return True
        self.id, self.seen, self._changes = chunk.id, 1, True
        self._role_left = self._role_left or not has_role
        return False

    def _open(self, chunk: OpenAIChunk, delta: Delta | None) -> None:
        self.id, self.seen = chunk.id, 1
        self._changes = self._role_left = False
        self._opening = _shape(delta)


def _shape(delta: Delta | None) -> tuple[bool, ...]:
    """Return which of text, reasoning and tool calls a delta contains."""
    if delta is None:
        return ()
    thoughts = delta.reasoning_content or delta.reasoning or delta.reasoning_details
    return bool(delta.content), bool(thoughts), bool(delta.tool_calls)
