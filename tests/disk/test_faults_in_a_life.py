"""A disk fails, fills up, or loses its power at every operation of a session's whole life.

Edits are decided and taken back, a turn is steered, the head is moved, a session is renamed, forked
and deleted, under both stores. What was acknowledged is there afterwards; what was refused changed
nothing; what was under way is one or the other; the tree is whole, and the session goes on.
"""

import sys
from pathlib import Path
from random import Random

import msgspec
import pytest

from kode_sidecar.core.domain.message import Message
from kode_sidecar.infrastructure.records.messages import StorageName
from tests.conftest import FULL, Played
from tests.support.answering_model import AnsweringModel
from tests.support.disk_faults import DEADLY, KINDS, LASTING
from tests.support.life_story import BEFORE, FILE, NEW, STEER, respond
from tests.support.scripted_session import Json, Runner, check_files, facts, text_of
from tests.support.turn_world import assert_valid_history

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs fork and /proc")

EVERY_KIND = (*KINDS, *LASTING)
SHARES = 4 if FULL else 1  # of all operations: none takes too long for one test
PARTS = [(kind,) for kind in EVERY_KIND] if FULL else [EVERY_KIND]


class Reported:
    """What a process told of each thing it tried, up to its end."""

    def __init__(self, played: Json) -> None:
        self.facts: list[Json] = played["told"]
        self._tried: Json | None = None
        for fact in self.facts:
            if "try" in fact:
                self._tried = fact
            elif "did" in fact or "refused" in fact:
                self._tried = None

    def done(self, name: str) -> list[Json]:
        return [fact for fact in self.facts if fact.get("did") == name]

    def under_way(self, name: str) -> list[str]:
        """The value of what was neither acknowledged nor refused."""
        tried = self._tried
        return [tried["value"]] if tried is not None and tried["try"] == name else []

    def may_be(self, name: str, first: str) -> set[str]:
        """What a thing with one value at a time may be now: as acknowledged, or as under way."""
        values = [first, *(fact["value"] for fact in self.done(name))]
        return {values[-1], *self.under_way(name)}

    @property
    def text(self) -> str:
        """What the editor shows."""
        return (facts({"told": self.facts}, "text") or [BEFORE])[-1]


def check_life(reported: Reported, found: Json) -> None:
    """Compare what was told with what a later process finds."""
    (listed,) = facts(found, "listed")
    created = reported.done("created")[0]["got"]
    assert created in listed
    assert listed[created] in reported.may_be("title", "hello") | (
        {""} if untitled(reported) else set()
    )
    others = {one["got"] for name in ("fork", "other") for one in reported.done(name)}
    if not (
        reported.under_way("fork") or reported.under_way("other") or reported.under_way("created")
    ):
        assert set(listed) <= {created, *others}, "a session that was refused is listed"
    others = {one["got"] for one in reported.done("fork")} - set(listed)
    assert not others, "an acknowledged fork is not listed"
    lengths = {fact["copy"]: fact["length"] for fact in found["told"] if "copy" in fact}
    for fork in reported.done("fork"):
        assert lengths[fork["got"]] == fork["value"]
    for one in reported.done("other"):
        gone = {fact["value"] for fact in reported.done("deleted")}
        if one["got"] in gone:
            assert one["got"] not in listed, "a deleted session is back"
        elif one["got"] not in reported.under_way("deleted"):
            assert one["got"] in listed, "an acknowledged session is not listed"
    check_refusals(reported)
    check_messages(reported, found)
    check_hunks(reported, found)
    if reported.facts and not reported.under_way("prompt") and (heads := known_heads(reported)):
        assert facts(found, "head_now")[0] in heads


def check_refusals(reported: Reported) -> None:
    """Whoever is refused hears that it is the disk; but a steer may come too late by itself."""
    for fact in reported.facts:
        if "refused" in fact and (fact["refused"], fact["code"]) != ("steer", "NoActiveTurn"):
            assert fact["code"] == "Storage", fact


def untitled(reported: Reported) -> bool:
    """Whether no prompt, and no title, was acknowledged: the first one gives the title."""
    return not reported.done("prompt") and not reported.done("title")


def known_heads(reported: Reported) -> set[str]:
    """Where the head may be; nothing where a turn did not come to its end."""
    heads: set[str] = set()
    for fact in reported.facts:
        if fact.get("reason") == "end_turn":
            heads = {fact["head"]}
        elif "ended" in fact or fact.get("refused") == "prompt" or fact.get("try") == "prompt":
            heads = set()
        elif fact.get("did") == "head":
            heads = {fact["value"]}
    return heads and heads | set(reported.under_way("head"))


def check_messages(reported: Reported, found: Json) -> None:
    messages = msgspec.convert(facts(found, "messages")[0], list[Message])
    ids = {one.id for one in messages}
    assert all(one.parent_id is None or one.parent_id in ids for one in messages), "no parent"
    said = [text_of(one) for one in messages if one.role == "user"]
    prompts = [fact["value"] for fact in reported.done("prompt")]
    assert [one for one in said if one in prompts] == prompts
    assert said.count(STEER) <= 1
    assert said.count(STEER) == 1 or not reported.done("steer"), "an acknowledged steer is gone"
    answers = [text_of(one) for one in messages if one.role == "assistant"]
    for fact in reported.facts:
        if fact.get("reason") == "end_turn":
            assert f"answer to {fact['ended']}" in answers
    assert_valid_history(messages)
    assert facts(found, "active") == [[]]


def check_hunks(reported: Reported, found: Json) -> None:
    """The state of each hunk is as acknowledged, or as the text shows."""
    (states,) = facts(found, "hunks")
    if not any(
        reported.done(name) or reported.under_way(name) for name in ("accept", "reject", "undo")
    ):
        return
    is_there = NEW in reported.text
    first = (
        "undone" if reported.done("undo") else "applied" if reported.done("accept") else "proposed"
    )
    may_be = {first}
    if reported.under_way("undo"):
        may_be.add("undone")
    elif first == "proposed" and is_there:
        may_be = {"applied"}  # carried out, and then refused or cut off
    assert states[0] in may_be, f"the first hunk is {states[0]}, not {may_be}"
    if first == "applied" and not reported.under_way("undo"):
        assert is_there, "an undo was refused, and the text is without the edit"
    if reported.done("reject"):
        assert states[1] == "rejected"


async def live_and_look(runner: Runner, at: int, kind: str) -> None:
    home = runner.home()
    played = await runner.play(home, life="live", at=at, kind=kind)
    reported = Reported(played)
    met = at <= (facts(played, "operations") or [at])[0]
    assert played["exit"] == (-9 if met and kind in DEADLY else 0), played
    if not reported.done("created"):
        return
    session_id = reported.done("created")[0]["got"]
    found = await runner.play(
        home, life="look", session=session_id, text=reported.text, prompts=["after"]
    )
    assert found["exit"] == 0, found
    try:
        check_life(reported, found)
        assert facts(found, "ended") == ["after"]
        check_files(home / "conversations" / session_id)
    except AssertionError as error:
        error.add_note(
            f"told: {reported.facts}\nfound: {[str(one)[:300] for one in found['told']]}"
        )
        raise


@pytest.mark.parametrize("share", range(SHARES))
@pytest.mark.parametrize("kinds", PARTS, ids="-".join)
async def test_a_fault_at_every_operation_of_a_life(
    tmp_path: Path,
    rng: Random,
    storage: StorageName,
    kinds: tuple[str, ...],
    share: int,
    played: Played,
) -> None:
    async with AnsweringModel(respond) as model, Runner(model.base_url, tmp_path) as runner:
        (tmp_path / "project" / FILE).write_text(BEFORE)
        sound = await runner.play(runner.home(), life="live")
        refused = {(one["refused"], one["code"]) for one in sound["told"] if "refused" in one}
        assert refused <= {("steer", "NoActiveTurn")}, sound
        (operations,) = facts(sound, "operations")
        assert operations > 100
        every = range(1 + share, operations + 1, SHARES)
        points = [(kind, at) for kind in kinds for at in (every if FULL else [rng.choice(every)])]
        failures: list[str] = []
        for kind, at in points:
            try:
                await live_and_look(runner, at, kind)
            except AssertionError as error:
                notes = "\n".join(getattr(error, "__notes__", ()))
                failures.append(f"{kind} at operation {at} of {operations}: {error}\n{notes}")
        assert "\n".join(failures) == ""
    played(len(points), f"faults at operations of a session's whole life, {storage}")
