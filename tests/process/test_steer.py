"""Steering, cancelling and starting at any moment around a turn's end (O8, O11)."""

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pytest

from kode_sidecar.devtools.demo.model_server import RecordedResponse
from kode_sidecar.devtools.recording.recording_file import read_recording
from kode_sidecar.devtools.recording.replay import play
from kode_sidecar.terminal.client.connection import Call, RpcError
from tests.conftest import FULL
from tests.support.answering_model import AnsweringModel, user_texts
from tests.support.fsync_gate import with_faults
from tests.support.kimi_rules import refusals
from tests.support.model_script import answer, failure, hold, text, tool_call
from tests.support.program import BUILT, PROGRAM
from tests.support.session_fold import SessionFold
from tests.support.sidecar import HANG_SECONDS, World, only_change_set, sidecar
from tests.support.stream_rules import breaches

pytestmark = pytest.mark.program

SESSIONS = 8
TURNS = 60 if FULL else 8
PLAYED = 5 if FULL else 1
MOMENTS = (2, 5, 9, 13, 20, 30)


@dataclass
class Talk:
    """A session in which the user interrupts at random; every turn starts at the last one's end.

    `steers` holds what was said, in order: the words, the turn and the answer to it.
    """

    world: World
    session: SessionFold
    random: Random
    starts: list[Call] = field(default_factory=list[Call])
    steers: list[tuple[str, str, Call]] = field(default_factory=list[tuple[str, str, Call]])
    cancels: list[Call] = field(default_factory=list[Call])
    done: asyncio.Event = field(default_factory=asyncio.Event)
    due: list[int] = field(default_factory=list[int])
    events: int = 0
    refused: bool = False  # once, by the host

    def start(self) -> None:
        """Start the next turn, with moments to interrupt it."""
        self.events = 0
        self.due = self.random.choices(MOMENTS, k=self.random.randint(1, 4))
        words = f"turn {len(self.starts)}"
        self.starts.append(self._send("kode/turn/start", words))

    def received(self, event: dict[str, Any]) -> None:
        """One event of a turn."""
        if self.done.is_set():
            return
        self.events += 1
        for _ in range(self.due.count(self.events)):
            self.interrupt(event["turnId"])
        if event["type"] == "turn.completed":
            if self.random.random() < 0.5:
                self.interrupt(event["turnId"])
            if len(self.starts) < TURNS:
                self.start()
            else:
                self.done.set()

    def interrupt_what_runs(self) -> None:
        """Interrupt the turn that runs, if one does."""
        turn = self.session.active_turn
        if turn is not None and not self.done.is_set():
            self.interrupt(turn.id)

    def interrupt(self, turn_id: str) -> None:
        """Steer the turn, or sometimes cancel it."""
        if self.random.random() < 0.15:
            where = {"sessionId": self.session.session_id, "turnId": turn_id}
            self.cancels.append(self.world.client.start("kode/turn/cancel", where))
            return
        words = f"word {len(self.steers)} of {self.session.session_id}"
        self.steers.append((words, turn_id, self._send("kode/turn/steer", words, turnId=turn_id)))

    def _send(self, method: str, words: str, **more: Any) -> Call:
        said = [{"type": "text", "text": words}]
        params = {"sessionId": self.session.session_id, "input": said, **more}
        return self.world.client.start(method, params)


class Talks:
    """All sessions, and the model behind them."""

    def __init__(self, random: Random) -> None:
        self.by_session: dict[str, Talk] = {}
        self.model = AnsweringModel(self._respond)
        self._random = random
        self._waiting: list[asyncio.Task[None]] = []

    @property
    def every(self) -> list[Talk]:
        return list(self.by_session.values())

    def received(self, method: str, params: Any) -> None:
        """A notification."""
        if method == "kode/event":
            for event in params["events"]:
                if "turnId" in event:
                    self.by_session[params["sessionId"]].received(event)

    def _respond(self, body: dict[str, Any]) -> RecordedResponse:
        random = self._random
        talk = self.by_session[body["prompt_cache_key"]]
        if random.random() < 0.05 and not talk.refused:  # twice would mean what it holds
            talk.refused = True
            return failure(400, "invalid_request_error", "not today")
        gate = f"gate {len(self.model.chats)}"
        self._waiting.append(asyncio.create_task(self._near_the_end(gate, talk)))
        words = text("some words more", size=random.choice((3, 5, 20)))
        if random.random() < 0.2:
            return answer(words, hold(gate), tool_call("list_files", {"directory": "."}))
        return answer(words, hold(gate), text("the end"))

    async def _near_the_end(self, gate: str, talk: Talk) -> None:
        """The last piece of an answer goes out, and about then the user says something."""
        await self.model.reached(gate)
        steps = [lambda: self.model.release(gate), talk.interrupt_what_runs]
        for step in self._random.sample(steps, k=2):
            for _ in range(self._random.randrange(6)):
                await asyncio.sleep(0)
            step()


ENVIRONMENT = {"KODE_WINDOW_MESSAGES": "10000"}


async def talk_all_at_once(world: World, talks: Talks, rng: Random) -> None:
    """All sessions at a time, to the end; no word of any was lost."""
    world.client.subscribe(talks.received)
    for _ in range(SESSIONS):
        session = await world.session()
        talks.by_session[session.session_id] = Talk(world, session, Random(rng.random()))
    for talk in talks.every:
        talk.start()
    async with asyncio.timeout(HANG_SECONDS):
        for talk in talks.every:
            await talk.done.wait()
    for talk in talks.every:
        await assert_nothing_lost(world, talk)


async def test_no_word_is_lost_around_the_end_of_a_turn(tmp_path: Path, rng: Random) -> None:
    talks = Talks(rng)
    async with sidecar(model=talks.model, roots=[tmp_path], environment=ENVIRONMENT) as world:
        await talk_all_at_once(world, talks, rng)
        steers = [call.answer for talk in talks.every for _, _, call in talk.steers]
        taken = sum(answered.exception() is None for answered in steers)
        assert 0 < taken < len(steers)
        assert breaches(world.client.frames) == []
        assert all(refusals(chat.body) == [] for chat in world.model.chats)


# E6: what meets while a turn ends meets again
async def test_it_plays_as_it_was_recorded(tmp_path: Path, rng: Random) -> None:
    talks = Talks(rng)
    tape = tmp_path / "tape.jsonl"
    command = [*PROGRAM, "serve", "--record", str(tape)]
    async with sidecar(model=talks.model, environment=ENVIRONMENT, command=command) as world:
        await talk_all_at_once(world, talks, rng)
    for _ in range(PLAYED):
        replayed = await play(tape, read_recording(tape), PROGRAM, HANG_SECONDS)
        assert replayed.difference is None, f"\n{replayed.difference}"


async def assert_nothing_lost(world: World, talk: Talk) -> None:
    """Each word was taken and reached the model in its turn, or it was refused as too late."""
    session = talk.session
    turns = [(await call.answer)["turnId"] for call in talk.starts]  # each start was accepted
    assert turns == list(session.turns)
    ends = {turn.id: turn.stop_reason for turn in session.turns.values()}
    cancelled = [(await call.answer)["cancelled"] for call in talk.cancels]
    assert list(ends.values()).count("cancelled") <= cancelled.count(True)
    await world.turn(session, "the last")
    added = [event for event in world.events() if event["type"] == "message.added"]
    turn_of = {event["messageId"]: event["turnId"] for event in added}
    said = {message.text: turn_of[message.id] for message in session.messages.values()}
    reported = user_texts(world.asked())
    for words, turn_id, call in talk.steers:
        await asyncio.wait([call.answer])
        refused = call.answer.exception()
        if refused is not None:
            assert isinstance(refused, RpcError)
            assert refused.code in (-33004, -33005)
            assert words not in reported
            continue
        assert reported.count(words) == 1
        assert said[words] == turn_id
        asked = [user_texts(c.body) for c in world.model.chats if words in user_texts(c.body)]
        in_its_turn = f"turn {turns.index(turn_id) + 1}" not in asked[0]
        assert in_its_turn or ends[turn_id] == "cancelled"
    assert session.anomalies == []


@pytest.mark.skipif(BUILT is not None, reason="a built program takes no faults")
async def test_a_full_disk_never_hides_the_end_of_a_turn(tmp_path: Path) -> None:  # O2
    # The user's word was taken, then the turn is cancelled and the word cannot be kept.
    disk_is_full = tmp_path / "full"
    environment = with_faults(KODE_TEST_FULL_DISK=str(disk_is_full))
    responses = [answer(text("one "), hold("gate")), answer(text("two"))]
    async with sidecar(responses, roots=[tmp_path], environment=environment) as world:
        session = await world.session()
        turn_id = await world.start(session, "go")
        where = {"sessionId": session.session_id, "turnId": turn_id}
        said = [{"type": "text", "text": "more"}]
        async with asyncio.timeout(HANG_SECONDS):
            await world.model.reached("gate")
        await world.client.request("kode/turn/steer", {**where, "input": said}, HANG_SECONDS)
        disk_is_full.touch()
        await world.client.request("kode/turn/cancel", where, HANG_SECONDS)
        turn = await world.watch.turn_end(session.session_id, turn_id, HANG_SECONDS)
        assert turn.stop_reason in ("cancelled", "error")
        assert "NotSaved" in [notice["code"] for notice in session.notices]
        disk_is_full.unlink()
        assert (await world.turn(session, "go on")).stop_reason == "end_turn"
        assert refusals(world.asked()) == []
        assert session.anomalies == []


@pytest.mark.skipif(BUILT is not None, reason="a built program takes no faults")
@pytest.mark.parametrize("refused", ["", "What became of edits"])
async def test_what_the_model_must_hear_outlives_a_full_disk(
    tmp_path: Path, refused: str
) -> None:  # B6
    (tmp_path / "app.py").write_text("one\n")
    disk_is_full = tmp_path / "full"
    environment = with_faults(KODE_TEST_FULL_DISK=str(disk_is_full))
    edit = {"path": "app.py", "edits": [{"old": "one", "new": "two"}]}
    responses = [answer(tool_call("propose_edit", edit)), answer(text("a")), answer(text("b"))]
    async with sidecar(responses, roots=[tmp_path], environment=environment) as world:
        session = await world.session()
        await world.turn(session, "go")
        await world.decide(only_change_set(session), rest="reject", seenSeq=1_000_000)
        disk_is_full.write_text(refused)
        with pytest.raises(RpcError) as caught:
            await world.start(session, "on", mode="plan")  # of which the model hears, too
        assert caught.value.code == -33023
        disk_is_full.unlink()
        assert (await world.turn(session, "go on")).stop_reason == "end_turn"
        assert sum("What became of edits" in one for one in user_texts(world.asked())) == 1
