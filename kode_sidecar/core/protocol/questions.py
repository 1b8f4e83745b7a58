"""Questions to the user, and the rules that answer them: `kode/permission/*` and `kode/ask`."""

from typing import Literal

from msgspec import Struct

from kode_sidecar.core.domain.event_parts import PermissionOption
from kode_sidecar.core.domain.permission import Effect


class PermissionRequestParams(
    Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True
):
    """Ask the user. No answer in time counts as reject.

    `block_id` is the tool call that waits. `reason` says why the user is asked; `diff` shows what
    exactly they allow (unified, may be cut): if the call would do anything else, it is refused.
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


class PermissionRequestResult(
    Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True
):
    """The chosen option.

    With a rejection: `comment` is what the user says about it, which the model reads; with
    `for_session` the session rejects the same tool and subject from then on.
    """

    option_id: str
    comment: str = ""
    for_session: bool = False


class AskParams(Struct, frozen=True, kw_only=True, rename="camel"):
    """Ask the user to choose; with `multi` more than one of `choices`. `block_id` is the call.

    When nobody answers in time, or the turn is cancelled, `$/cancelRequest` cancels the question.
    """

    request_id: str
    session_id: str
    turn_id: str
    block_id: str
    tool_use_id: str
    question: str
    choices: tuple[str, ...]
    multi: bool


class AskResult(Struct, frozen=True, omit_defaults=True):
    """The chosen ones of the choices, word for word; empty if the user closed the question.

    `text` is an answer in the user's own words, instead of choices or beside them.
    """

    choices: tuple[str, ...]
    text: str = ""


class PermissionListParams(Struct, frozen=True, kw_only=True, rename="camel"):
    """List the rules of one session."""

    session_id: str


class RuleMatch(Struct, frozen=True, kw_only=True, rename="camel"):
    """A question that a rule answered; `request_id` as in `permission.requested`."""

    subject: str
    request_id: str
    at: str


class RuleView(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A rule in force; `reason` says in words where it comes from.

    `source`: `builtIn` rules cannot be changed, `answer` was the user's answer to a question,
    `client` was set by `kode/permission/set`. `tool` is `*` for all tools; `pattern` is a path,
    `…/**` for everything below one, or a name at any depth for `builtIn`. `matched` counts the
    questions it answered, and `matches` are the latest of them.
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
    """`deny` wins over `allow`, and `allow` over `ask`.

    An action that no rule covers needs no permission.
    """

    rules: tuple[RuleView, ...]


class PermissionSetParams(Struct, frozen=True, kw_only=True, rename="camel"):
    """Add, change or remove the rule for one tool and one pattern; `effect: null` removes it.

    `pattern` is a path as in `permission.requested.subject`, one with `/**` at its end, or `**`.
    An `allow` for a pattern never covers a sensitive file: name that file itself. Rules end with
    the process.
    """

    session_id: str
    tool: str
    pattern: str
    effect: Effect | None
