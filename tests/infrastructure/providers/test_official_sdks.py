"""Our decoders beside the official SDKs: equal on every stream, or different for a stated reason.

The SDKs are fed the same bytes as the body of one response. They take seconds to import, so no
other module imports them.
"""

import json
from dataclasses import dataclass, replace
from typing import Any

import anthropic as anthropic_sdk
import httpx2
import openai as openai_sdk
import pytest

from tests.infrastructure.providers.streams import anthropic, chat, framing, responses
from tests.infrastructure.providers.streams.answer import Answer, Call
from tests.infrastructure.providers.streams.differences import ANTHROPIC, OPENAI, RESPONSES

# Their models complain of the forms that we feed them on purpose.
pytestmark = pytest.mark.filterwarnings("ignore:Pydantic serializer:UserWarning")

# What OpenAI itself sends: the SDK knows one end and one way to number, and fails on all others.
OF_OPENAI = {
    name: found
    for name, found in responses.STREAMS.items()
    if name.startswith(("items: ", "calls: ", "error: "))
}
CHAT = {f"framing: {name}": found for name, found in framing.STREAMS.items()} | chat.STREAMS


@dataclass(frozen=True)
class Common:
    """What both sides can tell: a failure, or text, calls, usage and the host's finish reason.

    The arguments of calls are compared as values, "" counting as none.
    """

    failed: bool = False
    text: str = ""
    calls: tuple[tuple[str, str, str], ...] = ()
    usage: tuple[int, int, int] | None = None
    raw_end: str | None = None


FAILED = Common(failed=True)


def ours(answer: Answer) -> Common:
    """An answer that ended without a word is no failure to the SDKs."""
    if answer.end == "EmptyAnswer":
        return Common(text=answer.text, usage=answer.usage, raw_end="?")
    if answer.raw_end is None and answer.end not in ("incomplete", "other", "tool_calls"):
        return FAILED
    calls = tuple(map(comparable, answer.calls))
    return Common(False, answer.text, calls, answer.usage, answer.raw_end)


def comparable(call: Call) -> tuple[str, str, str]:
    try:
        return call.id, call.name, json.dumps(json.loads(call.arguments or "{}", strict=False))
    except ValueError:
        return call.id, call.name, call.arguments


def same(left: Common, right: Common) -> bool:
    if "?" in (left.raw_end, right.raw_end):
        left, right = replace(left, raw_end=None), replace(right, raw_end=None)
    return left == right


def responding(body: bytes) -> httpx2.Client:
    """An HTTP client whose every response is this stream."""
    head = {"content-type": "text/event-stream"}
    return httpx2.Client(
        transport=httpx2.MockTransport(lambda _: httpx2.Response(200, headers=head, content=body))
    )


def by_openai(body: bytes) -> Common:
    """What the SDK's own accumulation makes of a stream; whatever it raises is a failure."""
    client = openai_sdk.OpenAI(
        api_key="k", base_url="http://host/v1", http_client=responding(body), max_retries=0
    )
    try:
        with client.chat.completions.stream(model="m", messages=[]) as stream:
            found: Any = finished(stream)
        choice: Any = found.choices[0] if found.choices else None
        calls = (choice.message.tool_calls or ()) if choice else ()
        return Common(
            text=(choice.message.content or "") if choice else "",
            calls=tuple(
                comparable(Call(call.id, call.function.name, call.function.arguments or ""))
                for call in calls
            ),
            usage=openai_usage(found.usage),
            raw_end=choice.finish_reason if choice else None,
        )
    except Exception:
        return FAILED


def finished(stream: Any) -> Any:
    """The completion, also where it ended too early for the parsing that nobody asked for."""
    try:
        return stream.get_final_completion()
    except (openai_sdk.LengthFinishReasonError, openai_sdk.ContentFilterFinishReasonError) as error:
        return error.completion


def openai_usage(usage: Any) -> tuple[int, int, int] | None:
    if usage is None:
        return None
    details = usage.prompt_tokens_details
    cached = (details.cached_tokens or 0) if details else 0
    return usage.prompt_tokens, usage.completion_tokens, cached


def by_openai_responses(body: bytes) -> Common:
    """As `by_openai`: what the SDK has collected when the last event comes."""
    client = openai_sdk.OpenAI(
        api_key="k", base_url="http://host/v1", http_client=responding(body), max_retries=0
    )
    try:
        with client.responses.stream(model="m", input=[]) as stream:
            found: Any = stream.get_final_response()
        usage = found.usage
        details = found.incomplete_details
        return Common(
            failed=found.status == "failed",
            text=found.output_text,
            calls=tuple(
                comparable(Call(item.call_id, item.name, item.arguments))
                for item in found.output
                if item.type == "function_call"
            ),
            usage=usage
            and (
                usage.input_tokens,
                usage.output_tokens,
                usage.input_tokens_details.cached_tokens,
            ),
            raw_end=(details.reason if details else None) or found.status,
        )
    except Exception:
        return FAILED


def by_anthropic(body: bytes) -> Common:
    """As `by_openai`."""
    client = anthropic_sdk.Anthropic(
        api_key="k", base_url="http://host", http_client=responding(body), max_retries=0
    )
    try:
        with client.messages.stream(model="m", messages=[], max_tokens=5) as stream:
            found = stream.get_final_message()
        blocks: list[Any] = list(found.content)
        usage = found.usage
        read = usage.cache_read_input_tokens or 0
        prompt = usage.input_tokens + read + (usage.cache_creation_input_tokens or 0)
        return Common(
            text="".join(block.text for block in blocks if block.type == "text"),
            calls=tuple(
                comparable(Call(block.id, block.name, json.dumps(block.input)))
                for block in blocks
                if block.type == "tool_use"
            ),
            usage=(prompt, usage.output_tokens, read),
            raw_end=found.stop_reason,
        )
    except Exception:
        return FAILED


def check(name: str, answer: Answer, theirs: Common, differences: dict[str, str]) -> None:
    """Equal, unless a difference is listed; a listed one must be there."""
    if name in differences:
        assert not same(ours(answer), theirs), "no longer different: take it off the list"
    else:
        assert same(ours(answer), theirs), f"{ours(answer)}\n{theirs}"


@pytest.mark.parametrize("name", CHAT)
def test_openai(name: str) -> None:  # C3 C5
    check(name, CHAT[name].says, by_openai(CHAT[name].body), OPENAI)


@pytest.mark.parametrize("name", anthropic.STREAMS)
def test_anthropic(name: str) -> None:  # C3 C5
    found = anthropic.STREAMS[name]
    check(name, found.says, by_anthropic(found.body), ANTHROPIC)


@pytest.mark.parametrize("name", OF_OPENAI)
def test_openai_responses(name: str) -> None:
    found = OF_OPENAI[name]
    check(name, found.says, by_openai_responses(found.body), RESPONSES)


@pytest.mark.parametrize(
    "known",
    [(OPENAI, CHAT), (ANTHROPIC, anthropic.STREAMS), (RESPONSES, OF_OPENAI)],
)
def test_listed_differences_are_of_streams_there_are(known: tuple[Any, Any]) -> None:
    differences, streams = known
    assert differences.keys() <= streams.keys()
    assert all(differences.values())
