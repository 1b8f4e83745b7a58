"""`/review fix 3` and the like: what the user says about a finding, by its number in the list."""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from kode_sidecar.core.domain.message import PromptBlock
from kode_sidecar.core.protocol.review import ReviewAskParams, UserState
from kode_sidecar.core.text.shown_text import without_controls
from kode_sidecar.servers.acp.tool_cards import finding_list

if TYPE_CHECKING:  # loaded with the agent
    from kode_sidecar.agent.sessions.session import Session
    from kode_sidecar.agent.verbs.calls import VerbCall

_CALL = re.compile(r"/review\s+(fix|explain|dismiss|done|open)\s+f?(\d+)(?:\s+(.+))?", re.DOTALL)
_STATES: Mapping[str, UserState] = {"dismiss": "dismissed", "done": "resolved", "open": "open"}
_PROMPTS = {"fix": "Fix this finding, and only it.", "explain": "Explain this finding."}


class FindingCommand(NamedTuple):
    """What to do with which finding; `more` is the reason, or what the user wants of it."""

    word: str
    finding_id: str
    more: str

    @property
    def decides(self) -> bool:
        """Whether it is the user's word on a finding, which needs no turn."""
        return self.word in _STATES


def parse_finding_command(text: str) -> FindingCommand | None:
    """Return what a prompt says about a finding; None for all others, also for a new review."""
    found = _CALL.fullmatch(text)
    return found and FindingCommand(found[1], f"f{found[2]}", found[3] or "")


async def decide_finding(session: "Session", command: FindingCommand) -> str:
    """Save the user's word on a finding; return what to show. Raises KodeError."""
    state = _STATES[command.word]
    async with session.stream.saving():
        session.findings.decide(command.finding_id, state, command.more)
    session.stream.release()
    lines, _ = finding_list(session.findings.list().findings)
    left = "\n".join(lines) or "No finding is open."
    reason = f": {command.more}" if command.more else "."
    return without_controls(f"`{command.finding_id}` is {state}{reason}\n\n{left}")


def finding_question(
    session: "Session", command: FindingCommand
) -> "tuple[tuple[PromptBlock, ...], VerbCall]":
    """Return the prompt of a turn about a finding, and what goes with it. Raises KodeError."""
    prompt = f"{_PROMPTS[command.word]} {command.more}".strip()
    asked = ReviewAskParams(session_id=session.id, finding_ids=(command.finding_id,), prompt=prompt)
    params, call = session.findings.question(asked)
    return params.input, call
