"""Adapts a request to its model, in all dialects: refused options, and tool ids. Sans-IO.

A model's own ids go back unchanged: some models read their numbering. Ids of another host may
contain letters that this one refuses, and ids may repeat from answer to answer.
"""

import json
import re
from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any, NamedTuple

import msgspec

from kode_sidecar.core.domain.event_parts import EFFORTS, Effort
from kode_sidecar.core.domain.message import Block, Message, ToolResultBlock, ToolUseBlock
from kode_sidecar.core.domain.model_event import ModelNotice
from kode_sidecar.core.kernel.contracts import ModelRequest, ToolChoice
from kode_sidecar.infrastructure.providers.profiles import ModelProfile

CALL_A_TOOL = "Answer with a call of one of your tools, not with text."
"""The instruction for a model that cannot be forced to call a tool."""
# Prompt and budget must fit into the window, or the host refuses the request. The tokens of an
# uncounted prompt are guessed from its bytes; a wrong guess must still leave room for an answer.
_BYTES_PER_TOKEN = 4
_GUESS_MARGIN = 1.15
_SMALLEST_BUDGET = 4_096
# An image as the dialects write it. Quotes inside a text are escaped, so no text looks like one.
_PICTURE = re.compile(rb'"(?:(?:image_)?url":"data:[^";]*;base64,|data":")[A-Za-z0-9+/=]{1024,}"')
Notices = tuple[ModelNotice, ...]
Keeps = Callable[[Message, str, Set[str]], bool]
"""`(message, id, used)`: whether an id stays; `used` are the ids in use before it."""
_REFUSED = re.compile(r"[^A-Za-z0-9_-]")
# The shortest limit among the hosts that have one.
_LONGEST = 40
_WITH_ID = (ToolUseBlock, ToolResultBlock)


class SentToolChoice(NamedTuple):
    """The tool choice to send. `asked`: the request must ask for a call in words."""

    sent: ToolChoice
    asked: bool
    notices: Notices


def tool_choice(request: ModelRequest, profile: ModelProfile) -> SentToolChoice:
    """Return the tool choice to send.

    Most models cannot be forced, at least while thinking: they are asked in words instead.
    """
    if not request.tools or request.tool_choice != "required" or profile.forced_tools:
        return SentToolChoice(request.tool_choice, asked=False, notices=())
    text = f"{profile.id} cannot be forced to call a tool, so it is asked to instead."
    return SentToolChoice("auto", asked=True, notices=(ModelNotice("ToolChoiceDropped", text),))


def sampling(
    request: ModelRequest, profile: ModelProfile, highest: float
) -> tuple[dict[str, float], Notices]:
    """Return temperature and top_p to send; above `highest` the host refuses them.

    There is no notice for dropped defaults, only for values that somebody chose.
    """
    asked = {"temperature": request.sampling.temperature, "top_p": request.sampling.top_p}
    given = {name: value for name, value in asked.items() if value is not None}
    sent = {name: value for name, value in given.items() if profile.sampling and value <= highest}
    dropped = [f"{name} {value:g}" for name, value in given.items() if name not in sent]
    if not dropped or not request.sampling.chosen:
        return sent, ()
    if profile.sampling:
        why = f"is not asked for more than {highest:g}, which its host refuses"
    elif profile.thinking != "never":  # models that think have these fixed
        why = "chooses this itself"
    else:
        why = "is not known to take this"
    text = f"{profile.id} {why}, so it was not sent: {', '.join(dropped)}."
    return sent, (ModelNotice("SamplingDropped", text),)


def thinking(request: ModelRequest, profile: ModelProfile) -> tuple[Mapping[str, Any], Notices]:
    """Return the request fields for the wanted thinking effort, or the nearest one it takes."""
    wanted = request.effort or profile.effort
    if wanted is None:
        return {}, ()
    if not profile.efforts:
        reported = () if request.effort is None else (_no_effort(profile, wanted),)
        return {}, reported
    at = EFFORTS.index(wanted)
    taken = sorted(profile.efforts, key=EFFORTS.index, reverse=True)
    nearest = min(taken, key=lambda one: abs(EFFORTS.index(one) - at))
    if nearest == wanted:
        return profile.efforts[nearest], ()
    text = f"{profile.id} takes no effort {wanted!r}; it was asked for {nearest!r}."
    return profile.efforts[nearest], (ModelNotice("EffortChanged", text),)


def _no_effort(profile: ModelProfile, wanted: Effort) -> ModelNotice:
    text = f"{profile.id} chooses itself how hard it thinks, so {wanted!r} was not sent."
    return ModelNotice("EffortChanged", text)


def budget(wanted: int, request: ModelRequest, profile: ModelProfile, body: dict[str, Any]) -> int:
    """Return the tokens of the answer, including reasoning, that the window has room for."""
    if profile.max_output is not None:
        wanted = min(wanted, profile.max_output)
    if profile.context_window is None:
        return wanted
    prompt = request.prompt_tokens
    if prompt is None:
        prompt = int(guessed_tokens(json_bytes(body)) * _GUESS_MARGIN)
    return min(wanted, max(profile.context_window - prompt, _SMALLEST_BUDGET))


def encoded(body: dict[str, Any], profile: ModelProfile) -> bytes:
    """Encode the body of a request without the members that its host refuses."""
    return json_bytes({name: one for name, one in body.items() if name not in profile.without})


def guessed_tokens(body: bytes) -> int:
    """Estimate the tokens of a request by its bytes, without images: their bytes say nothing."""
    return len(_PICTURE.sub(b"", body)) // _BYTES_PER_TOKEN


def json_bytes(body: dict[str, Any]) -> bytes:
    """Encode the body of a request: equal values give equal bytes."""
    try:
        return msgspec.json.encode(body)
    except UnicodeEncodeError:
        # Half a character, from a file or a cut answer, becomes a question mark.
        text = json.dumps(body, ensure_ascii=False, default=msgspec.json.decode)
        return text.encode("utf-8", "replace")


def with_safe_ids(messages: Sequence[Message], keeps: Keeps) -> list[Message]:
    """Replace ids, in call and result, that `keeps` refuses, that are empty, or that repeat in
    their own message.

    A message's ids depend only on earlier messages, so the start of a growing history is stable.
    """
    used: set[str] = set()
    new_ids: defaultdict[str, deque[str]] = defaultdict(deque)

    def renamed(message: Message, block: Block) -> Block:
        if isinstance(block, ToolUseBlock):
            new_id = old_id = block.tool_use_id
            # A repeated id would name two calls, and an empty one none.
            if not old_id or new_ids[old_id] or not keeps(message, old_id, used):
                new_id = _safe(old_id, used)
            used.add(new_id)
            new_ids[old_id].append(new_id)
        elif isinstance(block, ToolResultBlock) and new_ids[block.tool_use_id]:
            new_id, old_id = new_ids[block.tool_use_id].popleft(), block.tool_use_id
        else:
            return block
        return block if new_id == old_id else msgspec.structs.replace(block, tool_use_id=new_id)

    out: list[Message] = []
    for message in messages:
        if message.role == "assistant":
            # An id that repeats names the newest call.
            new_ids.clear()
        for block in message.content:
            if isinstance(block, _WITH_ID):
                blocks = tuple([renamed(message, one) for one in message.content])
                if blocks != message.content:
                    message = msgspec.structs.replace(message, content=blocks)
                break
        out.append(message)
    return out


def is_foreign(message: Message, provider: str) -> bool:
    """Return whether another provider than this one gave the answer, as far as both are known."""
    return bool(provider and message.provider) and message.provider != provider


def _safe(tool_use_id: str, used: Set[str]) -> str:
    safe = base = _REFUSED.sub("_", tool_use_id)[:_LONGEST] or "call"
    number = 1
    while safe in used:
        number += 1
        safe = f"{base[: _LONGEST - 1 - len(str(number))]}_{number}"
    return safe
