"""Params and results outside any session: checks, models, skills, memory, usage."""

from typing import Any, Literal

from msgspec import Struct, field

from kode_sidecar.core.domain.error_info import ErrorInfo
from kode_sidecar.core.domain.event_parts import Effort
from kode_sidecar.core.domain.memory import MemoryMode, MemoryState
from kode_sidecar.core.domain.message import Cost, Usage
from kode_sidecar.core.protocol.initialize import EditorSettings
from kode_sidecar.core.protocol.session import Mode


class Empty(Struct, frozen=True):
    """No params, or no result."""


class PingParams(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`echo` comes back unchanged."""

    echo: Any = None


class PingResult(Struct, frozen=True, kw_only=True):
    """The `echo` of the request."""

    echo: Any = None


class SettingView(Struct, frozen=True, kw_only=True):
    """One setting and its source; secrets are masked."""

    name: str
    value: Any
    source: str


class Check(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One finding of the doctor. `hint` says how to fix it."""

    name: str
    ok: bool
    message: str
    hint: str | None = None


class DoctorResult(Struct, frozen=True, kw_only=True, rename="camel"):
    """The facts that a bug report needs; never a key."""

    version: str
    protocol_version: str
    python: str
    platform: str
    position_encoding: str
    roots: tuple[str, ...]
    settings: tuple[SettingView, ...]
    checks: tuple[Check, ...]
    last_errors: tuple[ErrorInfo, ...] = ()


class SchemaGetResult(Struct, frozen=True, kw_only=True):
    """`schema` is the text of `schema.json`, byte for byte; `sha256` as in the handshake."""

    schema: str
    sha256: str


class Price(Struct, frozen=True, kw_only=True):
    """A list price per million tokens (fresh input, cached input, output); not binding."""

    input: float
    cached: float
    output: float
    currency: str


class ModelView(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A model; `name` is a valid value of `model`. Unknown fields are absent.

    `offered`: it is in its host's current list; `retired`: the host has said that it is gone.
    Windows are in tokens. `images`: it accepts images, `reasoning`: it thinks, `efforts`: the
    supported levels of thinking.
    """

    name: str
    offered: bool = False
    retired: bool = False
    context_window: int | None = None
    max_output: int | None = None
    images: bool | None = None
    reasoning: bool | None = None
    efforts: tuple[Effort, ...] = ()
    price: Price | None = None


class ProviderView(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A provider and its models: first those its host lists, then those of our table.

    With `error` (no key, no answer) the host's list is missing, and only our table is used; without
    it and without `lists` the host answers, but has no list.
    """

    name: str
    host: str
    lists: bool = True
    models: tuple[ModelView, ...]
    error: ErrorInfo | None = None


class ModelCandidate(Struct, frozen=True, kw_only=True):
    """A model behind a logical name; see `ModelView`."""

    name: str
    retired: bool
    offered: bool


class LogicalModel(Struct, frozen=True, kw_only=True):
    """A name for the first of `candidates` that its host serves."""

    name: str
    candidates: tuple[ModelCandidate, ...]


class ModelsListResult(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The valid values of `model`: a logical name, or the name of a model.

    `default` is what a session uses that names none.
    """

    default: str
    logical: tuple[LogicalModel, ...]
    providers: tuple[ProviderView, ...]


class ProviderAuth(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Whether a provider can be asked. `variables` are the environment variables for its key.

    An editor passes a key by setting the first of them in the environment of the next start;
    without any the host needs no key. `error` says what is missing; `default`: it serves the model
    of the settings.
    """

    name: str
    ready: bool
    default: bool = field(default_factory=bool)
    variables: tuple[str, ...] = field(default_factory=tuple[str, ...])
    error: ErrorInfo | None = None


class AuthStatusResult(Struct, frozen=True, kw_only=True):
    """Every provider, the built-in ones first. No host is asked, and no key is revealed."""

    providers: tuple[ProviderAuth, ...]


class SetTrustParams(Struct, frozen=True, kw_only=True):
    """Whether the user trusts the open folders; holds for this process (see `initialize`)."""

    trusted: bool


class SettingsUpdateParams(
    EditorSettings, frozen=True, kw_only=True, rename="camel", omit_defaults=True
):
    """The settings of the handshake; absent and `null` leave a setting unchanged.

    `mode` and `model` hold for sessions without their own, `agent` for new sessions.
    """


class SettingsUpdateResult(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The settings now in force. `file_encoding` is absent if none was set."""

    mode: Mode
    agent: str
    model: str
    locale: str
    file_encoding: str | None = None
    save_accepted: bool = True


SkillSource = Literal["user", "config", "project"]


class SkillView(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A skill offered to the model.

    `source`: the state folder's `skills`, a folder of the setting `skill_folders`, or
    `.kode/skills` of an open folder. `permissions` is what the skill says it needs; it grants
    nothing. `uri` is its `SKILL.md`.
    """

    id: str
    name: str
    description: str
    source: SkillSource
    uri: str
    tags: tuple[str, ...] = ()
    permissions: tuple[str, ...] = ()


class SkillProblemView(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A skill that cannot be used, and why. `line` counts from 1; it and `field` may be absent."""

    source: SkillSource
    file: str
    message: str
    line: int | None = None
    field: str | None = None


class SkillsListResult(Struct, frozen=True, kw_only=True, rename="camel"):
    """Skills by id, and those that cannot be used.

    `project_trusted`: the editor has said that the workspace is trusted, so the skills of the open
    folders are read.
    """

    skills: tuple[SkillView, ...]
    problems: tuple[SkillProblemView, ...]
    project_trusted: bool


VerbSource = Literal["builtin", "user", "project", "config"]
VerbContext = Literal["selection", "file", "diagnostics", "changes", "symbol"]


class VerbView(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What a prompt that begins with `/name` calls: a verb, or (`kind`) a skill.

    `title` is for menus. `arguments` describes what may follow the name. `context` is what of the
    editor's state goes with it: a client offers the verb where it has one of these. `source`:
    built in, the user's own, an open folder's, or a folder of the setting `skill_folders`. `uri` is
    its file. `agent`, `mode`, `model` and `effort` hold for the turn that it starts.
    """

    name: str
    title: str
    description: str
    source: VerbSource
    kind: Literal["verb", "skill"] = "verb"
    arguments: str | None = None
    context: tuple[VerbContext, ...] = ()
    uri: str | None = None
    agent: str | None = None
    mode: Mode | None = None
    model: str | None = None
    effort: Effort | None = None


class VerbProblemView(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A verb that cannot be used, and why. `line` counts from 1; it and `field` may be absent."""

    source: VerbSource
    file: str
    message: str
    line: int | None = None
    field: str | None = None


class VerbsListResult(Struct, frozen=True, kw_only=True, rename="camel"):
    """Verbs and skills by name, and files that cannot be used.

    `project_trusted`: the editor has said that the workspace is trusted, so the verbs of the open
    folders are read.
    """

    verbs: tuple[VerbView, ...]
    problems: tuple[VerbProblemView, ...]
    project_trusted: bool


MemoryAction = Literal["accept", "reject"]


class MemoryListParams(Struct, frozen=True, kw_only=True):
    """List all memories, or those in one state."""

    state: MemoryState | None = None


class MemoryView(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A memory that the model proposed or the user has accepted.

    The `scope` `user` is valid everywhere, `project:NAME-HASH` in one project.
    """

    memory_id: str
    content: str
    scope: str
    state: MemoryState
    created_at: str
    tags: tuple[str, ...] = ()


class MemoryListResult(Struct, frozen=True, kw_only=True):
    """The memories in the state folder, oldest first.

    `mode` is the setting `memory_mode`: with `external` a service stores memories, and these are
    older ones; with `disabled` no model sees them.
    """

    memories: tuple[MemoryView, ...]
    mode: MemoryMode


class MemoryDecision(Struct, frozen=True, kw_only=True, rename="camel"):
    """The decision on one memory. `reject` deletes it for good, even if it was accepted before."""

    memory_id: str
    action: MemoryAction


class MemoryDecideParams(Struct, frozen=True, kw_only=True):
    """Decisions; an unknown id rejects them all. Of two for one memory the last one counts."""

    decisions: tuple[MemoryDecision, ...]


UsageKey = Literal["message", "turn", "session", "day", "model"]


class UsageGetParams(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What to count: all sessions or one, from the day `since` to the day `until`, both included.

    Days are written `2026-01-31` and begin at midnight in the zone `utc_offset_minutes` (at most
    840) ahead of UTC. `by` groups the rows; several names make a row for each combination.
    """

    session_id: str | None = None
    since: str | None = None
    until: str | None = None
    by: tuple[UsageKey, ...] = ("day", "model")
    utc_offset_minutes: int = 0


class UsageSum(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What a number of answers used. `costs` has one amount for each currency.

    `cost_usd` is absent if no answer has it.
    """

    answers: int
    usage: Usage
    costs: tuple[Cost, ...] = ()
    cost_usd: float | None = None


class UsageRow(UsageSum, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The sum for one group of answers; the fields named in `by` identify the group."""

    day: str | None = None
    model: str | None = None
    session_id: str | None = None
    turn_id: str | None = None
    message_id: str | None = None


class UsageGetResult(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Rows in the order of their keys. Deleted sessions are not counted."""

    rows: tuple[UsageRow, ...]
    total: UsageSum
    unreadable_sessions: int = 0
