"""How models behave in the benchmark: what a reader says of a case, and a second reader of that."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

from benchmarks.review.cases import Case
from kode_sidecar.devtools.demo.answers import answer, text, tool_call
from kode_sidecar.devtools.demo.model_server import RecordedResponse, failure

Behaviour = Literal[
    "well", "miscounted", "invented", "duplicates", "refutable", "flood", "prose", "silent"
]
BEHAVIOURS: tuple[Behaviour, ...] = get_args(Behaviour)
SAY_NOTHING = ("prose", "silent")
_WRONG = "Invented"


class ReviewModel:
    """`answers(body)` plays the main agent, the readers and the second readers of `cases`."""

    def __init__(self, cases: Mapping[str, Case]) -> None:
        self._cases = cases

    def answers(self, body: Mapping[str, Any]) -> RecordedResponse:
        """Answer one request."""
        tools = {tool["function"]["name"] for tool in body.get("tools", ())}
        said = [one["content"] for one in body["messages"] if one["role"] == "user"]
        calls = sum(one["role"] == "assistant" for one in body["messages"])
        if "report_findings" not in tools:
            return self._main(said[-1], calls=body["messages"][-1]["role"] == "tool")
        if "changes" in tools:
            return self._reader(said[0], calls)
        return self._second_reader(said[0], calls)

    def _main(self, asked: str, *, calls: bool) -> RecordedResponse:
        if calls:
            return answer(text("Reviewed."))
        folder, behaviour = asked.split()
        return answer(tool_call("review_changes", {"paths": [folder], "focus": behaviour}))

    def _reader(self, asked: str, calls: int) -> RecordedResponse:
        folder, case = next(
            (folder, case) for folder, case in self._cases.items() if f'"{folder}/' in asked
        )
        path = f"{folder}/{case.file}"
        if calls == 0:
            return answer(tool_call("changes", {"paths": [path]}), _read(path))
        behaviour: Behaviour = next(one for one in BEHAVIOURS if f"user: {one}" in asked)
        if behaviour == "prose":
            return answer(text(f"In {path} line 3 is wrong: {case.fault or 'all of it'}"))
        if behaviour == "silent":
            return failure(400, "bad_request", "no answer")
        return _report(findings=findings(behaviour, path, case))

    def _second_reader(self, asked: str, calls: int) -> RecordedResponse:
        found = [json.loads(line) for line in asked.splitlines() if line.startswith("{")]
        if calls == 0:
            return answer(_read(found[0]["place"].rpartition(":")[0]))
        verdicts = [
            {"id": one["id"], "holds": not one["title"].startswith(_WRONG), "reason": "I read it."}
            for one in found
        ]
        return _report(verdicts=verdicts)


def findings(behaviour: Behaviour, path: str, case: Case) -> Sequence[dict[str, Any]]:
    """What a reader reports."""
    true = [_finding(path, case, line_of(case))] if case.fault else []
    first_line = case.text(changed=True).split("\n")[0]
    match behaviour:
        case "miscounted":
            return [{**one, "startLine": one["startLine"] + 2, "endLine": 40} for one in true]
        case "invented":
            wrong = {"quote": "for nobody in nothing():", "title": f"{_WRONG} line"}
            elsewhere = {"path": "case_99/none.py", "title": f"{_WRONG} file"}
            outside = {"path": "../../etc/passwd", "title": f"{_WRONG} place"}
            return [*(_made_up(path) | one for one in (wrong, elsewhere, outside)), *true]
        case "duplicates":
            numbered = [{**one, "quote": f"{one['startLine']}\t{one['quote']}"} for one in true]
            return [*true, *true, *numbered, *({**one, "severity": "info"} for one in true)]
        case "refutable":
            return [_made_up(path) | {"quote": first_line, "title": f"{_WRONG} claim"}, *true]
        case "flood":
            made_up = [
                _made_up(path) | {"quote": f"value_{n} = {n}", "title": f"{_WRONG} {n}"}
                for n in range(400)
            ]
            return [*made_up, *(true * 100)]
        case _:
            return true


def line_of(case: Case) -> int:
    """The number of the wrong line, from 1."""
    lines = case.text(changed=True).split("\n")
    return 1 + next(at for at, line in enumerate(lines) if case.fault in line)


def _finding(path: str, case: Case, line: int) -> dict[str, Any]:
    return {
        "severity": "error",
        "category": case.kind,
        "title": f"This is the {case.kind} of the change",
        "explanation": "It was right before.",
        "path": path,
        "startLine": line,
        "endLine": line,
        "quote": case.fault,
    }


def _made_up(path: str) -> dict[str, Any]:
    return {
        "severity": "error",
        "category": "made-up",
        "explanation": "It only seems so.",
        "path": path,
        "startLine": 1,
        "endLine": 1,
        "quote": "total",
    }


def _read(path: str) -> Any:
    return tool_call("read_file", {"path": path})


def _report(**members: Any) -> RecordedResponse:
    return answer(tool_call("report_findings", {"summary": "I read it.", **members}))
