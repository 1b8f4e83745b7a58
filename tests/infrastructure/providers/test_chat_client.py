"""The chat client against a real server on loopback."""

import asyncio
import socket
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing
from typing import Any

import pytest
from msgspec.structs import replace

from kode_sidecar.core.domain.error_info import ErrorInfo
from kode_sidecar.core.domain.message import Message, TextBlock
from kode_sidecar.core.domain.model_event import (
    AttemptDropped,
    AttemptLost,
    ModelEvent,
    ModelNotice,
    RequestHeld,
    RequestSent,
    ResponseFailed,
    ResponseFinished,
    ResponseStarted,
    RetryPlanned,
    TextDelta,
    ToolUseDelta,
    ToolUseStarted,
    UsageReported,
)
from kode_sidecar.core.kernel.contracts import ModelClient, ModelRequest, Sampling, ToolSpec
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.http.client import HttpClient
from kode_sidecar.infrastructure.http.request import HttpTimeouts, TimeLimits
from kode_sidecar.infrastructure.providers.chat_client import ChatClient
from kode_sidecar.infrastructure.providers.known_providers import KIMI
from kode_sidecar.infrastructure.providers.profiles import ModelProfile
from kode_sidecar.infrastructure.providers.provider_config import ProviderConfig
from kode_sidecar.infrastructure.providers.rate_limiter import RetryPolicy
from kode_sidecar.infrastructure.providers.registry import (
    Registry,
    SessionHosts,
    SessionRetiredModels,
)
from tests.support.raw_http import (
    END,
    HANG_CEILING,
    HEAD,
    LAST_CHUNK,
    Answer,
    RawHttpServer,
    Repeat,
    Wait,
    chunk,
    delta,
    event,
    refusal,
    response,
    says,
    sse_answer,
)
from tests.support.scripted_model import ScriptedModel

KEY = "live-key-3141592653"
GONE = refusal(404, "resource_not_found_error", "Not found the model x or Permission denied")
MODELS = response(200, {"object": "list", "data": [{"id": "kimi-k2.6"}, {"id": "kimi-k3"}]})
OVERLOADED = refusal(429, "engine_overloaded_error", "The engine is overloaded")


class Client:
    """A client of a server, with retries that do not wait but remember how long they would."""

    def __init__(self, server: RawHttpServer, **config: Any) -> None:
        self.waited: list[float] = []
        self.time = 0.0
        self.retired = SessionRetiredModels()
        self.host = f"127.0.0.1:{server.port}"
        self.config = ProviderConfig(server.url, KEY, **config)
        self.chat = ChatClient(
            Registry([self.config]),
            HttpClient,
            retired=self.retired,
            retry=RetryPolicy(random=lambda: 1.0),
            sleep=self.sleep,
            now=lambda: self.time,
        )

    async def sleep(self, seconds: float) -> None:
        self.waited.append(seconds)
        self.time += seconds

    async def ask(self, model: str = "kimi-k2.6", **fields: Any) -> list[ModelEvent]:
        async with asyncio.timeout(HANG_CEILING):
            return [
                event
                async for batch in self.chat.stream(request(model, **fields))
                for event in batch
            ]


NewClient = Callable[..., Client]


@pytest.fixture
async def new_client() -> AsyncIterator[NewClient]:
    """Builds clients; closes them in the end."""
    built: list[Client] = []

    def build(server: RawHttpServer, **config: Any) -> Client:
        built.append(Client(server, **config))
        return built[-1]

    yield build
    for client in built:
        await client.chat.aclose()


def request(model: str = "kimi-k2.6", **fields: Any) -> ModelRequest:
    hello = Message(id="m", session_id="s", role="user", content=(TextBlock(text="Hi"),))
    return ModelRequest(model, "Be brief.", [hello], sampling=Sampling(None, None), **fields)


def text(events: Sequence[ModelEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


def failed(events: Sequence[ModelEvent]) -> ErrorInfo:
    assert isinstance(events[-1], ResponseFailed)
    assert sum(isinstance(event, ResponseFailed | ResponseFinished) for event in events) == 1
    return events[-1].error


def dropped(events: Sequence[ModelEvent]) -> int:
    return sum(isinstance(event, AttemptDropped) for event in events)


async def test_an_answer(new_client: NewClient) -> None:  # C3, C4
    async with RawHttpServer(says("Hello ", "world")) as server:
        client = new_client(server)
        events = await client.ask(cache_key="s1")
        assert events[0] == ResponseStarted("chatcmpl-1", "m", "kimi")
        assert text(events) == "Hello world"
        assert isinstance(events[-2], UsageReported)
        assert events[-2].usage.cached_tokens == 40
        assert events[-2].cost_usd is not None
        assert events[-1] == ResponseFinished("stop", "stop")
        (sent,) = server.requests
        assert (sent.method, sent.target) == ("POST", "/v1/chat/completions")
        assert sent.headers["authorization"] == f"Bearer {KEY}"
        assert sent.headers["accept-encoding"] == "identity"
        assert sent.json["prompt_cache_key"] == "s1"


async def test_tool_calls(new_client: NewClient) -> None:
    fragments = [
        {"index": 0, "id": "read_file:0", "function": {"name": "read_file", "arguments": ""}},
        {"index": 0, "function": {"arguments": '{"path"'}},
        {"index": 0, "function": {"arguments": ': "a"}'}},
    ]
    events = [delta(tool_calls=[fragment]) for fragment in fragments]
    async with RawHttpServer(sse_answer(*events, delta("tool_calls"), END)) as server:
        found = await new_client(server).ask(tools=[ToolSpec("read_file", "", {})])
    assert ToolUseStarted(0, "read_file:0", "read_file") in found
    assert "".join(e.json for e in found if isinstance(e, ToolUseDelta)) == '{"path": "a"}'
    assert found[-1] == ResponseFinished("tool_calls", "tool_calls")


async def test_the_connection_is_used_again(new_client: NewClient) -> None:
    async with RawHttpServer(says("Hi")) as server:
        client = new_client(server)
        for _ in range(3):
            await client.ask()
        assert {sent.connection for sent in server.requests} == {1}


async def test_a_whole_completion_yields_the_same(new_client: NewClient) -> None:  # A13, D7
    message = {"role": "assistant", "content": "Hello world"}
    whole = {
        "id": "chatcmpl-1",
        "model": "m",
        "choices": [{"message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 10, "cached_tokens": 40},
    }
    async with RawHttpServer(says("Hello world"), response(200, whole)) as server:
        client = new_client(server)
        assert await client.ask() == await client.ask()


async def test_the_hosts_list_is_asked_for_once_behind_an_answer(new_client: NewClient) -> None:
    hosts = SessionHosts(asks=True)
    async with RawHttpServer(says("Hi"), MODELS, says("Hi")) as server:
        client = new_client(server)
        client.chat = ChatClient(
            Registry([client.config], {"ide-chat": ("kimi-k9", "kimi-k2.6", "kimi-k3")}),
            HttpClient,
            retired=client.retired,
            hosts=hosts,
        )
        assert client.chat.models("ide-chat")[0].id == "kimi-k9"
        await client.ask("kimi-k2.6")
        async with asyncio.timeout(HANG_CEILING):
            await client.chat.listed()
        assert [one.target for one in server.requests] == ["/v1/chat/completions", "/v1/models"]
        # The host's word beats the order.
        assert [one.id for one in client.chat.models("ide-chat")] == ["kimi-k2.6", "kimi-k3"]
        await client.ask("ide-chat")
        await client.chat.listed()
        assert [one.json["model"] for one in server.requests[::2]] == ["kimi-k2.6"] * 2
        assert len(server.requests) == 3


async def test_a_list_that_does_not_come_is_not_asked_for_again(new_client: NewClient) -> None:
    hosts = SessionHosts(asks=True)
    async with RawHttpServer(says("Hi"), OVERLOADED, says("Hi")) as server:
        client = new_client(server)
        client.chat = ChatClient(Registry([client.config]), HttpClient, hosts=hosts)
        for _ in range(2):
            await client.ask()
            await client.chat.listed()
        assert len(server.requests) == 3
        assert hosts.facts(client.host).models == ()


async def test_retired_models_are_passed_over(new_client: NewClient) -> None:  # A2
    async with RawHttpServer(GONE, MODELS, GONE, MODELS, says("Hi")) as server:
        client = new_client(server)
        events = await client.ask("ide-chat")
        asked = [sent.json["model"] for sent in server.requests if sent.method == "POST"]
        # The second one is not even asked: the host's own list lacks it.
        assert asked == ["kimi-k3.1-pro", "kimi-k3", "kimi-k2.6"]
        assert text(events) == "Hi"
        assert isinstance(events[0], ResponseStarted)
        (notice,) = [event for event in events if isinstance(event, ModelNotice)]
        assert notice.code == "ModelRetired"
        for part in (client.host, *asked, "kimi-k3"):
            assert part in notice.message
        assert client.retired.ids(client.host) == {
            "kimi-k2.7-code",
            "kimi-k3.1-pro",
            "kimi-k3",
            "kimi-k2-turbo-preview",
        }
        assert client.waited == []

        # Told once, and remembered.
        events = await client.ask("ide-chat")
        assert [sent.json["model"] for sent in server.requests[5:]] == ["kimi-k2.6"]
        assert not [event for event in events if isinstance(event, ModelNotice)]


async def test_a_host_that_serves_none_of_them(new_client: NewClient) -> None:  # A2
    none = [GONE, MODELS] * 4
    async with RawHttpServer(*none) as server:
        client = new_client(server)
        error = failed(await client.ask("ide-chat"))
        assert (error.code, error.http_status) == ("ModelNotFound", 404)
        for part in ("ide-chat", "kimi-k2.7-code", "kimi-k3", "setting `model`"):
            assert part in error.message
        # Nothing is left, so the next question tries again from the start.
        server.answers[:] = [says("Hi")]
        assert text(await client.ask("ide-chat")) == "Hi"
        assert server.requests[-1].json["model"] == "kimi-k3.1-pro"


async def test_a_model_the_user_chose_has_no_stand_in(new_client: NewClient) -> None:  # A2
    async with RawHttpServer(GONE, MODELS) as server:
        client = new_client(server)
        error = failed(await client.ask("my-model"))
        assert error.code == "ModelNotFound"
        assert "my-model" in error.message
        assert "kimi-k2.6" in error.message
        assert client.retired.ids(client.host) == set()


async def test_the_model_list_may_fail(new_client: NewClient) -> None:
    async with RawHttpServer(GONE, refusal(500, "x", "boom"), says("Hi")) as server:
        assert text(await new_client(server).ask("ide-chat")) == "Hi"


async def test_list_models(new_client: NewClient) -> None:
    async with RawHttpServer(
        MODELS, refusal(401, "x", "bad key"), response(200, b"<html>")
    ) as server:
        client = new_client(server)
        endpoint = client.chat.endpoint(client.config)
        assert [model.id for model in await endpoint.list_models()] == ["kimi-k2.6", "kimi-k3"]
        with pytest.raises(KodeError, match="KIMI_API_KEY"):
            await endpoint.list_models()
        with pytest.raises(KodeError, match="KIMI_BASE_URL"):
            await endpoint.list_models()


async def test_a_dropped_wish_is_told_once(new_client: NewClient) -> None:  # A13
    async with RawHttpServer(says("Hi")) as server:
        chat = new_client(server).chat
        reported: list[ModelEvent] = []
        for _ in range(2):
            wish = ModelRequest("kimi-k2.6", "", request().messages, sampling=Sampling(0.3))
            async with aclosing(chat.stream(wish)) as batches:
                reported += [e async for b in batches for e in b if isinstance(e, ModelNotice)]
        assert len(reported) == 1


FINAL: list[tuple[Answer, str]] = [
    (refusal(400, "invalid_request_error", "boom"), "Provider"),
    (refusal(401, "invalid_authentication_error", f"bad key {KEY}"), "AuthRequired"),
    (refusal(403, "permission_denied_error", "boom"), "Provider"),
    (refusal(413, "invalid_request_error", "boom"), "TooLarge"),
    (refusal(422, "invalid_request_error", "boom"), "Provider"),
    (refusal(429, "exceeded_current_quota_error", "boom"), "QuotaExceeded"),
    (refusal(400, "content_filter", "boom"), "ContentFiltered"),
    (refusal(429, "rate_limit_reached_error", "boom", "retry-after: 300"), "RateLimited"),
    (response(302, b"", "location: http://127.0.0.1/elsewhere"), "ConfigInvalid"),
]


@pytest.mark.parametrize(("answer", "code"), FINAL)
async def test_what_is_never_retried(
    new_client: NewClient, answer: Answer, code: str
) -> None:  # W9
    async with RawHttpServer(answer) as server:
        client = new_client(server)
        events = await client.ask()
        assert failed(events).code == code
        assert len(server.requests) == 1
        assert KEY not in repr(events)  # W14


async def test_retries_before_anything_was_shown(new_client: NewClient) -> None:  # W9
    async with RawHttpServer(
        refusal(500, "server_error", "boom"),
        refusal(429, "rate_limit_reached_error", "slow down", "retry-after: 7"),
        OVERLOADED,
        says("Hi"),
    ) as server:
        client = new_client(server)
        events = await client.ask()
        assert text(events) == "Hi"
        assert dropped(events) == 0
        assert client.waited == [0.5, 7.0, 16.0]


async def test_no_more_than_three_retries(new_client: NewClient) -> None:  # W9
    async with RawHttpServer(refusal(500, "server_error", f"boom {KEY}")) as server:
        client = new_client(server)
        events = await client.ask()
        assert failed(events).code == "Provider"
        assert len(server.requests) == 4
        assert KEY not in repr(events)  # W14


CUT: Answer = [HEAD, chunk(delta(content="Hel")), chunk(delta(content="lo"))]


async def test_a_cut_answer_is_dropped_and_asked_for_again(new_client: NewClient) -> None:  # W9
    async with RawHttpServer(CUT, says("Hello world")) as server:
        events = await new_client(server).ask()
        kinds = [type(event) for event in events if not isinstance(event, TextDelta)]
        assert kinds == [
            ResponseStarted,
            AttemptDropped,
            AttemptLost,
            RetryPlanned,
            ResponseStarted,
            UsageReported,
            ResponseFinished,
        ]
        (lost,) = [event.lost for event in events if isinstance(event, AttemptLost)]
        assert lost.estimated
        assert lost.usage.input_tokens > 10
        assert lost.usage.output_tokens == 2
        assert lost.cost_usd is not None
        at = next(i for i, event in enumerate(events) if isinstance(event, AttemptDropped))
        assert text(events[:at]) == "Hello"
        assert text(events[at:]) == "Hello world"


async def test_only_one_answer_is_dropped(new_client: NewClient) -> None:  # W9
    async with RawHttpServer(CUT, CUT, says("never")) as server:
        events = await new_client(server).ask()
        assert failed(events).code == "Network"
        assert dropped(events) == 1
        assert len(server.requests) == 2


ENDS_EARLY: Answer = [*CUT, LAST_CHUNK]


async def test_an_answer_without_its_end_is_cut(new_client: NewClient) -> None:  # W9, W10
    async with RawHttpServer(ENDS_EARLY) as server:
        error = failed(await new_client(server).ask())
        assert (error.code, error.retryable) == ("IncompleteAnswer", True)


@pytest.mark.parametrize("sent", [CUT, ENDS_EARLY, [HEAD, chunk(event({"error": "busy"}))]])
async def test_a_broken_answer_keeps_its_trace_id(new_client: NewClient, sent: Answer) -> None:
    head, *rest = sent
    assert isinstance(head, bytes)
    traced: Answer = [head.replace(b"\r\n", b"\r\nx-trace-id: t-1\r\n", 1), *rest]
    async with RawHttpServer(traced) as server:
        error = failed(await new_client(server).ask())
        assert (error.details or {}).get("traceId") == "t-1", error


async def test_a_connection_that_breaks_after_the_end_is_no_failure(new_client: NewClient) -> None:
    async with RawHttpServer([*CUT, chunk(delta("stop")), chunk(END)]) as server:
        events = await new_client(server).ask()
        assert text(events) == "Hello"
        assert events[-1] == ResponseFinished("stop", "stop")


async def test_kimi_is_done_only_with_its_end_mark(new_client: NewClient) -> None:
    async with RawHttpServer([*CUT, chunk(delta("stop"))], says("Hi")) as server:
        events = await new_client(server).ask()
        assert dropped(events) == 1
        assert text(events) == "HelloHi"
        assert events[-1] == ResponseFinished("stop", "stop")


async def test_an_empty_answer_is_asked_for_once_more(new_client: NewClient) -> None:
    empty = sse_answer(delta(reasoning_content="Hm"), delta("stop"), END)
    async with RawHttpServer(empty, says("Hi")) as server:
        events = await new_client(server).ask()
        assert text(events) == "Hi"
        assert dropped(events) == 1
        assert sum(isinstance(event, UsageReported) for event in events) == 1
    async with RawHttpServer(empty) as server:
        events = await new_client(server).ask()
        assert failed(events).code == "EmptyAnswer"
        assert isinstance(events[-2], UsageReported)
        assert len(server.requests) == 2


async def test_an_error_in_the_stream(new_client: NewClient) -> None:
    broken = sse_answer(delta(content="Hel"), b'data: {"error": {"message": "boom"}}\n\n')
    async with RawHttpServer(broken, says("Hello")) as server:
        events = await new_client(server).ask()
        assert dropped(events) == 1
        assert text(events[-4:]) == "Hello"


@pytest.mark.parametrize("way", ["cancel", "close"])
async def test_leaving_closes_the_socket_at_once(new_client: NewClient, way: str) -> None:  # W9
    never = Wait(asyncio.Event())
    async with RawHttpServer([*CUT, never]) as server, asyncio.timeout(HANG_CEILING):
        client, seen = new_client(server), asyncio.Event()

        async def watch() -> None:
            async with aclosing(client.chat.stream(request())) as batches:
                async for batch in batches:
                    if text(batch):
                        seen.set()
                        if way == "close":
                            return

        watching = asyncio.create_task(watch())
        await seen.wait()
        if way == "cancel":
            watching.cancel()
        await server.hung_up.wait()
        await asyncio.wait([watching])
        assert watching.cancelled() is (way == "cancel")


async def test_cancelled_before_the_first_byte(new_client: NewClient) -> None:
    async with RawHttpServer([Wait(asyncio.Event())]) as server, asyncio.timeout(HANG_CEILING):
        asking = asyncio.create_task(new_client(server).ask())
        await server.asked.wait()
        asking.cancel()
        await server.hung_up.wait()


async def test_no_first_byte(new_client: NewClient) -> None:  # W9
    async with RawHttpServer([Wait(asyncio.Event())]) as server:
        events = await new_client(server, timeouts=HttpTimeouts(first_byte=0.05)).ask()
        error = failed(events)
        assert (error.code, len(server.requests)) == ("Network", 4)
        assert "0.05 seconds" in error.message


async def test_keep_alives_are_no_content(new_client: NewClient) -> None:  # W9
    pings = Repeat(chunk(b": ping\n\n") + chunk(delta(content="")))
    async with RawHttpServer([*CUT, pings], says("Hello world")) as server:
        events = await new_client(server, timeouts=HttpTimeouts(pinged=0.2)).ask()
        assert dropped(events) == 1
        assert events[-1] == ResponseFinished("stop", "stop")


async def test_keep_alives_are_signs_of_life_for_a_while(new_client: NewClient) -> None:
    """A host that lets the model think longer than silence may last says so, and is believed."""
    waits = [Wait(asyncio.Event()) for _ in range(6)]
    pings = [step for wait in waits for step in (chunk(b": PROCESSING\n\n"), wait)]
    answer = [
        HEAD,
        *pings,
        chunk(delta(content="Hi")),
        chunk(delta("stop")),
        chunk(END),
        LAST_CHUNK,
    ]

    async def tick() -> None:
        for wait in waits:
            await asyncio.sleep(0.1)
            wait.event.set()

    async with RawHttpServer(answer) as server:
        ticking = asyncio.create_task(tick())
        events = await new_client(server, timeouts=HttpTimeouts(idle=0.4, pinged=20)).ask()
        assert text(events) == "Hi"
        assert dropped(events) == 0
        await ticking


async def test_a_whole_answer_may_take_as_long_as_silence_may(new_client: NewClient) -> None:
    wait = Wait(asyncio.Event())
    async with RawHttpServer([wait, *says("Hi")]) as server:
        asyncio.get_running_loop().call_later(0.3, wait.event.set)
        client = new_client(server, timeouts=HttpTimeouts(first_byte=0.05))
        assert text(await client.ask(stream=False)) == "Hi"
        assert len(server.requests) == 1


async def test_the_silence_before_the_head_counts(new_client: NewClient) -> None:
    """Seconds of silence are counted from the question, so that they do not add up."""
    stalled = [HEAD, Wait(asyncio.Event())]
    async with RawHttpServer(stalled) as server:
        client = new_client(server, timeouts=HttpTimeouts(idle=0.1))
        error = failed(await client.ask())
        assert (error.code, (error.details or {})["silentSeconds"]) == ("Network", 0)


WRONG_ADDRESSES = {
    "another API": response(200, {"model": "m", "message": {"content": "Hi"}, "done": True}),
    "a status": response(200, {"status": "ok"}),
    "a word": response(200, b"Ollama is running"),
    "a list": response(200, ["m1", "m2"]),
    "a web page": response(200, b"<html>"),
}


@pytest.mark.parametrize("what", WRONG_ADDRESSES)
async def test_no_completion_is_a_wrong_address(new_client: NewClient, what: str) -> None:
    async with RawHttpServer(WRONG_ADDRESSES[what]) as server:
        error = failed(await new_client(server).ask())
        assert (error.code, len(server.requests)) == ("ConfigInvalid", 1)
        assert "base_url" in error.message


async def test_content_keeps_a_slow_answer_alive(new_client: NewClient) -> None:  # W9
    waits = [Wait(asyncio.Event()) for _ in range(12)]
    slow = [step for wait in waits for step in (chunk(delta(content="x")), wait)]
    answer = [HEAD, *slow, chunk(delta("stop")), chunk(END), LAST_CHUNK]

    async def tick() -> None:
        for wait in waits:
            await asyncio.sleep(0.1)
            wait.event.set()

    async with RawHttpServer(answer) as server:
        ticking = asyncio.create_task(tick())
        events = await new_client(server, timeouts=HttpTimeouts(idle=1.0)).ask()
        assert text(events) == "x" * 12
        await ticking


async def test_the_systems_proxies_are_ignored(
    new_client: NewClient, monkeypatch: pytest.MonkeyPatch
) -> None:  # A3
    with socket.create_server(("127.0.0.1", 0)) as taken:
        dead = f"http://127.0.0.1:{taken.getsockname()[1]}"
    for name in (
        "HTTP_PROXY",
        "http_proxy",
        "HTTPS_PROXY",
        "https_proxy",
        "ALL_PROXY",
        "all_proxy",
    ):
        monkeypatch.setenv(name, dead)
    async with RawHttpServer(says("Hi")) as server:
        assert text(await new_client(server).ask()) == "Hi"


async def test_no_key() -> None:
    async with RawHttpServer(says("Hi")) as server:
        chat = ChatClient(Registry([ProviderConfig(server.url, "")]), HttpClient)
        missing = chat.missing("ide-chat")
        assert missing is not None
        assert (missing.code, "KIMI_API_KEY" in missing.message) == ("AuthRequired", True)
        events = [event async for batch in chat.stream(request()) for event in batch]
        assert events == [ResponseFailed(missing)]
        assert server.requests == []


@pytest.mark.parametrize("proxy", ["socks5://127.0.0.1:1", "nonsense", "http://"])
async def test_a_wrong_proxy_is_the_turns_failure(new_client: NewClient, proxy: str) -> None:
    async with RawHttpServer(says("Hi")) as server:
        error = failed(await new_client(server, proxy=proxy).ask())
        assert (error.code, "`proxy`" in error.message) == ("ConfigInvalid", True)


async def test_warm_builds_the_client_in_a_thread(new_client: NewClient) -> None:
    async with RawHttpServer(says("Hi")) as server:
        client = new_client(server)
        warming = threading.Thread(target=client.chat.warm, args=["ide-chat"])
        warming.start()
        await asyncio.to_thread(warming.join)
        assert text(await client.ask()) == "Hi"
        http = client.chat.endpoint(client.config).http()
        assert http is client.chat.endpoint(client.config).http()


async def test_answers_side_by_side(new_client: NewClient) -> None:
    go = asyncio.Event()
    slow: Answer = [
        HEAD,
        chunk(delta(content="slow")),
        Wait(go),
        chunk(delta("stop")),
        chunk(END),
        LAST_CHUNK,
    ]
    async with RawHttpServer(slow, says("quick")) as server:
        client = new_client(server)
        first = asyncio.create_task(client.ask())
        await server.asked.wait()
        assert text(await client.ask()) == "quick"
        go.set()
        assert text(await first) == "slow"


async def test_scripted_model() -> None:
    model: ModelClient = ScriptedModel(
        [[ResponseStarted("r", "m"), TextDelta("Hi")], [ResponseFinished("stop")]]
    )
    batches = [batch async for batch in model.stream(request())]
    assert batches == [[ResponseStarted("r", "m"), TextDelta("Hi")], [ResponseFinished("stop")]]
    assert failed([event async for batch in model.stream(request()) for event in batch])
    assert model.missing("m") is None


async def test_cancelled_anywhere_no_connection_is_lost(new_client: NewClient) -> None:  # W9
    long = sse_answer(*[delta(content="x")] * 200, delta("stop"), END)
    async with RawHttpServer(long) as server, asyncio.timeout(HANG_CEILING):
        client = new_client(server)
        for steps in range(60):
            asking = asyncio.create_task(client.ask())
            for _ in range(steps):
                await asyncio.sleep(0)
            asking.cancel()
            await asyncio.wait([asking])
        assert text(await client.ask()) == "x" * 200
        await client.chat.aclose()
        await server.all_gone()


CONCURRENCY = "request reached max organization concurrency: 1"
ONE_AT_ONCE = refusal(429, "rate_limit_reached_error", CONCURRENCY, "retry-after: 0")


async def test_a_pause_of_one_is_waited_for_by_the_next(new_client: NewClient) -> None:  # W9
    refused = refusal(429, "rate_limit_reached_error", "slow down", "retry-after: 9")
    async with RawHttpServer(*[refused] * 4, says("Hi")) as server:
        client = new_client(server)
        assert failed(await client.ask()).code == "RateLimited"
        assert client.waited == [9.0, 9.0, 9.0]
        assert text(await client.ask()) == "Hi"
        assert client.waited == [9.0] * 4, "the fourth refusal was heard by the next question"


async def test_what_is_reported_instead_of_waited_for_slows_nobody(new_client: NewClient) -> None:
    later = refusal(429, "rate_limit_reached_error", "slow down", "retry-after: 300")
    async with RawHttpServer(later, says("Hi")) as server:
        client = new_client(server)
        assert failed(await client.ask()).retry_after_ms == 300_000
        assert text(await client.ask()) == "Hi"
        assert client.waited == []


async def test_a_host_that_wants_one_at_once_gets_one_at_once(new_client: NewClient) -> None:  # W9
    async with RawHttpServer(ONE_AT_ONCE, says("Hi")) as server:
        client = new_client(server)
        assert text(await client.ask()) == "Hi"
        server.answers[:] = [says("Hi")]
        answers = await asyncio.gather(*(client.ask() for _ in range(4)))
        assert [text(events) for events in answers] == ["Hi"] * 4
        held = [events[:2] for events in answers if isinstance(events[0], RequestHeld)]
        assert [type(sent) for _, sent in held] == [RequestSent] * 3
        host = server.url.split("/")[2]
        words = f"Waiting for earlier requests: {host} answers 1 at a time."
        assert [one for one, _ in held] == [RequestHeld("queued", words)] * 3
        assert {sent.connection for sent in server.requests} == {1}


async def test_a_further_attempt_is_announced(new_client: NewClient) -> None:  # W9
    async with RawHttpServer(OVERLOADED, CUT, says("Hi")) as server:
        events = await new_client(server).ask()
        planned = [event for event in events if isinstance(event, RetryPlanned)]
        assert [(plan.seconds, plan.attempt) for plan in planned] == [(4.0, 2), (1.0, 3)]
        assert "overloaded" in planned[0].reason


async def test_attempts_end_with_the_budget(new_client: NewClient) -> None:  # W9
    slow = refusal(503, "server_error", "boom", "retry-after: 50")
    async with RawHttpServer(slow) as server:
        client = new_client(server)
        client.chat = ChatClient(
            Registry([client.config]),
            HttpClient,
            retry=RetryPolicy(random=lambda: 1.0, budget=120.0),
            sleep=client.sleep,
            now=lambda: client.time,
        )
        assert failed(await client.ask()).code == "Provider"
        assert client.waited == [50.0, 50.0]
        await client.chat.aclose()


async def test_an_answer_without_end_is_cut_off(
    new_client: NewClient, monkeypatch: pytest.MonkeyPatch
) -> None:  # W16
    monkeypatch.setattr("kode_sidecar.infrastructure.providers.attempt._MAX_ANSWER_CHARS", 1_000)
    async with RawHttpServer([HEAD, Repeat(chunk(delta(content="x" * 90)))]) as server:
        client = new_client(server)
        assert failed(await client.ask()).code == "TooLarge"
        assert len(server.requests) == 1


async def test_a_name_falls_back_to_what_the_host_lists(new_client: NewClient) -> None:
    """Whatever the table knows: models of the future answer to `ide-chat`, and it is said once."""
    future = response(200, {"data": [{"id": "text-embedding-3"}, {"id": "kimi-k9"}]})
    async with RawHttpServer(GONE, future, says("Hi"), says("Hi")) as server:
        client = new_client(server)
        events = await client.ask("ide-chat")
        assert text(events) == "Hi"
        (notice,) = [event for event in events if isinstance(event, ModelNotice)]
        assert "kimi-k9" in notice.message
        asked = [sent.json["model"] for sent in server.requests if sent.method == "POST"]
        assert asked[1:] == ["kimi-k9"]
        again = await client.ask("ide-chat")
        assert server.requests[-1].json["model"] == "kimi-k9"
        assert not [event for event in again if isinstance(event, ModelNotice)]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"base_resp": {"status_code": 1008, "status_msg": "insufficient balance"}}, "balance"),
        ({"code": 1113, "msg": "余额不足或无可用资源包,请充值。"}, "余额不足"),
        ({"success": False, "message": "the token group has been disabled"}, "been disabled"),
        ({"error_code": 18, "error_msg": "Open api qps request limit reached"}, "qps request"),
    ],
)
@pytest.mark.parametrize("streamed", [False, True])
async def test_a_refusal_in_a_200_is_read_once(
    body: dict[str, Any], words: str, streamed: bool, new_client: NewClient
) -> None:
    answer = sse_answer(event(body), END) if streamed else response(200, body)
    async with RawHttpServer(answer) as server:
        error = failed(await new_client(server).ask())
        assert words in error.message
        assert len(server.requests) == 1


async def test_a_first_prompt_that_is_too_long_is_told_its_size(new_client: NewClient) -> None:
    said = "This model's maximum context length is 8192 tokens"
    async with RawHttpServer(refusal(400, "invalid_request_error", said)) as server:
        error = failed(await new_client(server).ask(prompt_likely=12_345))
        assert error.code == "ContextOverflow"
        assert "about 12,345 tokens" in error.message
        assert "reads 8,192 at most" in error.message
        assert "new session" not in error.message
        assert error.message.endswith(f"It said: {said}")


async def test_a_loading_model_is_waited_for(new_client: NewClient) -> None:
    body = {"error": {"message": "Loading model", "type": "unavailable_error", "code": 503}}
    loading = response(503, body)
    async with RawHttpServer(*[loading] * 6, says("Hi")) as server:
        client = new_client(server)
        events = await client.ask()
        assert (text(events), len(server.requests)) == ("Hi", 7)
        waits = [one for one in events if isinstance(one, RetryPlanned)]
        assert len(waits) == 6
        assert all("still loading the model" in one.reason for one in waits)
    async with RawHttpServer(loading) as server:
        client = new_client(server)
        error = failed(await client.ask())
        assert "still loading the model" in error.message
        assert 250 < sum(client.waited) <= 300  # as long as another attempt may begin


async def test_a_request_that_waits_behind_others_waits_its_turn(new_client: NewClient) -> None:
    """A server with one slot says nothing to the second request until the first one has ended."""
    hasty = ModelProfile("kimi-k3", timeouts=TimeLimits(first_byte=0.3))
    done = asyncio.Event()
    first = [HEAD, chunk(delta(content="one")), Wait(done), chunk(delta("stop")), chunk(END)]
    async with RawHttpServer(first, [Wait(asyncio.Event())], says("two")) as server:
        client = new_client(server, profile=replace(KIMI, models=(hasty,)))
        found: list[ModelEvent] = []
        async with asyncio.timeout(HANG_CEILING):
            async with aclosing(client.chat.stream(request())) as batches:
                await anext(batches)
                client.time = 600.0  # later than another attempt begins after a mere failure
                async with aclosing(client.chat.stream(request("kimi-k3"))) as waiting:
                    while not any(isinstance(event, RetryPlanned) for event in found):
                        found += await anext(waiting)
                    assert isinstance((await anext(waiting))[0], RequestHeld)
                    going_on = asyncio.ensure_future(anext(waiting))
                    done.set()
                    async for batch in batches:
                        assert not going_on.done()
                        if any(isinstance(event, ResponseFinished) for event in batch):
                            break
                    await batches.aclose()
                    found += await going_on
                    found += [event async for batch in waiting for event in batch]
        assert text(found) == "two"
        assert isinstance(found[0], RetryPlanned)
        assert "waiting for its turn" in found[0].reason
