"""The wishes of a request, as far as a model accepts them; the rest is told once. Sans-IO."""

import json
import re
from typing import Any, NamedTuple

import msgspec

from kode_sidecar.domain.model_event import ModelNotice
from kode_sidecar.kernel.contracts import ModelRequest, ToolChoice
from kode_sidecar.providers.profiles import ModelProfile

CALL_A_TOOL = "Answer with a call of one of your tools, not with text."
"""What a model is told that refuses to be forced."""

# The budget must fit into the window beside the prompt, or the request is refused. Where nobody
# counted the prompt its bytes tell; a wrong guess must still leave room for an answer.
_BYTES_PER_TOKEN = 4
_GUESS_MARGIN = 1.15
_SMALLEST_BUDGET = 4_096
# A picture as the dialects write it. Quotes inside a text are escaped, so no text looks like one.
_PICTURE = re.compile(rb'"(?:url":"data:[^";]*;base64,|data":")[A-Za-z0-9+/=]{1024,}"')

Notices = tuple[ModelNotice, ...]


class Choice(NamedTuple):
    """The tool choice to send. `asked`: the model is to be asked for a call in words."""

    sent: ToolChoice
    asked: bool
    notices: Notices


def tool_choice(request: ModelRequest, profile: ModelProfile) -> Choice:
    """Most models refuse to be forced, at least while thinking: they are asked instead."""
    if not request.tools or request.tool_choice != "required" or profile.forced_tools:
        return Choice(request.tool_choice, asked=False, notices=())
    text = f"{profile.id} cannot be forced to call a tool, so it is asked to instead."
    return Choice("auto", asked=True, notices=(ModelNotice("tool_choice_dropped", text),))


def sampling(
    request: ModelRequest, profile: ModelProfile, highest: float
) -> tuple[dict[str, float], Notices]:
    """Temperature and top_p to send; above `highest` the host refuses them."""
    wishes = {"temperature": request.temperature, "top_p": request.top_p}
    given = {name: wish for name, wish in wishes.items() if wish is not None}
    sent = {name: wish for name, wish in given.items() if profile.sampling and wish <= highest}
    dropped = [f"{name} {wish:g}" for name, wish in given.items() if name not in sent]
    if not dropped:
        return sent, ()
    text = f"{profile.id} chooses this itself, so it was not sent: {', '.join(dropped)}."
    return sent, (ModelNotice("sampling_dropped", text),)


def budget(wish: int, request: ModelRequest, profile: ModelProfile, body: dict[str, Any]) -> int:
    """Tokens of the answer, reasoning included, that `body` leaves room for in the window."""
    if profile.max_output is not None:
        wish = min(wish, profile.max_output)
    if profile.context_window is None:
        return wish
    prompt = request.prompt_tokens
    if prompt is None:
        prompt = _guessed(body)
    return min(wish, max(profile.context_window - prompt, _SMALLEST_BUDGET))


def _guessed(body: dict[str, Any]) -> int:
    """Tokens of the prompt by its bytes; those of a picture say nothing of its tokens."""
    size = len(_PICTURE.sub(b"", json_bytes(body)))
    return int(size / _BYTES_PER_TOKEN * _GUESS_MARGIN)


def json_bytes(body: dict[str, Any]) -> bytes:
    """The body of a request: equal values give equal bytes."""
    try:
        return msgspec.json.encode(body)
    except UnicodeEncodeError:
        # Half a character, from a file or a cut answer: a question mark takes its place.
        return json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
