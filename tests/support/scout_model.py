"""A model behind a main agent and its scouts: who asks is told by the tools on offer."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kode_sidecar.devtools.demo.model_server import RecordedResponse, failure
from tests.support.answering_model import AnsweringModel, user_texts
from tests.support.model_script import DemoCall, tool_call

Script = Sequence[RecordedResponse] | Callable[[int], RecordedResponse]
"""The answers of one scout in order, or what makes the n-th one."""


def scout_model(
    main: Sequence[RecordedResponse],
    scouts: Mapping[str, Script],
    models: tuple[str, ...] = ("kimi-k2.6",),
) -> AnsweringModel:
    """`main` are the answers to the main agent in order, `scouts` those to each scout by title."""
    left = list(main)

    def respond(body: dict[str, Any]) -> RecordedResponse:
        if not is_scout(body):
            return left.pop(0)
        script = scouts[scout_title(body)]
        number = sum(message["role"] == "assistant" for message in body["messages"])
        if callable(script):
            return script(number)
        if number < len(script):
            return script[number]
        return failure(400, "recording_exhausted", f"{scout_title(body)} asked too often")

    return AnsweringModel(respond, models)


def is_scout(body: dict[str, Any]) -> bool:
    return "report_findings" in tool_names(body)


def scout_title(body: dict[str, Any]) -> str:
    return user_texts(body)[0].splitlines()[0].removeprefix("# ")


def tool_names(body: dict[str, Any]) -> list[str]:
    return [tool["function"]["name"] for tool in body.get("tools", ())]


def explore(*titles: str, call_id: str | None = None) -> DemoCall:
    """A call with a task for each title."""
    tasks = [{"title": title, "question": f"Where is {title}?"} for title in titles]
    return tool_call("explore", {"tasks": tasks}, call_id=call_id)


def read(path: str = "app.py", call_id: str | None = None) -> DemoCall:
    return tool_call("read_file", {"path": path}, call_id=call_id)


def report(summary: str, *findings: tuple[str, int, int, str]) -> DemoCall:
    """A call of `report_findings`; findings are path, first and last line, quote."""
    listed = [
        {"claim": "so it is", "path": path, "startLine": start, "endLine": end, "quote": quote}
        for path, start, end, quote in findings
    ]
    arguments = {"summary": summary, "findings": listed, "open_questions": ["why?"]}
    return tool_call("report_findings", arguments)
