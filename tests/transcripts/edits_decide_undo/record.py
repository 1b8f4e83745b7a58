"""Two hunks: one is accepted, one rejected with a comment; then the accepted one is undone."""

from tests.support.model_script import answer, text, tool_call
from tests.support.sidecar import HANG_SECONDS, only_change_set
from tests.support.transcripts import Stage

FILES = {"greetings.py": "# 茶铺 🍵\n\n\ndef greet(name):\n    return 'hello ' + name\n"}
UNSAVED = FILES["greetings.py"] + "\n\ndef leave(name):\n    return 'bye ' + name\n"
EDITS = [
    {"old": "    return 'hello ' + name", "new": '    return f"你好 {name} 👋"'},
    {"old": "    return 'bye ' + name", "new": '    return f"再见 {name}"'},
]
RESPONSES = (
    answer(tool_call("read_file", {"path": "greetings.py"})),
    answer(tool_call("propose_edit", {"path": "greetings.py", "edits": EDITS})),
    answer(text("Two hunks.")),
    answer(text("I see: only one of them.")),
)


async def play(stage: Stage) -> None:
    world = stage.world
    world.editor.open(stage.project / "greetings.py", UNSAVED, language_id="python")
    session = await world.session(model="kimi-k2.6")
    await world.turn(session, "Use f-strings.")
    change_set = only_change_set(session)
    first, second = change_set.hunks("proposed")
    decisions = [
        {"hunkId": first.id, "action": "accept"},
        {"hunkId": second.id, "action": "reject", "comment": "leave() stays"},
    ]
    await world.decide(change_set, decisions=decisions, seenSeq=session.seq)
    await world.turn(session, "And now?")
    undo = {"changeSetId": change_set.id}
    await world.client.request("kode/changeSet/undo", undo, HANG_SECONDS)
    assert "hello" in world.editor.buffers[0].text
