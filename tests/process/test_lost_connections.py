"""Random turns in which the client forgets what it knew, or the process dies."""

import copy
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest

from kode_sidecar.devtools.demo.model_server import RecordedResponse
from kode_sidecar.infrastructure.records.message_storage import name_in
from kode_sidecar.infrastructure.records.messages import StorageName
from tests.conftest import FULL, Played
from tests.process.test_sessions import ask
from tests.support.answering_model import AnsweringModel
from tests.support.folds import final_state
from tests.support.kept_messages import read_messages
from tests.support.model_script import answer, text, thinking, tool_call
from tests.support.session_fold import SessionFold
from tests.support.sidecar import HANG_SECONDS, World, read_jsonl, sidecar

PARTS = range(8 if FULL else 1)  # of 2,000 turns: each begins anew, by chance of its own
ROUNDS = 250 if FULL else 20
ROUNDS_IN_A_SESSION = 25
PAIR_PARTS = range(4 if FULL else 1)  # of 20 pairs of processes
PAIRS = 5 if FULL else 2
SESSIONS = 10 if FULL else 3  # of each process


class Talk:
    """What the model says: something random after each prompt, `app.py` edited now and then."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._count = 0

    def __call__(self, body: dict[str, Any]) -> RecordedResponse:
        self._count += 1
        rng = self._rng
        words = text("".join(rng.choices("abc 茶🍵\n", k=rng.randint(1, 60))) + "x")
        if body["messages"][-1]["role"] == "tool" or rng.random() < 0.4:
            return answer(*([thinking("hm")] * rng.randint(0, 1)), words)
        edit = {"old": "# end", "new": f"# {self._count}\n# end"}
        calls = [
            tool_call("read_file", {"path": "app.py"}, call_id="r:0"),
            tool_call("propose_edit", {"path": "app.py", "edits": [edit]}, call_id="e:1"),
        ]
        return answer(words, *rng.sample(calls, rng.randint(1, 2)))


@asynccontextmanager
async def process(model: AnsweringModel, project: Path) -> AsyncIterator[World]:
    """A sidecar that talks to a model which outlives it."""
    environment = {"KIMI_BASE_URL": model.base_url}
    async with sidecar(roots=[project], environment=environment) as world:
        world.editor.open(project / "app.py")
        yield world


async def lose_and_find(world: World, fold: SessionFold, old: SessionFold, rng: Random) -> None:
    """The client forgets, or goes back to what it knew before the turn."""
    after = copy.deepcopy(old) if rng.random() < 0.5 else None
    await world.watch.attach(fold.session_id, after, within=HANG_SECONDS)


async def one_round(world: World, session_id: str, number: int, rng: Random) -> bool:
    """A turn with a loss in the middle; whether the process died of it."""
    fold = world.watch.session(session_id)
    old = copy.deepcopy(fold)
    turn_id = await world.start(fold, f"prompt {number}")
    goal = fold.seq + rng.randint(0, 40)
    await world.watch.until(
        lambda: fold.seq >= goal or (turn_id in fold.turns and fold.active_turn is None),
        HANG_SECONDS,
    )
    if rng.random() < 0.12:
        await world.kill()
        return True
    await lose_and_find(world, fold, old, rng)
    fold = world.watch.session(session_id)
    await world.watch.until(lambda: fold.active_turn is None, HANG_SECONDS)
    waiting = [one for one in fold.change_sets.values() if one.state != "decided"]
    if waiting and rng.random() < 0.5:
        rest = rng.choice(["accept", "reject"])
        await world.decide(waiting[-1], rest=rest, seenSeq=fold.seq)
    return False


async def check(world: World, session_id: str, prompts: int) -> None:
    """The client's fold is the server's state, and both are what is on disk."""
    fold = world.watch.session(session_id)
    mine = final_state(fold)
    assert mine == final_state(await world.watch.attach(session_id, within=HANG_SECONDS))
    folder = world.home / "conversations" / session_id
    assert name_in(folder) == os.environ["KODE_STORAGE"]
    messages = read_messages(folder)
    assert [one["id"] for one in messages] == [one[0] for one in mine["messages"]]
    said = [one["content"][0]["text"] for one in messages if one["role"] == "user"]
    wanted = [f"prompt {number}" for number in range(prompts)]
    assert [one for one in said if one.startswith("prompt ")] == wanted
    numbers = [event["seq"] for event in read_jsonl(folder / "journal.jsonl")]
    assert numbers == list(range(1, len(numbers) + 1))


@pytest.mark.parametrize("part", PARTS)
async def test_the_clients_fold_is_the_servers_state(  # A6
    tmp_path: Path, rng: Random, a_storage: StorageName, part: int, played: Played
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    done = in_session = 0
    session_id, fold = "", None
    async with AnsweringModel(Talk(rng)) as model:
        while done < ROUNDS:
            (project / "app.py").write_text("print('hi')\n# end\n")
            async with process(model, project) as world:
                if session_id:
                    kept = fold if rng.random() < 0.5 else None
                    await world.watch.attach(session_id, kept, within=HANG_SECONDS)
                    await check(world, session_id, in_session)
                died = False
                while done < ROUNDS and not died:
                    if not session_id or in_session == ROUNDS_IN_A_SESSION:
                        session_id, in_session = (await world.session()).session_id, 0
                    died = await one_round(world, session_id, in_session, rng)
                    done, in_session = done + 1, in_session + 1
                    if not died:
                        await check(world, session_id, in_session)
                fold = world.watch.session(session_id)
    assert done == ROUNDS
    played(done, f"turns with lost connections, {a_storage}")


@pytest.mark.parametrize("part", PAIR_PARTS)
async def test_two_processes_on_one_store(  # A6 W8
    tmp_path: Path, rng: Random, a_storage: StorageName, part: int, played: Played
) -> None:
    """Several sessions each, kills between turns and in them; sessions change hands by the lock."""
    project = tmp_path / "project"
    project.mkdir()
    (project / "app.py").write_text("print('hi')\n# end\n")
    prompts: dict[str, int] = {}
    async with AnsweringModel(Talk(rng)) as model:
        async with process(model, project) as maker:
            for _ in range(2 * SESSIONS):
                prompts[(await maker.session()).session_id] = 0
        for _ in range(PAIRS):
            ids = rng.sample(sorted(prompts), 2 * SESSIONS)
            firsts, seconds = ids[:SESSIONS], ids[SESSIONS:]
            async with process(model, project) as first, process(model, project) as second:
                for world, mine in ((first, firsts), (second, seconds)):
                    for session_id in mine:
                        await world.watch.attach(session_id, within=HANG_SECONDS)
                for session_id in rng.sample(ids, 2 * SESSIONS):
                    world = first if session_id in firsts else second
                    await world.start(
                        world.watch.session(session_id), f"prompt {prompts[session_id]}"
                    )
                    prompts[session_id] += 1
                await first.kill()
                for session_id in firsts:
                    await second.watch.attach(session_id, within=HANG_SECONDS)  # never refused
                for session_id in ids:
                    fold = second.watch.session(session_id)
                    await second.watch.until(lambda f=fold: f.active_turn is None, HANG_SECONDS)
                    await check(second, session_id, prompts[session_id])
                listed = await ask(second, "session/list", all=True)
                assert {one["sessionId"] for one in listed["sessions"]} == set(prompts)
    played(PAIRS, f"pairs of processes with {SESSIONS} sessions each, {a_storage}")
