"""A model behind a review: its main agent, the readers that report, and those that refute."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kode_sidecar.devtools.demo.model_server import RecordedResponse
from tests.support.answering_model import AnsweringModel, Respond, user_texts
from tests.support.git import git
from tests.support.model_script import answer, failure, text, tool_call
from tests.support.scout_model import is_scout, tool_names
from tests.support.session_fold import SessionFold
from tests.support.sidecar import HANG_SECONDS, World

BEFORE = "def total(items):\n    return sum(items)\n"
AFTER = (
    "def total(items):\n    result = 0\n    for i in range(len(items) - 1):\n"
    "        result += items[i]\n    return result\n"
)
FAULT = {
    "severity": "error",
    "category": "off-by-one",
    "title": "The last item is not counted",
    "explanation": "total([1]) is 0.",
    "path": "app.py",
    "startLine": 3,
    "endLine": 3,
    "quote": "for i in range(len(items) - 1):",
}
INFO = {
    **FAULT,
    **{"severity": "info", "title": "No type", "quote": "return result"},
    **{"startLine": 5, "endLine": 5},
}
OLD, NEW = "for i in range(len(items) - 1):", "for i in range(len(items)):"
Reports = Callable[[str], list[dict[str, Any]] | str | RecordedResponse | None]


def reviewing_model(
    main: list[RecordedResponse] | None, reports: Reports, *refuted: Any, **more: Any
) -> AnsweringModel:
    """The model of `reviewing`."""
    return AnsweringModel(reviewing(main, reports, *refuted, **more))


def reviewing(
    main: list[RecordedResponse] | None,
    reports: Reports,
    refuted: tuple[str, ...] = (),
    wanted: dict[str, Any] | None = None,
) -> Respond:
    """Readers report what `reports` returns for their prompt; titles in `refuted` are refuted.

    Without `main` the agent calls the tool with what the prompt says exactly, or with `wanted`.
    """

    def respond(body: dict[str, Any]) -> RecordedResponse:
        if not is_scout(body):
            return _obeying(body, wanted) if main is None else main.pop(0)
        asked = user_texts(body)[0]
        number = sum(message["role"] == "assistant" for message in body["messages"])
        if number == 0:
            looks = [tool_call("read_file", {"path": "app.py"})]
            if "changes" in tool_names(body):
                (line,) = (one for one in asked.splitlines() if "Call `changes`" in one)
                looks.append(
                    tool_call("changes", json.loads(line[line.index("{") :].split(" to ")[0]))
                )
            return answer(*looks)
        if number > 1:
            return failure(400, "recording_exhausted", "asked too often")
        if "changes" not in tool_names(body):
            found = [json.loads(line) for line in asked.splitlines() if line.startswith("{")]
            verdicts = [
                {"id": one["id"], "holds": one["title"] not in refuted, "reason": "I looked."}
                for one in found
            ]
            return answer(
                tool_call("report_findings", {"summary": "Looked.", "verdicts": verdicts})
            )
        listed = reports(asked)
        if listed is None:
            return failure(400, "bad_request", "no answer")
        if isinstance(listed, RecordedResponse):
            return listed
        if isinstance(listed, str):
            return answer(text(listed))
        return answer(tool_call("report_findings", {"summary": "Read.", "findings": listed}))

    return respond


def _obeying(body: dict[str, Any], wanted: dict[str, Any] | None) -> RecordedResponse:
    if body["messages"][-1]["role"] == "tool":
        return answer(text("Reviewed."))
    asked = user_texts(body)[-1]
    exactly = json.loads(asked[asked.index("{") : asked.rindex("}") + 1])
    return answer(tool_call("review_changes", exactly if wanted is None else wanted))


def changed_project(folder: Path) -> Path:
    """A repository in which `app.py` has been changed since the last commit."""
    folder.mkdir(exist_ok=True)
    git(folder, "init", "-q", "-b", "main")
    git(folder, "config", "user.email", "a@example.org")
    git(folder, "config", "user.name", "A")
    (folder / "app.py").write_bytes(BEFORE.encode())
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "first")
    (folder / "app.py").write_bytes(AFTER.encode())
    return folder


def reviews(**params: object) -> list[RecordedResponse]:
    return [answer(tool_call("review_changes", params)), answer(text("Reviewed."))]


async def review(world: World, session: SessionFold) -> str:
    """What the main model gets to see of the review."""
    turn_id = await world.start(session, "Review my changes.")
    end = await world.watch.turn_end(session.session_id, turn_id, HANG_SECONDS)
    assert end.stop_reason == "end_turn"
    tool = [message for message in world.messages(session) if message["role"] == "tool"][-1]
    return tool["content"][0]["content"][0]["text"]
