"""Rules for what a tool may do without asking the user. Pure; no answer means no (W15)."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from kode_sidecar.core.domain.agent_tool import AGENT_TOOLS
from kode_sidecar.core.domain.event_parts import PermissionOption

Effect = Literal["allow", "ask", "deny"]

ALLOW_ONCE = PermissionOption(option_id="allow-once", kind="allow_once", name="Allow once")
ALLOW_SESSION = PermissionOption(
    option_id="allow-session", kind="allow_session", name="Allow in this session"
)
SAVE_AND_RUN = PermissionOption(option_id="save-and-run", kind="allow_once", name="Save and run")
RUN_ON_DISK = PermissionOption(
    option_id="run-on-disk", kind="allow_once", name="Run on the files on disk"
)
TRUST = PermissionOption(
    option_id="trust", kind="allow_once", name="Trust this workspace, and run it"
)
REJECT = PermissionOption(option_id="reject", kind="reject", name="Reject")
OPTIONS = (ALLOW_ONCE, ALLOW_SESSION, REJECT)

EDIT_TOOLS = frozenset(tool.name for tool in AGENT_TOOLS if tool.edits)
"""The tools that `plan` mode does not offer and that need permission."""

_ALL_BELOW = "**"


@dataclass(frozen=True)
class Rule:
    """The permission of one tool for one pattern.

    `tool` is its name, or `name:operation` for one of its operations.

    `pattern` is a path as shown to the user; `/**` at its end covers everything below it, `**`
    everything. Only `allow` is case-sensitive, because case may or may not matter on a volume.
    """

    tool: str
    pattern: str
    effect: Effect = "allow"

    def covers(self, tool: str, subject: str, *, sensitive: bool) -> bool:
        """Return whether the rule covers this tool and subject.

        A wide pattern never allows a sensitive subject: that needs a rule with its name (W11).
        """
        if tool != self.tool and not tool.startswith(f"{self.tool}:"):
            return False
        allows = self.effect == "allow"
        pattern = self.pattern if allows else self.pattern.casefold()
        subject = subject if allows else subject.casefold()
        if subject == pattern:
            return True
        wide = pattern.endswith(_ALL_BELOW) and not (allows and sensitive)
        return wide and subject.startswith(pattern.removesuffix(_ALL_BELOW))


def is_pattern(text: str) -> bool:
    """Return whether `text` is a valid pattern: a path, one with `/**` at its end, or `**`."""
    head = text.removesuffix(_ALL_BELOW)
    wide = head != text
    plain = bool(text.strip()) and "*" not in head and len(text) <= 1_000 and text.isprintable()
    if any(part in (".", "..") for part in re.split(r"[/\\]", head)):
        return False  # no path that is shown has such parts
    return plain and (not wide or not head or head.endswith("/"))


def deciding_rule(
    rules: Iterable[Rule], tool: str, paths: Sequence[str], *, sensitive: bool
) -> Rule | None:
    """Return the rule that decides about a call on these paths: `deny` first, then `allow`.

    `deny` and `ask` apply if they cover any of the paths; `allow` must cover them all.
    """
    found = list(rules)

    def first(effect: Effect) -> Rule | None:
        needed = all if effect == "allow" else any
        return next(
            (
                rule
                for rule in found
                if rule.effect == effect
                and needed(rule.covers(tool, path, sensitive=sensitive) for path in paths)
            ),
            None,
        )

    return first("deny") or first("allow") or first("ask")


def chosen(options: Sequence[PermissionOption], option_id: str | None) -> PermissionOption | None:
    """Return the chosen option; None for no answer and for one that was never offered."""
    return next((option for option in options if option.option_id == option_id), None)
