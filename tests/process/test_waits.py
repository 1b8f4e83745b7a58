"""Each wait has a word of its own on the wire, and none says that a model thinks. W9"""

from pathlib import Path

from tests.process.test_provider_faults import faulty, waits
from tests.process.test_summaries import FULL, SMALL, bodies, is_question, read, summary
from tests.support.model_script import answer, text
from tests.support.raw_http import refusal, says
from tests.support.sidecar import HANG_SECONDS, sidecar

ONE_A_MINUTE = refusal(
    429, "rate_limit_reached_error", "request reached max RPM: 1", "retry-after-ms: 1"
)


async def test_our_own_rate_limiter_says_that_nothing_is_sent_yet(tmp_path: Path) -> None:
    async with faulty(tmp_path) as (server, world, session):
        server.answers[:] = [ONE_A_MINUTE, says("Hi")]
        before = len(server.requests)
        turn_id = await world.start(session, "go")
        await world.watch.until(lambda: len(waits(world, turn_id)) >= 2, HANG_SECONDS)
        params = {"sessionId": session.session_id}
        await world.client.request("kode/turn/cancel", params, HANG_SECONDS)
        await world.watch.turn_end(session.session_id, turn_id, HANG_SECONDS)
        assert [one["state"] for one in waits(world, turn_id)] == ["retrying", "limited"]
        limited = waits(world, turn_id)[1]
        assert limited["message"].startswith("Waiting ")
        assert limited["message"].endswith(" allows 1 requests a minute.")
        assert 1_000 <= limited["retryInMs"] <= 60_000
        assert len(server.requests) == before + 1, "nothing was sent while it waited"


async def test_a_full_context_that_is_summed_up_is_a_wait_of_its_own(tmp_path: Path) -> None:
    for n in range(2):
        (tmp_path / f"f{n}.txt").write_text(f"{n} words\n" * 700)
    script = [read(0), read(1), answer(text("read"), usage=FULL), summary(1), answer(text("done"))]
    async with sidecar(script, roots=[tmp_path], environment=SMALL) as world:
        session = await world.session(agent="coder", model="kimi-k2.6")
        await world.turn(session, "read")
        await world.turn(session, "go on")
        assert any(map(is_question, bodies(world)))
        reported = [one for one in world.events() if one["type"] == "model.waiting"]
        assert [one["state"] for one in reported][:1] == ["compacting"]
