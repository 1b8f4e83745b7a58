"""Who may do what without being asked again. Pure; the default is no (W15)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kode_sidecar.domain.agent_event import PermissionOption

ALLOW_ONCE = PermissionOption(option_id="allow-once", kind="allow_once", name="Allow once")
ALLOW_SESSION = PermissionOption(
    option_id="allow-session", kind="allow_session", name="Allow in this session"
)
REJECT = PermissionOption(option_id="reject", kind="reject", name="Reject")
OPTIONS = (ALLOW_ONCE, ALLOW_SESSION, REJECT)


@dataclass(frozen=True)
class Rule:
    """Exactly one tool may act on what matches exactly one pattern.

    `pattern` is a path as the user was shown it; one that ends in `/**` covers all below it.
    """

    tool: str
    pattern: str

    def covers(self, tool: str, subject: str) -> bool:
        """Whether it allows this tool to act on this subject."""
        if tool != self.tool:
            return False
        if self.pattern.endswith("/**"):
            return subject.startswith(self.pattern.removesuffix("**"))
        return subject == self.pattern


def is_allowed(rules: Iterable[Rule], tool: str, subject: str) -> bool:
    """Whether some rule already allows it."""
    return any(rule.covers(tool, subject) for rule in rules)


def chosen(options: Sequence[PermissionOption], option_id: str | None) -> PermissionOption | None:
    """The option that was chosen; None for no answer and for one that was never offered."""
    return next((option for option in options if option.option_id == option_id), None)
