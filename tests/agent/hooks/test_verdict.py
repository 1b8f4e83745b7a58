"""What hooks may answer, and how their settings are read."""

import json
import re
from typing import Any

import pytest

from kode_sidecar.agent.hooks.hook_file import Hook, read_hooks
from kode_sidecar.agent.hooks.verdict import HookVerdict, read_verdict
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.commands.command import CommandEnd

BEFORE = Hook("PreToolUse", None, ("x",))
CLOSED = Hook("PreToolUse", None, ("x",), fails_closed=True)


def ended(code: int | None = 0, output: object = "", errors: str = "") -> CommandEnd:
    said = output if isinstance(output, str) else json.dumps(output)
    return CommandEnd("exited", code, said.encode(), errors.encode())


def specific(**fields: Any) -> dict[str, Any]:
    return {"hookSpecificOutput": {"hookEventName": "PreToolUse", **fields}}


@pytest.mark.parametrize(
    ("end", "verdict"),
    [
        (ended(), HookVerdict()),
        (ended(0, "just words"), HookVerdict()),
        (ended(0, {}), HookVerdict()),
        (ended(2, "", "no\x1b[31m red\r\n"), HookVerdict("deny", "no[31m red")),
        (ended(2, {"decision": "allow"}), HookVerdict("deny", "it gave no reason")),
        (ended(0, {"decision": "block", "reason": "why"}), HookVerdict("deny", "why")),
        (ended(0, {"decision": "approve", "other": [1]}), HookVerdict("allow")),
        (ended(0, specific(permissionDecision="ask")), HookVerdict("ask")),
        (
            ended(0, {"decision": "approve", **specific(permissionDecision="deny")}),
            HookVerdict("deny"),
        ),
        (ended(0, {"continue": False, "stopReason": "stop"}), HookVerdict("deny", "stop")),
        (
            ended(0, specific(permissionDecision="allow", updatedInput={"command": "ls"})),
            HookVerdict("deny", "It would change the call, which no hook can do here."),
        ),
        (ended(0, specific(additionalContext=" more ")), HookVerdict(context="more")),
        (ended(0, {"systemMessage": "you"}), HookVerdict(message="you")),
    ],
)
def test_an_answer_is_read(end: CommandEnd, verdict: HookVerdict) -> None:
    assert read_verdict(BEFORE, end) == verdict


@pytest.mark.parametrize(
    ("end", "why"),
    [
        (ended(1, "", "broken"), "it ended with the exit code 1. broken"),
        (ended(-9), "it ended with the exit code -9."),
        (CommandEnd("timed_out", None, b'{"decision": "approve"}'), "it took too long."),
        (CommandEnd("too_much_output", None, b"x"), "it printed too much."),
        (ended(0, '{"decision": "app'), "its answer cannot be read: "),
        (ended(0, {"decision": 1}), "its answer cannot be read: "),
        (ended(0, {"decision": "perhaps"}), "'perhaps' is no decision."),
        (ended(0, "{" * 100_000), "its answer cannot be read: "),
    ],
)
def test_what_is_no_verdict_counts_as_the_user_says(end: CommandEnd, why: str) -> None:
    opened, closed = read_verdict(BEFORE, end), read_verdict(CLOSED, end)
    assert (opened.decision, closed.decision) == ("none", "deny")
    assert opened.failed.startswith(why)
    assert closed.failed == opened.failed
    assert opened.failed in closed.reason


def test_plain_words_are_for_the_model_where_something_begins() -> None:
    assert (
        read_verdict(Hook("SessionStart", None, ("x",)), ended(0, "be kind")).context == "be kind"
    )


def test_settings_of_other_agents_are_read() -> None:
    command = {"type": "command", "command": 'python3 "a b.py" # no comment'}
    written = {
        "PreToolUse": [
            {"matcher": "Bash|mcp__.*", "hooks": [command, {"command": ["x", "$y"], "timeout": 5}]},
            {"matcher": "*", "hooks": [{"command": "all", "fail": "closed"}]},
        ],
        "Notification": [{"hooks": [{"type": "prompt", "command": ""}]}],
        "Stop": [{"hooks": [{"command": "end"}]}],
    }
    first, second, third, fourth = read_hooks(written, "x")
    assert first.argv == ("python3", "a b.py", "#", "no", "comment")
    assert (second.argv, second.seconds) == (("x", "$y"), 5)
    assert first.matches(["Bash", "run_command"])
    assert first.matches(["mcp__a__b"])
    assert not first.matches(["BashOutput"])
    assert third.matches(["anything"])
    assert third.fails_closed
    assert fourth.event == "Stop"


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"preToolUse": []}, "no event is named 'preToolUse'; use SessionStart, "),
    ({"Stop": {}}, "x, Stop: Expected `array`, got `object`"),
    ({"Stop": [{"hooks": [{}]}]}, "missing required field `command`"),
    ({"Stop": [{"hooks": [{"command": "a 'b"}]}]}, "No closing quotation"),
    ({"Stop": [{"hooks": [{"command": " "}]}]}, "a command begins with a program"),
    ({"Stop": [{"hooks": [{"command": ["a\0"]}]}]}, "a command begins with a program"),
    ({"Stop": [{"hooks": [{"command": "a", "type": "http"}]}]}, "the type 'http'"),
    ({"Stop": [{"matcher": "(", "hooks": [{"command": "a"}]}]}, "is no pattern"),
    ({"Stop": [{"hooks": [{"command": "a", "timeout": 0}]}]}, "timeout"),
    ({"Stop": [{"hooks": [{"command": "a"}] * 201}]}, "more than 200 hooks"),
]


@pytest.mark.parametrize(("written", "why"), WRONG)
def test_what_is_wrong_with_settings_is_named(written: dict[str, Any], why: str) -> None:
    with pytest.raises(KodeError, match=re.escape(why)) as caught:
        read_hooks(written, "x")
    assert caught.value.code == "ConfigInvalid"
