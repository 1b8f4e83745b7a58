"""Read what a hook says: its exit code, its standard error, and JSON on standard output."""

from collections.abc import Mapping
from typing import Any, Literal

import msgspec
from msgspec import Struct, field

from kode_sidecar.agent.hooks.hook_file import Hook
from kode_sidecar.core.text.shown_text import without_controls
from kode_sidecar.infrastructure.commands.command import CommandEnd

Decision = Literal["none", "allow", "ask", "deny"]
"""In the order of their weight: of several hooks the strictest counts."""
_DECISIONS: Mapping[str, Decision] = {
    "approve": "allow",
    "allow": "allow",
    "ask": "ask",
    "deny": "deny",
    "block": "deny",
}
_BLOCKS = 2
_MOST_CHARS = 10_000
_TEXT_IS_CONTEXT = ("SessionStart", "UserPromptSubmit")


class _Specific(Struct, frozen=True, rename="camel"):
    permission_decision: str | None = None
    permission_decision_reason: str = ""
    additional_context: str = ""
    updated_input: Any = None


class _Answer(Struct, frozen=True, rename="camel"):
    goes_on: bool = field(default=True, name="continue")
    stop_reason: str = ""
    decision: str | None = None
    reason: str = ""
    system_message: str = ""
    hook_specific_output: _Specific = _Specific()


class HookVerdict(Struct, frozen=True):
    """`reason` and `context` are for the model, `message` is for the user.

    `failed` says why there is no verdict; the hook's setting has decided then.
    """

    decision: Decision = "none"
    reason: str = ""
    context: str = ""
    message: str = ""
    failed: str = ""


def no_verdict(hook: Hook, why: str) -> HookVerdict:
    """Return what counts where a hook gave none."""
    if hook.fails_closed:
        return HookVerdict("deny", f"A hook that must agree gave no verdict: {why}", failed=why)
    return HookVerdict(failed=why)


def read_verdict(hook: Hook, end: CommandEnd) -> HookVerdict:
    """Return the verdict of a hook that has ended."""
    if end.ended != "exited":
        how = "took too long" if end.ended == "timed_out" else "printed too much"
        return no_verdict(hook, f"it {how}.")
    errors = _text(end.errors)
    if end.exit_code == _BLOCKS:
        return HookVerdict("deny", errors or "it gave no reason")
    if end.exit_code:
        return no_verdict(hook, f"it ended with the exit code {end.exit_code}. {errors}".strip())
    output = end.output.strip()
    if output.startswith(b"{"):
        return _answered(hook, output)
    said = _text(output) if hook.event in _TEXT_IS_CONTEXT else ""
    return HookVerdict(context=said)


def _answered(hook: Hook, output: bytes) -> HookVerdict:
    try:
        answer = msgspec.json.decode(output, type=_Answer)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        return no_verdict(hook, f"its answer cannot be read: {error}.")
    specific = answer.hook_specific_output
    word = specific.permission_decision or answer.decision
    decision: Decision = "none"
    reason = specific.permission_decision_reason or answer.reason
    if word is not None:
        if word not in _DECISIONS:
            return no_verdict(hook, f"{word!r} is no decision.")
        decision = _DECISIONS[word]
    if specific.updated_input is not None and decision != "deny":
        decision, reason = "deny", "It would change the call, which no hook can do here."
    if not answer.goes_on and hook.event != "Stop":
        decision, reason = "deny", answer.stop_reason or reason
    return HookVerdict(
        decision,
        _shown(reason),
        _shown(specific.additional_context),
        _shown(answer.system_message),
    )


def _text(output: bytes) -> str:
    return _shown(output.decode("utf-8", "replace"))


def _shown(text: str) -> str:
    return without_controls(text.replace("\r\n", "\n"))[:_MOST_CHARS].strip()
