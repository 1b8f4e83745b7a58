"""The rules in force in one session: where each comes from, and what it decided."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from kode_sidecar.domain.permission import Effect, Rule, deciding_rule, is_pattern
from kode_sidecar.errors import KodeError
from kode_sidecar.protocol.questions import RuleMatch, RuleView
from kode_sidecar.workspace.credentials import SECRET_PATTERNS
from kode_sidecar.workspace.sensitive import REFUSED_PATTERNS, SENSITIVE_PATTERNS

EDIT_TOOLS = frozenset({"propose_edit", "propose_file"})
"""What `plan` mode does not offer, and what permission is asked for."""

MAX_RULES = 1_000
MAX_MATCHES = 20

Source = Literal["answer", "client"]

_BUILT_IN: Sequence[tuple[Effect, Sequence[str], str]] = (
    ("deny", REFUSED_PATTERNS, "It belongs to Git and is never edited."),
    ("deny", SECRET_PATTERNS, "By its name it holds credentials; it is neither read nor edited."),
    ("ask", SENSITIVE_PATTERNS, "It can run code or steer an agent, so every edit needs a yes."),
)


@dataclass
class _Standing:
    rule: Rule
    source: Source
    reason: str
    set_at: str
    matched: int = 0
    matches: list[RuleMatch] = field(default_factory=list[RuleMatch])


class PermissionRules:
    """At most one rule for a tool and a pattern; forgotten with the session."""

    def __init__(self) -> None:
        self._rules: dict[tuple[str, str], _Standing] = {}

    def add(self, rule: Rule, source: Source, reason: str, now: str) -> None:
        """Take a rule. Raises KodeError `InvalidParams` for one that must not be."""
        if not is_pattern(rule.pattern):
            raise KodeError(
                "InvalidParams",
                f"$.pattern: {rule.pattern!r} is no pattern. Write a path, a folder with /** "
                "behind it, or **.",
            )
        if rule.effect == "allow" and rule.pattern == "**":
            text = "$.pattern: nothing allows everything; name a file or a folder."
            raise KodeError("InvalidParams", text)
        if len(self._rules) >= MAX_RULES and (rule.tool, rule.pattern) not in self._rules:
            raise KodeError("InvalidParams", f"There are {MAX_RULES} rules already; remove some.")
        self._rules[rule.tool, rule.pattern] = _Standing(rule, source, reason, now)

    def remove(self, tool: str, pattern: str) -> None:
        """Forget the rule of a tool and a pattern, if there is one."""
        self._rules.pop((tool, pattern), None)

    def decide(self, tool: str, paths: Sequence[str], *, sensitive: bool) -> Rule | None:
        """The rule that decides about a call."""
        rules = (standing.rule for standing in self._rules.values())
        return deciding_rule(rules, tool, paths, sensitive=sensitive)

    def matched(self, rule: Rule, subject: str, request_id: str, now: str) -> None:
        """A rule answered a question."""
        standing = self._rules[rule.tool, rule.pattern]
        standing.matched += 1
        standing.matches.append(RuleMatch(subject=subject, request_id=request_id, at=now))
        del standing.matches[:-MAX_MATCHES]

    def reason(self, rule: Rule) -> str:
        """Why there is this rule."""
        return self._rules[rule.tool, rule.pattern].reason

    def views(self) -> Iterator[RuleView]:
        """All rules, the session's own first."""
        for standing in self._rules.values():
            yield RuleView(
                tool=standing.rule.tool,
                pattern=standing.rule.pattern,
                effect=standing.rule.effect,
                source=standing.source,
                reason=standing.reason,
                set_at=standing.set_at,
                matched=standing.matched,
                matches=tuple(standing.matches),
            )
        for effect, patterns, reason in _BUILT_IN:
            for pattern in patterns:
                yield RuleView(
                    tool="*", pattern=pattern, effect=effect, source="builtIn", reason=reason
                )
