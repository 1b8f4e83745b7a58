"""`grade --acp`: the rules of the Agent Client Protocol by id, and what judges by them."""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, update_wrapper
from pathlib import Path
from typing import Any

from kode_sidecar.core.text.shown_text import visible
from kode_sidecar.devtools.grading import acp_agent_rules as agent
from kode_sidecar.devtools.grading import acp_client_rules as client
from kode_sidecar.devtools.grading import acp_side_rules as both
from kode_sidecar.devtools.grading.acp_recording import AGENT, CLIENT, AcpRecorder, pass_on
from kode_sidecar.devtools.grading.acp_scripted_agent import serve_scripted
from kode_sidecar.devtools.grading.acp_scripted_client import drive
from kode_sidecar.devtools.grading.acp_talk import AcpSchema, AcpTalk, read_acp_talk
from kode_sidecar.devtools.grading.report import GradedRecording, GradeOptions, grade
from kode_sidecar.devtools.grading.rules import GradingRule, verdicts
from kode_sidecar.errors import KodeError

AcpRules = Mapping[str, GradingRule[AcpTalk]]


def _of_both(side: str) -> AcpRules:
    is_client = side == CLIENT

    def rule(check: Callable[..., Any], concerns: Callable[[AcpTalk], bool]) -> Any:
        return GradingRule(update_wrapper(partial(check, client=is_client), check), concerns)

    def says(talk: AcpTalk) -> bool:
        return any(True for _ in talk.said(client=is_client))

    unknown = partial(both.asks_unknown, client=is_client)
    return {
        f"{side}/lines-pure": rule(both.lines_pure, says),
        f"{side}/shapes-right": rule(both.shapes_right, says),
        f"{side}/answered-once": rule(both.answered_once, says),
        f"{side}/unknown-refused": rule(both.unknown_refused, unknown),
        f"{side}/announced-served": rule(both.announced_served, says),
        f"{side}/only-announced": rule(both.only_announced, says),
        f"{side}/paths-absolute": rule(both.paths_absolute, says),
        f"{side}/known-sessions": rule(both.known_sessions, says),
    }


def _asks(*methods: str) -> Callable[[AcpTalk], bool]:
    """Return whether a talk has one of these requests, of either side."""
    return lambda talk: any(one.request.method in methods for one in (*talk.asked, *talk.questions))


def _uses_tools(talk: AcpTalk) -> bool:
    return any("toolCallId" in update for _, _, update in talk.updates())


_PROMPTS = _asks("session/prompt")
ACP_RULES: AcpRules = {
    **_of_both(AGENT),
    "agent/version-answered": GradingRule(agent.version_answered),
    "agent/wrong-refused": GradingRule(agent.wrong_refused, _asks("session/new")),
    "agent/tools-in-order": GradingRule(agent.tools_in_order, _uses_tools),
    "agent/tools-ended": GradingRule(agent.tools_ended, _uses_tools),
    "agent/speech-in-turn": GradingRule(agent.speech_in_turn, _PROMPTS),
    "agent/cancel-honoured": GradingRule(agent.cancel_honoured, _PROMPTS),
    "agent/offers-whole": GradingRule(agent.offers_whole, _asks("session/new")),
    "agent/history-replayed": GradingRule(
        agent.history_replayed, _asks("session/load", "session/resume")
    ),
    "agent/lists-true": GradingRule(agent.lists_true, _asks("session/list")),
    "agent/terminals-released": GradingRule(agent.terminals_released, _asks("terminal/create")),
    **_of_both(CLIENT),
    "client/initialize-first": GradingRule(client.initialize_first),
    "client/permission-chosen": GradingRule(
        client.permission_chosen, _asks("session/request_permission")
    ),
    "client/offers-used": GradingRule(client.offers_used),
    "client/files-right": GradingRule(client.files_right, _asks("fs/read_text_file")),
    "client/terminals-reported": GradingRule(client.terminals_reported, _asks("terminal/create")),
    "client/forms-filled": GradingRule(client.forms_filled, _asks("elicitation/create")),
}
"""All rules by side and id. The first sentence of a check's docstring says what is right."""


@dataclass(frozen=True)
class AcpGradeOptions:
    """Whom to judge, and where to record a conversation first.

    `record`: be the agent `words`, or the scripted one, for the client that started us. `drive`:
    let the scripted client talk with the agent `words`. Without both `words` are recordings.
    """

    words: Sequence[str]
    sides: Sequence[str] = ()
    record: Path | None = None
    drive: Path | None = None


def grade_acp(schema: bytes, acp: AcpGradeOptions, options: GradeOptions) -> int:
    """Record, judge, or both; return the exit code. Raises KodeError `ConfigInvalid`."""
    try:
        if acp.record is not None:
            recorder = AcpRecorder(acp.record)
            return pass_on(acp.words, recorder) if acp.words else serve_scripted(recorder)
        if acp.drive is None:
            return _grade(schema, acp.sides or (AGENT, CLIENT), list(map(Path, acp.words)), options)
        missing = drive(acp.words, AcpRecorder(acp.drive))
        if missing:
            sys.stderr.write(f"kode-sidecar grade: {visible(missing)}\n")
        return _grade(schema, (AGENT,), [acp.drive], options)
    except OSError as error:
        name = error.filename or (acp.words or [""])[0]
        text = f"Cannot use {name}: {error.strerror}."
        raise KodeError("ConfigInvalid", text) from None


def _grade(
    schema: bytes, sides: Sequence[str], files: Sequence[Path], options: GradeOptions
) -> int:
    rules = {name: rule for name, rule in ACP_RULES.items() if name.partition("/")[0] in sides}
    published = AcpSchema(schema)

    def judge(file: Path) -> GradedRecording:
        talk = read_acp_talk(file, published)
        frames = {number: one.line for number, one in enumerate(talk.lines, 1)}
        return GradedRecording(file, rules, verdicts(talk, rules), frames)

    return grade(files, options, rules, judge)
