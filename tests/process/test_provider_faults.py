"""Hosts that misbehave, over the real process: a typed error or a recovery, and no key anywhere.

The host echoes the key wherever it can. After each fault the next turn must work.
"""

import asyncio
import gzip
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.conftest import FULL
from tests.support.normal_form import notifications
from tests.support.raw_http import (
    END,
    HANG_CEILING,
    HEAD,
    LAST_CHUNK,
    Answer,
    Never,
    RawHttpServer,
    Repeat,
    Step,
    Wait,
    chunk,
    delta,
    event,
    refusal,
    response,
    says,
)
from tests.support.session_fold import SessionFold
from tests.support.sidecar import HANG_SECONDS, World, sidecar

KEY = "live-key-3141592653589793"
ECHO = f"Incorrect API key provided: {KEY}. Authorization: Bearer {KEY}"
MEGABYTE = 1 << 20
# Seconds. Long enough for a busy machine to answer, short enough to wait for.
PATIENCE = "2"
SILENCE = "0.3"
# No further attempt after a time-out, but after anything that fails at once.
BUDGET = "1.9"

NEVER = Never()
TEXT = "Hello world"
HELLO = [HEAD, chunk(delta(role="assistant", content="")), chunk(delta(content="Hel"))]
PACKED = "content-encoding: gzip"
BOMB = gzip.compress(b" " * 80 * MEGABYTE, 9)
COMMENTS = gzip.compress(b": nothing\n\n" * 8 * MEGABYTE, 9)
ENDLESS = b"HTTP/1.1 500 X\r\ncontent-length: 524288000\r\n\r\n"


def page(title: str) -> bytes:
    return f"<html><title>{title}</title><body>{KEY}</body></html>".encode()


@dataclass(frozen=True)
class Fault:
    """What the host does, and the error that the turn ends with; no code: it recovers."""

    answers: Sequence[Answer]
    code: str = ""
    retryable: bool = False
    parts: tuple[str, ...] = ()
    asked: int = 1
    details: dict[str, Any] = field(default_factory=dict[str, Any])


FAULTS: dict[str, Fault] = {
    "stalls before it answers": Fault([[NEVER]], "Network", True, ("did not begin",)),
    "stalls in mid-stream": Fault([[*HELLO, NEVER]], "Network", True, ("nothing new for 2",)),
    "keep-alives only": Fault(
        [[HEAD, Repeat(chunk(b": keep-alive\n\n"))]], "Network", True, ("signs of life for 2",)
    ),
    "keep-alives in mid-stream": Fault(
        [[*HELLO, Repeat(chunk(b": PROCESSING\n\n"))]], "Network", True, ("signs of life for 2",)
    ),
    "cut in mid-stream": Fault([HELLO, says(TEXT)], asked=2),
    "cut in the head": Fault([[b"HTTP/1.1 200 OK\r\ncont"], says(TEXT)], asked=2),
    "closes at once": Fault([[b""], says(TEXT)], asked=2),
    "an end without its mark": Fault([[*HELLO, LAST_CHUNK], says(TEXT)], asked=2),
    "cut twice": Fault([HELLO, HELLO], "Network", True, asked=2),
    "too fast, come again at once": Fault(
        [
            refusal(429, "rate_limit_reached_error", f"{ECHO} max RPM: 900", "retry-after-ms: 1"),
            says(TEXT),
        ],
        asked=2,
    ),
    "too fast, come again much later": Fault(
        [refusal(429, "rate_limit_reached_error", ECHO, "retry-after: 300")],
        "RateLimited",
        True,
        details={"limit": "rate"},
    ),
    "the day's tokens are used up": Fault(
        [refusal(429, "rate_limit_reached_error", f"{ECHO} TPD rate limit")],
        "RateLimited",
        details={"limit": "day"},
    ),
    "an empty account": Fault(
        [refusal(429, "exceeded_current_quota_error", ECHO)],
        "QuotaExceeded",
        details={"limit": "quota"},
    ),
    "a refused key": Fault([refusal(401, "incorrect_api_key_error", ECHO)], "AuthRequired"),
    "forbidden": Fault([refusal(403, "permission_denied_error", ECHO)], "Provider"),
    "an unknown address": Fault([response(404, page(ECHO))], "ConfigInvalid"),
    "too long a conversation": Fault(
        [refusal(400, "invalid_request_error", f"{ECHO} exceeded model token limit : 8")],
        "ContextOverflow",
        asked=4,  # again with less, after two tries to have the history summed up
    ),
    "risky": Fault([refusal(400, "content_filter", ECHO)], "ContentFiltered"),
    "a redirect": Fault([response(302, b"", f"location: http://x/?key={KEY}")], "ConfigInvalid"),
    "a gateway's page": Fault([response(502, page(ECHO)), says(TEXT)], asked=2),
    "a page with 200": Fault([response(200, page(ECHO))], "ConfigInvalid", parts=("web page",)),
    "an error with 200": Fault(
        [response(200, {"error": {"message": ECHO, "code": 400}})], "Provider"
    ),
    "an error in the stream": Fault(
        [[*HELLO, chunk(event({"error": {"message": ECHO, "type": "invalid_request_error"}}))]],
        "Provider",
    ),
    "a trace id that is the key": Fault([response(400, b"", f"x-trace-id: {KEY}")], "Provider"),
    "nothing said, three times": Fault(
        [[HEAD, chunk(delta("stop")), chunk(END), LAST_CHUNK]], "EmptyAnswer", True, asked=3
    ),
    "nothing said because of a filter": Fault(
        [[HEAD, chunk(delta("content_filter")), chunk(END), LAST_CHUNK]]
    ),
    "a packed bomb": Fault([response(200, BOMB, PACKED)], "TooLarge"),
    "a packed bomb of comments": Fault([response(200, COMMENTS, PACKED)], "TooLarge"),
    "a packed bomb as an error": Fault([response(400, BOMB, PACKED)], "Provider"),
    "packed in an unknown way": Fault(
        [response(200, b"x", "content-encoding: br"), says(TEXT)], asked=2
    ),
    "an endless line": Fault(
        [[HEAD, chunk(b"data: "), Repeat(chunk(b"x" * MEGABYTE))]], "TooLarge"
    ),
    "an endless body": Fault([[ENDLESS, Repeat(b"x" * MEGABYTE)], says(TEXT)], asked=2),
}


@asynccontextmanager
async def faulty(tmp_path: Path) -> AsyncIterator[tuple[RawHttpServer, World, SessionFold]]:
    """The process before a host of the test's making; afterwards no key is anywhere."""
    limits = tmp_path / "limits.yaml"
    limits.write_text(f"providers: {{kimi: {{timeouts: {{pinged: {PATIENCE}}}}}}}\n", "utf-8")
    async with RawHttpServer(says("warm")) as server:
        environment = {
            "KODE_CONFIG": str(limits),
            "KIMI_BASE_URL": server.url,
            "KIMI_API_KEY": KEY,
            "KODE_MODEL": "kimi-k2.6",
            "KODE_HTTP_TIMEOUT_FIRST_BYTE": PATIENCE,
            "KODE_HTTP_TIMEOUT_IDLE": PATIENCE,
            "KODE_HTTP_SILENCE_TOLD": SILENCE,
            "KODE_HTTP_RETRY_BUDGET": BUDGET,
        }
        async with sidecar(roots=[tmp_path], environment=environment) as world:
            session = await world.session()
            await world.turn(session, "warm up")
            yield server, world, session
        reported = [frame.body for frame in world.client.frames if frame.direction == "in"]
        assert KEY.encode() not in b"".join(reported)
        assert KEY not in world.client.process.stderr_tail
        files = [path for path in world.home.rglob("*") if path.is_file()]
        assert any(path.name == "agent.log" for path in files)
        for path in files:
            assert KEY.encode() not in path.read_bytes(), path


def said(session: SessionFold) -> str:
    """The text of the newest message."""
    return list(session.messages.values())[-1].text


def waits(world: World, turn_id: str) -> list[dict[str, Any]]:
    return [
        reported
        for method, params in notifications(world.client.frames)
        if method == "kode/event"
        for reported in params["events"]
        if reported["type"] == "model.waiting" and reported["turnId"] == turn_id
    ]


async def meets(fault: Fault, server: RawHttpServer, world: World, session: SessionFold) -> None:
    """One turn with the fault, then one without."""
    server.answers[:] = fault.answers
    before = len(server.requests)
    turn = await world.turn(session, "go")
    assert len(server.requests) - before == fault.asked
    if fault.code:
        error = turn.result["error"]
        assert (turn.stop_reason, error["code"]) == ("error", fault.code), error
        assert error["retryable"] is fault.retryable
        for part in fault.parts:
            assert part in error["message"]
        assert error.get("details", {}).items() >= fault.details.items()
    else:
        assert turn.stop_reason in ("end_turn", "refusal"), turn.result
        assert turn.stop_reason == "refusal" or said(session) == TEXT
    server.answers[:] = [says("All is well")]
    assert (await world.turn(session, "again")).stop_reason == "end_turn"
    assert said(session) == "All is well"
    assert session.anomalies == []


@pytest.mark.parametrize("names", [list(FAULTS)[:16], list(FAULTS)[16:]], ids=["first", "second"])
async def test_a_host_that_misbehaves(names: list[str], tmp_path: Path) -> None:  # W9 W14 W16
    async with faulty(tmp_path) as (server, world, session):
        for name in names:
            try:
                await meets(FAULTS[name], server, world, session)
            except AssertionError as error:
                raise AssertionError(name) from error


async def test_cut_anywhere_it_is_asked_again(tmp_path: Path, rng: Random) -> None:  # W9 W10
    whole: list[Step] = list(says("Hel", "lo ", "wor", "ld"))
    sent = b"".join(step for step in whole if isinstance(step, bytes))
    ends = list(accumulate(len(step) for step in whole if isinstance(step, bytes)))
    # Beyond the end mark nothing is missing any more.
    last = ends[-2] - len(b"data: [DONE]\n\n\r\n")
    cuts = range(1, last) if FULL else sorted(rng.sample(range(1, last), 8))
    async with faulty(tmp_path) as (server, world, session):
        for cut in cuts:
            fault = Fault([[sent[:cut]], says(TEXT)], asked=2)
            try:
                await meets(fault, server, world, session)
            except AssertionError as error:
                raise AssertionError(f"cut after {cut} bytes") from error


async def test_the_editor_hears_that_the_model_is_silent(tmp_path: Path) -> None:  # W9
    go = asyncio.Event()
    async with faulty(tmp_path) as (server, world, session):
        server.answers[:] = [[HEAD, Wait(go), chunk(delta(content="Hi")), chunk(END), LAST_CHUNK]]
        turn_id = await world.start(session, "go")
        await world.watch.until(lambda: len(waits(world, turn_id)) >= 2, HANG_SECONDS)
        go.set()
        turn = await world.watch.turn_end(session.session_id, turn_id, HANG_SECONDS)
        assert turn.stop_reason == "end_turn"
        first, second, *_ = waits(world, turn_id)
        assert (first["state"], "seq" in first) == ("silent", False)
        assert second["silentMs"] > first["silentMs"] >= 1000 * float(SILENCE)
        assert not [
            reported for reported in world.journal(session) if reported["type"] == "model.waiting"
        ]
        reports = [
            params["value"].get("message", "")
            for method, params in notifications(world.client.frames)
            if method == "$/progress" and params["token"] == turn_id
        ]
        assert any("said nothing" in report for report in reports)

        server.answers[:] = [HELLO, says(TEXT)]
        again = await world.turn(session, "once more")
        (retry,) = [
            reported for reported in waits(world, again.id) if reported["state"] == "retrying"
        ]
        assert (retry["attempt"], "retryInMs" in retry) == (2, True)


async def test_cancelling_hangs_up_at_once(tmp_path: Path) -> None:  # W9 O8
    async with faulty(tmp_path) as (server, world, session):
        for stalled in ([NEVER], [*HELLO, NEVER], [HEAD, Repeat(chunk(b": hm\n\n"))]):
            server.answers[:] = [stalled]
            server.asked.clear()
            server.hung_up.clear()
            turn_id = await world.start(session, "go")
            async with asyncio.timeout(HANG_CEILING):
                await server.asked.wait()
                cancel = {"sessionId": session.session_id, "turnId": turn_id}
                await world.client.request("kode/turn/cancel", cancel, HANG_SECONDS)
                turn = await world.watch.turn_end(session.session_id, turn_id, HANG_SECONDS)
                await server.hung_up.wait()
            assert turn.stop_reason == "cancelled"
            server.answers[:] = [says(TEXT)]
            assert (await world.turn(session, "again")).stop_reason == "end_turn"
