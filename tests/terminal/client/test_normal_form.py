"""Two runs of one turn look alike in normal form."""

import json
from typing import Any

from tests.support.normal_form import normal_form

Json = dict[str, Any]


def a_run(
    prefix: str, *, root: str, finished_first: str, deltas: list[str]
) -> list[tuple[str, Any]]:
    """One turn with two side-by-side reads; ids, times, cuts and completion order differ."""
    ids = iter(f"{prefix}{number}" for number in range(1, 99))
    session, turn, answer, results = next(ids), next(ids), next(ids), next(ids)
    text = next(ids)
    blocks = {"read_file:0": next(ids), "read_file:1": next(ids)}
    out: list[tuple[str, Any]] = []
    seq = 0

    def emit(kind: str, **fields: Any) -> None:
        nonlocal seq
        seq += 1
        stamped = {"seq": seq, "ts": f"2026-01-01T00:00:{seq:02}Z", "type": kind, "turnId": turn}
        out.append(("kode/event", {"sessionId": session, "events": [{**stamped, **fields}]}))

    def block(kind: str, message: str, block: Json) -> None:
        emit(f"block.{kind}", messageId=message, blockId=block["id"], block=block)

    emit("message.added", messageId=answer, role="assistant", createdAt=f"{prefix}-now")
    block("started", answer, {"type": "text", "id": text, "text": ""})
    at = 0
    for add in deltas:
        delta = {"blockId": text, "at": at, "add": add}
        out.append(("kode/delta", {"deltas": [delta, delta]}))
        at += len(add)
    block("completed", answer, {"type": "text", "id": text, "text": "".join(deltas)})
    for call in blocks:
        use = {"type": "tool_use", "id": next(ids), "toolUseId": call, "name": "read_file"}
        block("started", answer, use)
        block("completed", answer, use)
    emit("message.added", messageId=results, role="tool", parentId=answer)
    for call, block_id in blocks.items():
        block("started", results, {"type": "tool_result", "id": block_id, "toolUseId": call})
        progress = {"type": "tool.progress", "toolUseId": call, "message": prefix}
        out.append(("kode/event", {"sessionId": session, "events": [progress]}))
    for call in sorted(blocks, key=lambda call: call != finished_first):
        said = {"type": "text", "text": f"{root}/{call} was read in {turn}."}
        result = {"type": "tool_result", "id": blocks[call], "toolUseId": call, "content": [said]}
        block("completed", results, result)
    emit("turn.completed", stopReason="end_turn", durationMs=len(prefix))
    out.append(("kode/event", {"sessionId": "another", "events": [{"seq": 1, "type": "notice"}]}))
    return out


def test_two_runs_are_equal() -> None:
    one = a_run(
        "b1a2-", root="file:///tmp/x", finished_first="read_file:0", deltas=["He", "llo 🍵"]
    )
    other = a_run("b9k", root="file:///home/y", finished_first="read_file:1", deltas=["Hello 🍵"])
    first = normal_form(one, "b1a2-1", {"file:///tmp/x": "{root}"})
    second = normal_form(other, "b9k1", {"file:///home/y": "{root}"})
    assert first == second
    text = json.dumps(first, ensure_ascii=False)
    assert '"streamed": "Hello 🍵"' in text
    assert "{root}/read_file:0 was read in turn-1." in text
    for dropped in ("seq", "ts", "createdAt", "durationMs", "b1a2", "tool.progress"):
        assert dropped not in text


def test_what_differs_stays_visible() -> None:
    one = a_run("a1", root="r", finished_first="read_file:0", deltas=["Hello"])
    other = a_run("a1", root="r", finished_first="read_file:0", deltas=["Hallo"])
    assert normal_form(one, "a11") != normal_form(other, "a11")


def test_a_lost_delta_is_not_taken_for_the_text() -> None:
    run = a_run("a1", root="r", finished_first="read_file:0", deltas=["Hel", "lo"])
    run = [
        (method, params)
        for method, params in run
        if method != "kode/delta" or params["deltas"][0]["at"]
    ]
    ends = [event for event in normal_form(run, "a11") if "streamed" in event]
    assert [event["streamed"] for event in ends] == [None]
