"""Questions to the user, and the rules that answer them: `kode/permission/*` and `kode/ask`."""

from typing import Literal

from msgspec import Struct

from kode_sidecar.core.domain.event_parts import PermissionOption
from kode_sidecar.core.domain.permission import Effect


class PermissionRequestParams(
    Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True
):
    """Ask the user. No answer in time counts as reject.

    `block_id` is the tool call that waits. `reason` says why the user is asked, `diff` what exactly
    a yes is for (unified, may be cut): if the call would do anything else by then, it is refused.
    """

    request_id: str
    session_id: str
    turn_id: str
    block_id: str
    tool_use_id: str
    title: str
    subject: str
    options: tuple[PermissionOption, ...]
    reason: str = ""
    diff: str = ""


class PermissionRequestResult(Struct, frozen=True, kw_only=True, rename="camel"):
    """The chosen option."""

    option_id: str


class AskParams(Struct, frozen=True, kw_only=True, rename="camel"):
    """Ask the user to choose; with `multi` more than one of `choices`. `block_id` is the call.

    When nobody answers in time, or the turn is cancelled, `$/cancelRequest` takes it back.
    """

    request_id: str
    session_id: str
    turn_id: str
    block_id: str
    tool_use_id: str
    question: str
    choices: tuple[str, ...]
    multi: bool


class AskResult(Struct, frozen=True):
    """What the user chose of the choices, word for word; nothing when they closed the question."""

    choices: tuple[str, ...]


class PermissionListParams(Struct, frozen=True, kw_only=True, rename="camel"):
    """The rules of one session."""

    session_id: str


class RuleMatch(Struct, frozen=True, kw_only=True, rename="camel"):
    """A question that a rule answered; `request_id` is that of `permission.requested`."""

    subject: str
    request_id: str
    at: str


class RuleView(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A rule in force; `reason` says in words where it comes from.

    `source`: `builtIn` rules cannot be changed, `answer` was given to a question, `client` set by
    `kode/permission/set`. `tool` is `*` for all tools, `pattern` a path, `…/**` for all below one,
    or a name at any depth for `builtIn`. `matches` are the latest questions it answered, out of
    `matched`.
    """

    tool: str
    pattern: str
    effect: Effect
    source: Literal["builtIn", "answer", "client"]
    reason: str
    set_at: str = ""
    matched: int = 0
    matches: tuple[RuleMatch, ...] = ()


class PermissionListResult(Struct, frozen=True, kw_only=True):
    """A denial wins over a permission, a permission over a wish to be asked.

    What no rule covers needs no permission.
    """

    rules: tuple[RuleView, ...]


class PermissionSetParams(Struct, frozen=True, kw_only=True, rename="camel"):
    """Make, change or take back the rule of one tool and one pattern; `effect: null` takes back.

    `pattern` is a path as in `permission.requested.subject`, one with `/**` at its end, or `**`.
    An `allow` for a pattern never covers a sensitive file: name that file itself. Rules are
    forgotten with the process.
    """

    session_id: str
    tool: str
    pattern: str
    effect: Effect | None
