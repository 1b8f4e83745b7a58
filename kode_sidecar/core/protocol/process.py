"""What is asked of the process and of no session: checks, models, skills, memory, usage."""

from typing import Any, Literal

from msgspec import Struct, field

from kode_sidecar.core.domain.error_info import ErrorInfo
from kode_sidecar.core.domain.event_parts import Effort
from kode_sidecar.core.domain.memory import MemoryMode, MemoryState
from kode_sidecar.core.domain.message import Cost, Usage
from kode_sidecar.core.protocol.session import Mode


class Empty(Struct, frozen=True):
    """No params, or no result."""


class PingParams(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`echo` comes back unchanged."""

    echo: Any = None


class PingResult(Struct, frozen=True, kw_only=True):
    """The `echo` of the question."""

    echo: Any = None


class SettingView(Struct, frozen=True, kw_only=True):
    """One setting, where it came from; secrets masked."""

    name: str
    value: Any
    source: str


class Check(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One finding of the doctor. `hint` says how to mend it."""

    name: str
    ok: bool
    message: str
    hint: str | None = None


class DoctorResult(Struct, frozen=True, kw_only=True, rename="camel"):
    """What a bug report needs; never a key."""

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
    """`schema` is the text of `schema.json`, byte for byte; `sha256` is that of the handshake."""

    schema: str
    sha256: str


class Price(Struct, frozen=True, kw_only=True):
    """A list price per million tokens: fresh input, cached input, output; a hint."""

    input: float
    cached: float
    output: float
    currency: str


class ModelView(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A model, by the name that can be said as `model`; what is not known is absent.

    `offered`: it is in its host's list of today; `retired`: the host has said that it is gone.
    Windows are in tokens. `images` says that it takes them, `reasoning` that it thinks, `efforts`
    how hard it can be asked to think.
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
    """A provider and its models: those its host lists first, then those of our table.

    With `error` (no key, no answer) the host could not be asked, and only the table is known.
    """

    name: str
    host: str
    models: tuple[ModelView, ...]
    error: ErrorInfo | None = None


class ModelCandidate(Struct, frozen=True, kw_only=True):
    """A model behind a logical name; see `ModelView`."""

    name: str
    retired: bool
    offered: bool


class LogicalModel(Struct, frozen=True, kw_only=True):
    """A name for whatever of `candidates` is served first."""

    name: str
    candidates: tuple[ModelCandidate, ...]


class ModelsListResult(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What may be said as `model`: a logical name, or the name of a model.

    `default` is what a session uses that names none.
    """

    default: str
    logical: tuple[LogicalModel, ...]
    providers: tuple[ProviderView, ...]


class ProviderAuth(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Whether a provider can be asked. `variables`: where a key for it is looked for.

    An editor hands a key over by setting the first of them in the environment of the next start;
    without any the host wants no key. `error` says what is missing, `default`: the settings' own
    model is served by it.
    """

    name: str
    ready: bool
    default: bool = field(default_factory=bool)
    variables: tuple[str, ...] = field(default_factory=tuple[str, ...])
    error: ErrorInfo | None = None


class AuthStatusResult(Struct, frozen=True, kw_only=True):
    """Every provider, the built-in ones first. No host is asked, and no key is told."""

    providers: tuple[ProviderAuth, ...]


class SetTrustParams(Struct, frozen=True, kw_only=True):
    """The user's word on the open folders, for this process; next time `initialize` says it."""

    trusted: bool


class SettingsUpdateParams(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What the handshake's `settings` may hold; absent and `null` leave it as it is.

    `mode` and `model` hold for sessions that name none of their own, `agent` for new ones.
    """

    mode: Mode | None = None
    agent: str | None = None
    model: str | None = None
    locale: str | None = None
    file_encoding: str | None = None


class SettingsUpdateResult(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What is in force now. `file_encoding` is absent where none was set."""

    mode: Mode
    agent: str
    model: str
    locale: str
    file_encoding: str | None = None


SkillSource = Literal["user", "config", "project"]


class SkillView(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A skill on offer to the model.

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
    """A skill that cannot be used, and why. `line` counts from 1; both where they are known."""

    source: SkillSource
    file: str
    message: str
    line: int | None = None
    field: str | None = None


class SkillsListResult(Struct, frozen=True, kw_only=True, rename="camel"):
    """Skills by id, and those that cannot be used.

    `project_trusted`: the skills of the open folders are looked for, for the editor has said that
    the workspace is trusted.
    """

    skills: tuple[SkillView, ...]
    problems: tuple[SkillProblemView, ...]
    project_trusted: bool


MemoryAction = Literal["accept", "reject"]


class MemoryListParams(Struct, frozen=True, kw_only=True):
    """All memories, or those in one state."""

    state: MemoryState | None = None


class MemoryView(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Something the model wants to be remembered, or the user has accepted.

    `scope`: `user` holds everywhere, `project:NAME-HASH` in one project.
    """

    memory_id: str
    content: str
    scope: str
    state: MemoryState
    created_at: str
    tags: tuple[str, ...] = ()


class MemoryListResult(Struct, frozen=True, kw_only=True):
    """What the state folder keeps, oldest first.

    `mode` is the setting `memory_mode`: with `external` a service remembers, and what stands here
    is from before; with `disabled` nothing here is told to a model.
    """

    memories: tuple[MemoryView, ...]
    mode: MemoryMode


class MemoryDecision(Struct, frozen=True, kw_only=True, rename="camel"):
    """What becomes of one memory. `reject` forgets it for good, also if it was accepted before."""

    memory_id: str
    action: MemoryAction


class MemoryDecideParams(Struct, frozen=True, kw_only=True):
    """Decisions; one unknown id, and nothing is done. Of two for one memory the last one counts."""

    decisions: tuple[MemoryDecision, ...]


UsageKey = Literal["message", "turn", "session", "day", "model"]


class UsageGetParams(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What to count: all sessions or one, from the day `since` to the day `until`, both included.

    Days are written `2026-01-31`; one begins at midnight in a zone so many minutes (at most 840)
    ahead of UTC. `by` says what gets a row of its own; several names make a row for each
    combination.
    """

    session_id: str | None = None
    since: str | None = None
    until: str | None = None
    by: tuple[UsageKey, ...] = ("day", "model")
    utc_offset_minutes: int = 0


class UsageSum(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What a number of answers used. `costs` is one amount for each currency.

    `cost_usd` is absent where no answer told it.
    """

    answers: int
    usage: Usage
    costs: tuple[Cost, ...] = ()
    cost_usd: float | None = None


class UsageRow(UsageSum, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The same, of those with this day, model, session, turn and message, as `by` asked."""

    day: str | None = None
    model: str | None = None
    session_id: str | None = None
    turn_id: str | None = None
    message_id: str | None = None


class UsageGetResult(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Rows in the order of their keys. Sessions that were deleted are not counted."""

    rows: tuple[UsageRow, ...]
    total: UsageSum
    unreadable_sessions: int = 0
