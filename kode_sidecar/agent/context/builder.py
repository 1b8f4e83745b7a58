"""Build the model's view of a conversation: a window of messages, normalized for the API."""

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from kode_sidecar.agent.context.compaction import after_summary
from kode_sidecar.agent.context.left_out import (
    in_force,
    only_pinned,
    pinned_on,
    without_left_out,
    without_refused,
)
from kode_sidecar.core.domain.context_edits import NO_EDITS, ContextEdits
from kode_sidecar.core.domain.event_parts import Effort
from kode_sidecar.core.domain.message import (
    Block,
    ImageBlock,
    Message,
    ResourceBlock,
    Role,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    unanswered,
)
from kode_sidecar.core.kernel.contracts import ModelRequest, Sampling, ToolChoice, ToolSpec

_KINDS: dict[Role, tuple[type[Block], ...]] = {
    "system": (TextBlock, ResourceBlock),
    "user": (TextBlock, ImageBlock, ResourceBlock),
    "assistant": (TextBlock, ThinkingBlock, ToolUseBlock),
    "tool": (),
}
_EARLIER = "[Earlier messages of this conversation are left out.]"
_GO_ON = "[Go on where you stopped.]"
_NO_RESULT = "[No result: the call was interrupted. Call the tool again if you still need it.]"


def cut_window(path: Sequence[Message], limit: int | None) -> list[Message]:
    """Return the most recent `limit` messages of a path (A5), all of them for None.

    Tool results are never separated from their calls: the window then begins earlier, at the
    message that holds the call, and it never begins with a tool message.
    """
    start = 0
    if limit is not None and len(path) > limit:
        start = _with_calls(path, len(path) - limit)
    while start < len(path) and path[start].role == "tool":
        start += 1
    return list(path[start:])


def shown_messages(
    path: Sequence[Message], limit: int | None, edits: ContextEdits = NO_EDITS
) -> list[Message]:
    """Return the messages of a path for the model: from the newest summary on, at most `limit`.

    The summary and pinned messages always stay. The window is cut once, at the start of a turn, so
    that the prompt only grows: hosts cache it by prefix.
    """
    pinned = pinned_on(path, edits)
    messages = without_left_out(after_summary(in_force(path, edits), pinned), edits)
    first = 1 if messages and messages[0].is_summary else 0
    newest = cut_window(messages[first:], limit)
    cut = messages[first : len(messages) - len(newest)]
    return [*messages[:first], *only_pinned(cut, pinned), *newest]


def _with_calls(path: Sequence[Message], start: int) -> int:
    """Return `start`, or the place of the assistant message that the first results answer."""
    for message in path[start:]:
        if message.role == "assistant":
            return start
        # By role, too: of a path that is not loaded yet only the role is known.
        if message.role == "tool" or message.results:
            break
    else:
        return start
    callers = (index for index in range(start - 1, -1, -1) if path[index].role == "assistant")
    return next(callers, start)


def normalize_messages_for_api(messages: Iterable[Message]) -> list[Message]:
    """Return messages as every chat API accepts them (C9); the stored ones stay as they are.

    Leaves out API errors, what a host refused, and empty messages. After each message with tool
    calls comes one tool message with one result per call, in call order; a missing result is
    filled in, a result without its call is dropped. The first message after system messages is the
    user's; two answers never follow each other and none is last.
    """
    out: list[Message] = []
    for message, calls in _with_results(without_refused(messages)):
        if message.role == "assistant" and (not out or out[-1].role in ("system", "assistant")):
            out.append(_note(message, _GO_ON if _has_dialogue(out) else _EARLIER))
        out.append(message)
        if calls is not None:
            out.append(_answers(message, calls))
    if out and out[-1].role == "assistant":
        out.append(_note(out[-1], _GO_ON))
    return out


@dataclass
class _Calls:
    """The calls of an answer, their results before the next answer, and the message with them."""

    uses: list[ToolUseBlock]
    results: list[ToolResultBlock] = field(default_factory=list[ToolResultBlock])
    carrier: Message | None = None


def _with_results(messages: Iterable[Message]) -> list[tuple[Message, _Calls | None]]:
    found: list[tuple[Message, _Calls | None]] = []
    calls: _Calls | None = None
    for message in messages:
        if message.is_api_error_message:
            continue
        kept = _fit(message)
        if message.role == "assistant":
            calls = _Calls(message.calls) if message.calls else None
            if kept is not None:
                found.append((kept, calls))
            continue
        if kept is not None:
            found.append((kept, None))
        if calls is not None:
            calls.results += message.results
            if message.role == "tool":
                calls.carrier = calls.carrier or message
    return found


def _fit(message: Message) -> Message | None:
    """Return the message with the blocks its role may hold; None if no content is left."""
    kinds = _KINDS[message.role]
    blocks: list[Block] = []
    says_something = False
    for block in message.content:
        blank = isinstance(block, TextBlock) and (not block.text or block.text.isspace())
        if isinstance(block, kinds) and not blank:
            blocks.append(block)
            says_something = says_something or not isinstance(block, ThinkingBlock)
    if not says_something:
        return None
    if len(blocks) == len(message.content):
        return message
    return msgspec.structs.replace(message, content=tuple(blocks))


def _answers(message: Message, calls: _Calls) -> Message:
    # A model may give two calls the same id; the first result is then the first call's.
    by_id: defaultdict[str, deque[ToolResultBlock]] = defaultdict(deque)
    for result in calls.results:
        by_id[result.tool_use_id].append(result)
    content = tuple(
        by_id[call.tool_use_id].popleft()
        if by_id[call.tool_use_id]
        else unanswered(call, _NO_RESULT)
        for call in calls.uses
    )
    carrier = calls.carrier or Message(id="", session_id=message.session_id, role="tool")
    return msgspec.structs.replace(carrier, content=content)


def _has_dialogue(out: Sequence[Message]) -> bool:
    return any(message.role != "system" for message in out)


def _note(message: Message, text: str) -> Message:
    content = (TextBlock(text=text),)
    return Message(id="", session_id=message.session_id, role="user", content=content)


def _without_thinking(message: Message) -> Message:
    """Drop thinking except opaque blocks, which only their own host gets, and needs back."""
    content = tuple(
        block
        for block in message.content
        if not isinstance(block, ThinkingBlock) or block.opaque is not None
    )
    if len(content) == len(message.content):
        return message
    return msgspec.structs.replace(message, content=content)


class ModelTraits(NamedTuple):
    """The properties of a model that shape its requests.

    `window` is how many tokens it reads, None if unknown; `returns_thinking`: it gets its
    reasoning back. `late_tools`: it takes tools in mid-conversation; `effort_in_prefix`: after
    another thinking effort its host reads all anew. `sees`: one of the models behind the name
    takes pictures. `caches_for_an_hour`: the user's settings ask its host to.
    """

    window: int | None
    returns_thinking: bool
    late_tools: bool = False
    effort_in_prefix: bool = True
    sees: bool = True
    caches_for_an_hour: bool = False


Traits = Callable[[str], ModelTraits]
"""Returns the traits of the model that a name stands for now."""


@dataclass(frozen=True)
class PromptContext:
    """The part of requests that stays the same in a turn: system prompt and model settings.

    `asker` is the session itself or one of its scouts. `stream` asks for streamed answers.
    `returns_thinking`: the model gets its reasoning back; else requests contain none.
    """

    session_id: str
    model: str
    system: str
    sampling: Sampling = field(default_factory=Sampling)
    max_tokens: int | None = None
    effort: Effort | None = None
    returns_thinking: bool = True
    asker: str = ""
    stream: bool = True

    def request(
        self, messages: Iterable[Message], tools: Sequence[ToolSpec], tool_choice: ToolChoice
    ) -> ModelRequest:
        """Return the request for stored messages, of any size (`fitting` limits it)."""
        whole = normalize_messages_for_api(messages)
        return ModelRequest(
            model=self.model,
            system=self.system,
            messages=whole if self.returns_thinking else [*map(_without_thinking, whole)],
            tools=tools,
            tool_choice=tool_choice,
            sampling=self.sampling,
            max_tokens=self.max_tokens,
            effort=self.effort,
            cache_key=self.session_id,
            asker=self.asker or f"main {self.session_id}",
            stream=self.stream,
        )
