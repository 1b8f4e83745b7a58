"""Scouts over the real process: side by side, under their limits, out of the main history."""

import asyncio
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.answering_model import user_texts
from tests.support.model_script import TokenUsage, answer, failure, hold, text, tool_call
from tests.support.program import BUILT
from tests.support.scout_model import (
    Script,
    explore,
    is_scout,
    read,
    report,
    scout_model,
    tool_names,
)
from tests.support.session_fold import SessionFold
from tests.support.sidecar import HANG_SECONDS, World, only_change_set, read_jsonl, sidecar
from tests.support.transcripts import moved_clock

FIVE = ("one", "two", "three", "four", "five 茶")
APP = "import os\n\n\ndef greet(name):\n    return 'hello ' + name\n"
QUOTE = ("app.py", 4, 5, "def greet(name):\n    return 'hello ' + name")
LISTS = tool_call("list_files", {"directory": "."})


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "app.py").write_bytes(APP.encode())
    return folder


def good(title: str, *, gate: str = "") -> Script:
    """A scout that reads, thinks aloud and reports; before its report it waits for `gate`."""
    waits = [hold(gate)] if gate else []
    return [
        answer(text(f"inner words of {title}"), read()),
        answer(*waits, report(f"{title} is in app.py", QUOTE)),
    ]


def reports_in(world: World, session: SessionFold) -> list[dict[str, Any]]:
    """What the newest tool message of the main history holds."""
    tool = [m for m in world.messages(session) if m["role"] == "tool"][-1]
    (block,) = tool["content"]
    return json.loads(block["content"][0]["text"])


def scout_events(world: World, session: SessionFold) -> list[tuple[str, str]]:
    """`(title, state)` of every `scout.updated` on the wire, in order."""
    found: list[tuple[str, str]] = []
    for frame in world.client.frames:
        message = frame.message() if frame.direction == "in" else {}
        if message.get("method") == "kode/event":
            events = message["params"]["events"]
            found += [(e["title"], e["state"]) for e in events if e["type"] == "scout.updated"]
    return found


def records(world: World, session: SessionFold) -> dict[str, list[dict[str, Any]]]:
    """The messages of every scout, by title."""
    files = sorted((world.folder(session) / "scouts").glob("*.jsonl"))
    scouts = [read_jsonl(file) for file in files]
    assert {file.stem for file in files} == set(session.scouts)
    return {s[0]["content"][0]["text"].splitlines()[0].removeprefix("# "): s for s in scouts}


# D1 D2 D5 D8
async def test_five_scouts_explore_at_once_and_report_in_task_order(project: Path) -> None:
    main = [answer(explore(*FIVE)), answer(text("Now I know."))]
    model = scout_model(main, {title: good(title, gate=title) for title in FIVE})
    async with sidecar(model=model, roots=[project]) as world:
        session = await world.session()
        turn_id = await world.start(session, "explore")
        async with asyncio.timeout(HANG_SECONDS):
            for title in FIVE:  # all of them wait in their second answer
                await model.reached(title)
        assert {scout.state for scout in session.scouts.values()} == {"running"}
        for back, title in enumerate(reversed(FIVE), 1):
            model.release(title)
            ends = ("done",) * back
            await world.watch.until(
                lambda ends=ends: (
                    tuple(s for _, s in scout_events(world, session) if s == "done") == ends
                ),
                HANG_SECONDS,
            )
        turn = await world.watch.turn_end(session.session_id, turn_id, HANG_SECONDS)
        assert turn.stop_reason == "end_turn"

        reported = scout_events(world, session)
        first_end = next(i for i, (_, state) in enumerate(reported) if state == "done")
        assert {title for title, state in reported[:first_end] if state == "running"} == set(FIVE)
        assert [title for title, state in reported if state == "done"] == list(reversed(FIVE))

        reports = reports_in(world, session)
        assert [one["title"] for one in reports] == list(FIVE)
        assert all(one["state"] == "done" for one in reports)
        assert reports[4]["summary"] == "five 茶 is in app.py"
        (finding,) = reports[0]["findings"]
        assert (finding["startLine"], finding["evidence"]) == (4, "verified")
        assert_hidden(world, session)
        assert session.anomalies == []
        known = await world.client.request(
            "kode/freshness/get", {"sessionId": session.session_id}, HANG_SECONDS
        )
        assert known["files"] == []  # what scouts have read, the main model has not


def assert_hidden(world: World, session: SessionFold) -> None:
    """Nothing of a scout's dialogue is in the main history, the main questions or on the wire."""
    roles = [message["role"] for message in world.messages(session)]
    assert roles == ["user", "assistant", "tool", "assistant"]
    assert "inner words" not in json.dumps(world.messages(session))
    assert "inner words" not in json.dumps(world.journal(session))
    wire = b"".join(frame.body for frame in world.client.frames if frame.direction == "in")
    assert b"inner words" not in wire
    asked = [chat.body for chat in world.model.chats]
    assert "inner words" not in str([body for body in asked if not is_scout(body)])
    for body in asked:
        if is_scout(body):
            assert tool_names(body) == ["read_file", "list_files", "search_code", "report_findings"]
            assert "explore" not in user_texts(body)
        else:
            assert "report_findings" not in tool_names(body)
    kept = records(world, session)
    assert set(kept) == set(FIVE)
    for title, messages in kept.items():
        assert [m["role"] for m in messages] == ["user", "assistant", "tool", "assistant", "tool"]
        assert f"inner words of {title}" in str(messages)
    stored = [event for event in world.journal(session) if event["type"] == "scout.updated"]
    assert {event["state"] for event in stored} == {"reporting", "done"}


async def test_what_scouts_use_is_the_turns(project: Path) -> None:  # D5
    spent = TokenUsage(prompt=1_000, completion=10)
    scout = [answer(read(), usage=spent), answer(report("x", QUOTE), usage=spent)]
    model = scout_model([answer(explore("a", "b")), answer(text("ok"))], {"a": scout, "b": scout})
    async with sidecar(model=model, roots=[project]) as world:
        session = await world.session()
        turn = await world.turn(session, "explore")
        assert turn.result["usage"]["inputTokens"] == 2 * 100 + 4 * 1_000
        assert turn.result["usage"]["outputTokens"] == 2 * 20 + 4 * 10
        assert session.usage["usage"] == turn.result["usage"]
        kept = await world.client.request(
            "kode/session/get", {"sessionId": session.session_id}, HANG_SECONDS
        )
        assert kept["usage"] == turn.result["usage"]
    async with sidecar(roots=[project]) as world:
        for access in ("read", "write"):  # a later process knows it, too
            params = {"sessionId": session.session_id, "access": access}
            reported = await world.client.request("kode/session/attach", params, HANG_SECONDS)
            assert reported["usage"] == turn.result["usage"]


async def test_six_tasks_in_one_call_are_refused_with_a_message(project: Path) -> None:  # D2
    six = tuple("abcdef")
    model = scout_model([answer(explore(*six)), answer(text("I see."))], {})
    async with sidecar(model=model, roots=[project]) as world:
        session = await world.session()
        turn = await world.turn(session, "explore")
        assert turn.stop_reason == "end_turn"
        (block,) = world.messages(session)[2]["content"]
        assert block["is_error"]
        assert "length <= 5" in block["content"][0]["text"]
        assert session.scouts == {}


async def test_the_sixth_scout_of_two_parallel_calls_is_refused(project: Path) -> None:  # D2
    calls = (
        explore("one", "two", "three", call_id="x:0"),
        explore("four", "five 茶", "six", call_id="x:1"),
        explore("seven", call_id="x:2"),
    )
    model = scout_model(
        [answer(*calls), answer(text("ok"))], {title: good(title, gate=title) for title in FIVE}
    )
    async with sidecar(model=model, roots=[project]) as world:
        session = await world.session()
        turn_id = await world.start(session, "explore")
        async with asyncio.timeout(HANG_SECONDS):
            for title in FIVE:
                await model.reached(title)
        assert sorted(scout.title for scout in session.scouts.values()) == sorted(FIVE)
        for title in FIVE:
            model.release(title)
        await world.watch.turn_end(session.session_id, turn_id, HANG_SECONDS)
        first, second, third = world.messages(session)[2]["content"]
        states = [
            [(one["title"], one["state"]) for one in json.loads(block["content"][0]["text"])]
            for block in (first, second)
        ]
        assert states[0] == [("one", "done"), ("two", "done"), ("three", "done")]
        assert states[1] == [("four", "done"), ("five 茶", "done"), ("six", "refused")]
        assert third["is_error"]
        assert "5 scouts were out already" in third["content"][0]["text"]
        assert len(records(world, session)) == 5


async def test_a_report_before_reading_is_recovered_from(project: Path) -> None:  # D4
    early = [
        answer(report("guessed")),
        answer(tool_call("read_file", {"path": "gone.py"})),
        answer(report("guessed again")),
        *(answer(read()), answer(report("known", QUOTE, ("app.py", 1, 1, "import sys")))),
    ]
    model = scout_model([answer(explore("a")), answer(text("ok"))], {"a": early})
    async with sidecar(model=model, roots=[project]) as world:
        session = await world.session()
        await world.turn(session, "explore")
        (one,) = reports_in(world, session)
        assert (one["state"], one["summary"]) == ("done", "known")
        assert [f["evidence"] for f in one["findings"]] == ["verified", "unverified"]
        assert one["openQuestions"] == ["why?"]
        results = [m["content"][0] for m in records(world, session)["a"] if m["role"] == "tool"]
        assert [block.get("is_error", False) for block in results] == [
            True,
            True,
            True,
            False,
            False,
        ]
        assert "Read at least one file" in results[0]["content"][0]["text"]


async def test_the_hundred_and_first_call_is_refused_and_the_report_arrives(
    project: Path,
) -> None:  # D3
    def busy(number: int) -> Any:
        if number < 5:
            return answer(read(call_id=f"r:{number}"), *[LISTS] * 19)
        return answer(LISTS, report("after all", QUOTE))

    model = scout_model([answer(explore("a")), answer(text("ok"))], {"a": busy})
    async with sidecar(model=model, roots=[project]) as world:
        session = await world.session()
        await world.turn(session, "explore")
        (one,) = reports_in(world, session)
        assert (one["state"], one["summary"], one["toolCalls"]) == ("done", "after all", 100)
        messages = records(world, session)["a"]
        blocks = [block for m in messages if m["role"] == "tool" for block in m["content"]]
        failed = [block for block in blocks if block.get("is_error")]
        assert (len(blocks), blocks.index(failed[0]), len(failed)) == (102, 100, 1)
        assert failed[0]["content"][0]["text"].startswith("Report now")
        orders = [m for m in messages if m["meta"].get("origin") == "reminder"]
        assert len(orders) == 1  # told before it asks in vain, and once
        states = [state for _, state in scout_events(world, session) if state != "running"]
        assert states == ["reporting", "done"]


async def test_one_that_fails_leaves_the_others_alone(project: Path) -> None:  # D5
    scouts: dict[str, Script] = {
        "good": good("good"),
        "mute": [answer(read()), answer(text("It is in app.py, I think."))],
        "broken": [answer(read()), failure(400, "invalid_request_error", "no such thing")],
    }
    model = scout_model([answer(explore(*scouts)), answer(text("ok"))], scouts)
    async with sidecar(model=model, roots=[project]) as world:
        session = await world.session()
        turn = await world.turn(session, "explore")
        assert turn.stop_reason == "end_turn"
        well, mute, broken = reports_in(world, session)
        assert well["state"] == "done"
        assert (mute["state"], mute["summary"]) == ("failed", "It is in app.py, I think.")
        assert "ended without a report" in mute["note"]
        assert mute["read"] == ["app.py"]
        assert broken["state"] == "failed"
        assert "no such thing" in broken["note"]


async def test_cancelling_the_turn_cancels_all_scouts(project: Path) -> None:  # O8
    model = scout_model(
        [answer(explore(*FIVE)), answer(text("after"))],
        {title: good(title, gate=title) for title in FIVE},
    )
    async with sidecar(model=model, roots=[project]) as world:
        session = await world.session()
        turn_id = await world.start(session, "explore")
        async with asyncio.timeout(HANG_SECONDS):
            for title in FIVE:
                await model.reached(title)
        asked = len(model.chats)
        answered = await world.client.request(
            "kode/turn/cancel", {"sessionId": session.session_id}, HANG_SECONDS
        )
        assert answered == {"cancelled": True}
        turn = await world.watch.turn_end(session.session_id, turn_id, HANG_SECONDS)
        assert turn.stop_reason == "cancelled"
        assert len(model.chats) == asked
        assert [s.state for s in session.scouts.values()] == ["cancelled"] * 5
        assert len(records(world, session)) == 5
        async with asyncio.timeout(HANG_SECONDS):
            for chat in model.chats:
                await chat.finished.wait()
        assert (await world.turn(session, "again")).stop_reason == "end_turn"
        assert session.anomalies == []


# D5: they see what the session sees
@pytest.mark.parametrize("state", ["unsaved", "pending"])
async def test_scouts_read_the_editors_text_and_pending_edits(project: Path, state: str) -> None:
    changed = APP.replace("hello", "bonjour")
    edit = {"old": "hello", "new": "bonjour"}
    proposal = tool_call("propose_edit", {"path": "app.py", "edits": [edit]})
    main = [answer(explore("a")), answer(text("ok"))]
    if state == "pending":
        main.insert(0, answer(proposal))
    scout = [answer(read()), answer(report("x", ("app.py", 5, 5, "return 'bonjour ' + name")))]
    model = scout_model(main, {"a": scout})
    async with sidecar(model=model, roots=[project]) as world:
        if state == "unsaved":
            world.editor.open(project / "app.py", changed)
        session = await world.session()
        await world.turn(session, "explore")
        (one,) = reports_in(world, session)
        assert one["findings"][0]["evidence"] == "verified"
        asked = [chat.body for chat in model.chats if is_scout(chat.body)]
        assert "bonjour" in str(asked[-1]["messages"])
        if state == "pending":
            assert len(only_change_set(session).hunks("proposed")) == 1


async def test_each_scout_is_a_progress(project: Path) -> None:  # D8
    model = scout_model(
        [answer(explore("one", "two")), answer(text("ok"))],
        {title: good(title, gate="gate") for title in ("one", "two")},
    )
    async with sidecar(model=model, roots=[project]) as world:
        session = await world.session()
        turn_id = await world.start(session, "explore")
        await world.watch.until(lambda: len(begun(world)) == 3, HANG_SECONDS)
        model.release("gate")
        await world.watch.turn_end(session.session_id, turn_id, HANG_SECONDS)
        values = progress(world)
        for scout in session.scouts.values():
            kinds = [value["kind"] for token, value in values if token == scout.id]
            assert (kinds[0], kinds[-1]) == ("begin", "end")
            begin = next(value for token, value in values if token == scout.id)
            assert begin["title"] == f"kode: {scout.title}"
            assert begin["cancellable"] is False
        reported = [e for e in world.events() if e["type"] == "tool.progress"]
        assert [(e["completed"], e["total"]) for e in reported] == [(0, 2), (1, 2), (2, 2)]


def progress(world: World) -> list[tuple[str, dict[str, Any]]]:
    frames = [frame.message() for frame in world.client.frames if frame.direction == "in"]
    reported = [frame["params"] for frame in frames if frame.get("method") == "$/progress"]
    return [(params["token"], params["value"]) for params in reported]


def begun(world: World) -> Sequence[str]:
    return [token for token, value in progress(world) if value["kind"] == "begin"]


# D3: the clock is the process's own, and a test moves it
@pytest.mark.skipif(
    BUILT is not None or sys.platform == "win32",
    reason="the clock is moved in an event loop over selectors, by a sitecustomize",
)
async def test_a_hung_scout_ends_at_the_deadline(project: Path, tmp_path: Path) -> None:
    clock = tmp_path / "clock"
    scouts: dict[str, Script] = {title: good(title) for title in FIVE}
    scouts["two"] = good("two", gate="never")
    scouts["three"] = [
        answer(read()),
        answer(hold("late"), LISTS, read(call_id="r:1")),  # it goes on when it should report
        answer(report("just in time", QUOTE)),
    ]
    model = scout_model([answer(explore(*FIVE)), answer(text("ok"))], scouts)
    patient = tmp_path / "patient.yaml"  # else the host would be given up before the scout is
    limits = "{first_byte: 1000, idle: 1000, pinged: 1000}"
    patient.write_text(f"providers: {{kimi: {{timeouts: {limits}}}}}\n", encoding="utf-8")
    environment = {**moved_clock(clock), "KODE_CONFIG": str(patient)}
    async with sidecar(model=model, roots=[project], environment=environment) as world:
        session = await world.session()
        turn_id = await world.start(session, "explore")
        async with asyncio.timeout(HANG_SECONDS):
            await model.reached("never")
            await model.reached("late")
        await world.watch.until(lambda: ended(session) == 3, HANG_SECONDS)
        clock.write_text("575", encoding="ascii")
        model.release("late")
        await world.watch.until(lambda: ended(session) == 4, HANG_SECONDS)
        assert session.turns[turn_id].stop_reason is None
        clock.write_text("601", encoding="ascii")
        turn = await world.watch.turn_end(session.session_id, turn_id, HANG_SECONDS)
        assert turn.stop_reason == "end_turn"
        one, two, three, four, five = reports_in(world, session)
        assert all(report["state"] == "done" for report in (one, three, four, five))
        assert two["state"] == "timed_out"
        assert "ran out of time after 600 seconds" in two["note"]
        assert (two["summary"], two["read"]) == ("inner words of two", ["app.py"])
        assert three["summary"] == "just in time"
        results = [b for m in records(world, session)["three"] for b in m["content"]]
        refused = [b for b in results if b["type"] == "tool_result" and b.get("is_error")]
        assert len(refused) == 2
        assert all(b["content"][0]["text"].startswith("Report now") for b in refused)
        states = [state for title, state in scout_events(world, session) if title == "three"]
        assert states[-2:] == ["reporting", "done"]


def ended(session: SessionFold) -> int:
    """How many scouts have come to their end."""
    return sum(scout.state not in ("running", "reporting") for scout in session.scouts.values())
