"""Every setting in one row: its type, default, who sets it, its variables, its check, its mask."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

import msgspec
from msgspec import Meta, Struct, field
from msgspec.structs import fields

from kode_sidecar.core.domain.event_parts import Locale, Mode
from kode_sidecar.core.domain.memory import MemoryMode
from kode_sidecar.core.settings import checks
from kode_sidecar.errors import KodeError

Storage = Literal["jsonl", "sqlite"]
Text = Annotated[str, Meta(min_length=1, max_length=1_000)]
Seconds = Annotated[float, Meta(gt=0, le=86_400)]
CommandWords = Annotated[list[Annotated[str, Meta(min_length=1)]], Meta(min_length=1)]


class CommandSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """The commands that the model may run in a session, in a workspace that the user trusts.

    `run`: no command, any that the user approves, or those that `allow` lists. `allow` and `deny`
    are first words of commands. `environment` are names of variables that commands get, `programs`
    maps program names to files. `sandbox` blocks the network, unless `network`, and all folders
    except the open and `readable` ones; it exists on Linux only, and elsewhere no command runs with
    it.
    """

    run: Literal["off", "ask", "list"] | bool = "ask"
    allow: list[str | CommandWords] = []
    deny: list[str | CommandWords] = []
    timeout_seconds: Annotated[float, Meta(gt=0, le=600)] = 120.0
    max_output_bytes: Annotated[int, Meta(ge=1_000, le=100_000_000)] = 10_000_000
    environment: list[str] = []
    programs: dict[str, Annotated[str, Meta(min_length=1)]] = {}
    sandbox: bool = False
    network: bool = False
    readable: list[str] = []

    @property
    def mode(self) -> Literal["off", "ask", "list"]:
        """The value of `run`; YAML reads `off` as false, and `on` as true, which means `ask`."""
        if isinstance(self.run, bool):
            return "ask" if self.run else "off"
        return self.run


class WebSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """The pages of the web that the model may read, in a workspace that the user trusts.

    `fetch`: none, those of hosts that the user approves, or of those that `allow` lists. `ports`
    are allowed beside 80 and 443. `hosts` are asked wherever they are, such as `wiki.intern` or
    `127.0.0.1:8080`; all others only if they are on the public internet.
    """

    fetch: Literal["off", "ask", "list"] | bool = "ask"
    allow: list[str] = []
    ports: list[Annotated[int, Meta(ge=1, le=65_535)]] = []
    hosts: list[str] = []

    @property
    def mode(self) -> Literal["off", "ask", "list"]:
        """The value of `fetch`; YAML reads `off` as false, and `on` as true, which means `ask`."""
        if isinstance(self.fetch, bool):
            return "ask" if self.fetch else "off"
        return self.fetch


class ModelsByTask(Struct, frozen=True, forbid_unknown_fields=True):
    """The models for tasks beside the conversation; None: the one of the session.

    Each is a name as `model` takes it, so that a logical one has a list to fall back on.
    """

    scouts: Text | None = None
    summaries: Text | None = None


class BudgetSettings(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What a turn, a session and a day may cost; a missing limit is no limit."""

    currency: Annotated[str, Meta(pattern="^[A-Z]{3}$")]
    turn: Annotated[float, Meta(gt=0)] | None = None
    session: Annotated[float, Meta(gt=0)] | None = None
    day: Annotated[float, Meta(gt=0)] | None = None


@dataclass(frozen=True)
class SettingRow:
    """What a setting is beyond its type and default.

    `who` may set it: the user in files and variables, the editor too, or the handshake alone. An
    editor's settings may come from the workspace it has open, so keys, hosts, proxies, logs and
    storage are the user's. `env` are the variables that set it, the first one set wins; None means
    KODE_<NAME>, `()` that only `config.yaml` can hold it. `check` converts a value, which is read
    as `read_as` if that is not the setting's own type. `shown` is how the doctor shows it.
    """

    who: Literal["user", "editor", "handshake"] = "user"
    env: tuple[str, ...] | None = None
    read_as: Any = None
    check: Callable[[Any], object] | None = None
    shown: Callable[[Any], object] | None = None


_BY_EDITOR = SettingRow(who="editor")
_Written = Annotated[
    Mapping[str, Any],
    # Its contents may be anything; the doctor's checks report what matters.
    SettingRow(env=(), shown=", ".join),
]


def _shown_folders(folders: Sequence[Path]) -> str:
    return ", ".join(map(str, folders))


def _shown_budget(budget: BudgetSettings | None) -> object:
    return None if budget is None else msgspec.to_builtins(budget)


class Settings(Struct, frozen=True, kw_only=True):
    """Every setting. Times are seconds, folders absolute.

    `proxy` is used only when given here: the system's proxies are ignored. `window_messages`
    is how many stored messages the model gets, `context_window` overrides its known window (in
    tokens). `models` are for tasks beside it. `commands` is what the model may run, `web` what it
    may read there, `budget` what it may cost.
    `permission_timeout` is how long a question to the user stays open; no answer means no.
    `edit_timeout` is how long the editor may take for an edit, perhaps asking its user, before
    other edits proceed. `providers`, `logical_models`, `agents`, `mcp` and `hooks` stay as written:
    `providers.user_providers`, `context.agents`, `mcp.config` and
    `hooks.hook_file` read them.
    `http_retry_budget` is how long after the first attempt another one may
    begin. `file_encoding` reads files that are not UTF-8. `save_accepted`: a
    file that was saved before an accepted edit is saved after it.
    `signals` is how the chat calls a user who looks elsewhere: `all` also notifies the terminal.
    `storage` is how the messages of new sessions are saved; existing sessions keep theirs.
    `log_redact_content` limits prompts and replies in the log to their first `log_redact_chars`
    characters. `skill_folders` hold skills besides the user's own; `memory_mode` says where
    memories are saved, `memory_url` and `memory_key` are for `external`, `memory_timeout` for each
    call to it. `trusted` is the editor's statement about the workspace, in the handshake only;
    folders inside `trusted_folders` are trusted in an editor without a plugin, which cannot say it.
    `comment_word` begins a comment that asks the agent to do something; empty for none.
    """

    api_key: Annotated[
        str,
        SettingRow(
            env=("KIMI_API_KEY", "MOONSHOT_API_KEY"),
            check=checks.api_key,
            shown=checks.masked_key,
        ),
    ] = ""
    base_url: Annotated[Text, SettingRow(env=("KIMI_BASE_URL",), check=checks.base_url)] = (
        "https://api.moonshot.cn/v1"
    )
    proxy: Annotated[str | None, SettingRow(check=checks.proxy, shown=checks.masked_proxy)] = None
    mode: Annotated[Mode, _BY_EDITOR] = "review"
    agent: Annotated[Text, _BY_EDITOR] = "ide-helper"
    model: Annotated[Text, _BY_EDITOR] = "ide-chat"
    locale: Annotated[Locale, SettingRow(who="editor", read_as=str, check=checks.locale)] = "zh"
    window_messages: Annotated[int, Meta(ge=1, le=10_000)] = 20
    temperature: Annotated[float, Meta(ge=0, le=2)] = 0.3
    top_p: Annotated[float, Meta(gt=0, le=1)] = 0.95
    max_tokens: Annotated[int, Meta(ge=1)] | None = None
    context_window: Annotated[int, Meta(ge=2_000)] | None = None
    providers: _Written = field(default_factory=dict[str, Any])
    logical_models: _Written = field(default_factory=dict[str, Any])
    agents: _Written = field(default_factory=dict[str, Any])
    mcp: _Written = field(default_factory=dict[str, Any])
    hooks: _Written = field(default_factory=dict[str, Any])
    models: Annotated[ModelsByTask, SettingRow(env=(), shown=msgspec.to_builtins)] = ModelsByTask()
    commands: Annotated[CommandSettings, SettingRow(env=(), shown=attrgetter("mode"))] = (
        CommandSettings()
    )
    web: Annotated[WebSettings, SettingRow(env=(), shown=attrgetter("mode"))] = WebSettings()
    budget: Annotated[BudgetSettings | None, SettingRow(env=(), shown=_shown_budget)] = None
    http_timeout_connect: Seconds = 10.0
    http_timeout_first_byte: Seconds = 60.0
    http_timeout_idle: Seconds = 120.0
    http_timeout_write: Seconds = 30.0
    http_retry_budget: Seconds = 300.0
    http_silence_told: Seconds = 10.0
    permission_timeout: Seconds = 300.0
    edit_timeout: Seconds = 60.0
    file_encoding: Annotated[str | None, SettingRow(who="editor", check=checks.file_encoding)] = (
        None
    )
    save_accepted: Annotated[bool, _BY_EDITOR] = True
    signals: Literal["all", "bell", "none"] = "all"
    storage: Storage = "jsonl"
    storage_root: Annotated[
        Path, SettingRow(env=("KODE_HOME",), read_as=str, check=checks.folder, shown=str)
    ]
    log_dir: Annotated[Path, SettingRow(read_as=str, check=checks.folder, shown=str)]
    log_redact_content: Annotated[bool, SettingRow(env=("AGENT_LOG_REDACT_CONTENT",))] = False
    log_redact_chars: Annotated[int, Meta(ge=0, le=100_000)] = 80
    skill_folders: Annotated[
        tuple[Path, ...],
        SettingRow(env=(), read_as=list[str], check=checks.folders, shown=_shown_folders),
    ] = ()
    memory_mode: MemoryMode = "candidate"
    memory_url: Annotated[str, SettingRow(check=checks.memory_url)] = ""
    memory_key: Annotated[str, SettingRow(check=checks.api_key, shown=checks.masked_key)] = ""
    memory_timeout: Annotated[float, Meta(gt=0, le=600)] = 10.0
    trusted: Annotated[bool, SettingRow(who="handshake")] = False
    trusted_folders: Annotated[
        tuple[Path, ...],
        SettingRow(env=(), read_as=list[str], check=checks.folders, shown=_shown_folders),
    ] = ()
    comment_word: Annotated[str, Meta(max_length=40), SettingRow(env=())] = "kode:"

    def trusts(self, folders: Sequence[Path]) -> bool:
        """Return whether all these folders lie in those that the user trusts."""
        return all(
            any(folder.is_relative_to(one) for one in self.trusted_folders) for folder in folders
        )

    def __repr__(self) -> str:
        """Without values: a key must not reach a log by way of a repr."""
        return "Settings(...)"


_KEY_NAME = re.compile(r"(?i)(?:key|token|secret|password|passwd)\Z")
_SHORTEST_KEY = 8


class LoadedSettings(Struct, frozen=True, kw_only=True):
    """Settings, the source of each by name, and what was wrong with the sources.

    A wrong value is left out, so with problems `settings` may not be what the user meant
    (another host, say): call `require_valid` before acting on them for the user. `variables` are
    the user's `.env` and the environment over it, for keys that `providers` names.
    """

    settings: Settings
    sources: Mapping[str, str]
    problems: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict[str, str])

    def __repr__(self) -> str:
        """Without values: a key must not reach a log by way of a repr."""
        return "LoadedSettings(...)"

    def key(self, variables: Sequence[str]) -> str:
        """Return the key in the first of these variables that is set; empty when none is.

        Raises KodeError `ConfigInvalid` for what can be no key.
        """
        for name in variables:
            if text := self.variables.get(name, "").strip():
                try:
                    return checks.api_key(text)
                except ValueError as error:
                    raise KodeError("ConfigInvalid", f"`{name}`: {error}") from None
        return ""

    @property
    def keys(self) -> list[str]:
        """Return all values that may be keys, judged by the names of their variables."""
        named = (text.strip() for name, text in self.variables.items() if _KEY_NAME.search(name))
        long = (text for text in named if len(text) >= _SHORTEST_KEY)  # others may be any word
        return [text for text in (self.settings.api_key, self.settings.memory_key, *long) if text]

    @property
    def chooses_sampling(self) -> bool:
        """Return whether the user set `temperature` or `top_p`; only then report dropping them."""
        return not {"temperature", "top_p"}.isdisjoint(self.sources)

    def require_valid(self) -> None:
        """Check for problems. Raises KodeError `ConfigInvalid` naming every one."""
        if self.problems:
            raise KodeError("ConfigInvalid", "; ".join(self.problems))


PROJECT_SERVER_FILES = (".mcp.json", ".kode/mcp.yaml")
"""The files in which a project names MCP servers."""

PROJECT_HOOK_FILES = (".kode/hooks.json", ".agents/hooks.json", ".claude/settings.json")
"""The files in which a project names hooks."""

_FIELDS = {field.name: field for field in fields(Settings)}


def _row(name: str) -> SettingRow:
    annotations = get_args(_FIELDS[name].type)[1:]
    return next((one for one in annotations if isinstance(one, SettingRow)), SettingRow())


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))


_ROWS = {name: _row(name) for name in _FIELDS}

NAMES = tuple(name for name, row in _ROWS.items() if row.who != "handshake")
"""The settings of the user's files, spelt as in `config.yaml`."""

ENV_NAMES: Mapping[str, tuple[str, ...]] = {
    name: (f"KODE_{name.upper()}",) if (own := _ROWS[name].env) is None else own for name in NAMES
}
"""The environment variables of each setting; none for what only `config.yaml` can hold."""

EDITOR_NAMES = {_camel(name): name for name, row in _ROWS.items() if row.who == "editor"}
"""What an editor may set, by its name in the handshake (`protocol.initialize.EditorSettings`)."""


def checked(name: str, raw: object, *, is_text: bool) -> object:
    """Return the checked value of a raw one; `is_text` means that "20" may be a number.

    Raises ValueError saying what is expected, without the value.
    """
    kind, row = _FIELDS[name].type, _ROWS[name]
    try:
        value = msgspec.convert(raw, row.read_as or kind, strict=not is_text)
    except msgspec.ValidationError as error:
        plain = get_args(kind)[0] if get_origin(kind) is Annotated else kind
        if get_origin(plain) is Literal:
            raise ValueError(f"use one of {', '.join(get_args(plain))}") from None
        raise ValueError(str(error)[:1].lower() + str(error)[1:]) from None
    return value if row.check is None else row.check(value)


def describe(loaded: LoadedSettings) -> list[tuple[str, object, str]]:
    """Return name, value and source of every setting in order of declaration; secrets masked."""
    rows: list[tuple[str, object, str]] = []
    for name, row in _ROWS.items():
        value: object = getattr(loaded.settings, name)
        shown = value if row.shown is None else row.shown(value)
        rows.append((name, shown, loaded.sources.get(name, "default")))
    return rows
