"""Every setting: its type and default, its names in each source, and its check."""

import re
from collections.abc import Callable, Mapping, Sequence
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
    """The commands that the model may run in a session, in a workspace that the editor trusts.

    `run`: no command, any that the user approves, or those that `allow` lists. `allow` and `deny`
    are first words of commands. `environment` are names of variables that commands get, `programs`
    maps program names to files. `sandbox` blocks the network, unless `network`, and all folders
    except the open and `readable` ones; it exists on Linux only, and elsewhere no command runs with
    it.
    """

    run: Literal["off", "ask", "list"] | bool = "off"
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


class BudgetSettings(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What a turn, a session and a day may cost; a missing limit is no limit."""

    currency: Annotated[str, Meta(pattern="^[A-Z]{3}$")]
    turn: Annotated[float, Meta(gt=0)] | None = None
    session: Annotated[float, Meta(gt=0)] | None = None
    day: Annotated[float, Meta(gt=0)] | None = None


class Settings(Struct, frozen=True, kw_only=True):
    """Every setting. Times are seconds, folders absolute.

    `proxy` is used only when given here: the system's proxies are ignored. `window_messages`
    is how many stored messages the model gets, `context_window` overrides its known window (in
    tokens). `commands` is what the model may run, `budget` what it may cost.
    `permission_timeout` is how long a question to the user stays open; no answer means no.
    `edit_timeout` is how long the editor may take for an edit, perhaps asking its user, before
    other edits proceed. `providers`, `logical_models`, `agents` and `mcp` stay as written:
    `providers.user_providers`, `context.agents` and `mcp.config` read them.
    `http_retry_budget` is how long after the first attempt another one may
    begin. `file_encoding` reads files that are not UTF-8.
    `storage` is how the messages of new sessions are saved; existing sessions keep theirs.
    `log_redact_content` limits prompts and replies in the log to their first `log_redact_chars`
    characters. `skill_folders` hold skills besides the user's own; `memory_mode` says where
    memories are saved, `memory_url` and `memory_key` are for `external`, `memory_timeout` for each
    call to it. `trusted` is the editor's statement about the workspace, in the handshake only.
    """

    api_key: str = ""
    base_url: Text = "https://api.moonshot.cn/v1"
    proxy: str | None = None
    model: Text = "ide-chat"
    agent: Text = "ide-helper"
    mode: Mode = "review"
    locale: Locale = "zh"
    window_messages: Annotated[int, Meta(ge=1, le=10_000)] = 20
    temperature: Annotated[float, Meta(ge=0, le=2)] = 0.3
    top_p: Annotated[float, Meta(gt=0, le=1)] = 0.95
    max_tokens: Annotated[int, Meta(ge=1)] | None = None
    context_window: Annotated[int, Meta(ge=2_000)] | None = None
    providers: Mapping[str, Any] = field(default_factory=dict[str, Any])
    logical_models: Mapping[str, Any] = field(default_factory=dict[str, Any])
    agents: Mapping[str, Any] = field(default_factory=dict[str, Any])
    mcp: Mapping[str, Any] = field(default_factory=dict[str, Any])
    commands: CommandSettings = CommandSettings()
    budget: BudgetSettings | None = None
    http_timeout_connect: Seconds = 10.0
    http_timeout_first_byte: Seconds = 60.0
    http_timeout_idle: Seconds = 120.0
    http_timeout_write: Seconds = 30.0
    http_retry_budget: Seconds = 300.0
    http_silence_told: Seconds = 10.0
    permission_timeout: Seconds = 300.0
    edit_timeout: Seconds = 60.0
    file_encoding: str | None = None
    storage: Storage = "jsonl"
    storage_root: Path
    log_dir: Path
    log_redact_content: bool = False
    log_redact_chars: Annotated[int, Meta(ge=0, le=100_000)] = 80
    skill_folders: tuple[Path, ...] = ()
    memory_mode: MemoryMode = "candidate"
    memory_url: str = ""
    memory_key: str = ""
    memory_timeout: Annotated[float, Meta(gt=0, le=600)] = 10.0
    trusted: bool = False

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

NAMES = tuple(field.name for field in fields(Settings) if field.name != "trusted")
"""The settings of the user's files, spelt as in `config.yaml`."""

# Read from KODE_<NAME> unless a setting has variables of its own here; the first one set wins.
_OWN_ENV_NAMES = {
    "api_key": ("KIMI_API_KEY", "MOONSHOT_API_KEY"),
    "base_url": ("KIMI_BASE_URL",),
    "storage_root": ("KODE_HOME",),
    "log_redact_content": ("AGENT_LOG_REDACT_CONTENT",),
    "providers": (),
    "logical_models": (),
    "agents": (),
    "mcp": (),
    "commands": (),
    "budget": (),
    "skill_folders": (),
}
ENV_NAMES = {name: _OWN_ENV_NAMES.get(name, (f"KODE_{name.upper()}",)) for name in NAMES}
"""The environment variables of each setting; none for what only `config.yaml` can hold."""

EDITOR_NAMES = {
    "mode": "mode",
    "agent": "agent",
    "model": "model",
    "locale": "locale",
    "fileEncoding": "file_encoding",
}
"""What an editor may set, by its name in the handshake. An editor's settings may come from the
workspace it has open, so keys, hosts, proxies, logs and storage are not among them."""

_TYPES = {field.name: field.type for field in fields(Settings)}
# Read as text, then turned into their type by a check.
_RAW_TYPES: Mapping[str, Any] = {
    "locale": str,
    "storage_root": str,
    "log_dir": str,
    "skill_folders": list[str],
}
_CHECKS: Mapping[str, Callable[[Any], object]] = {
    "api_key": checks.api_key,
    "base_url": checks.base_url,
    "proxy": checks.proxy,
    "locale": checks.locale,
    "file_encoding": checks.file_encoding,
    "storage_root": checks.folder,
    "log_dir": checks.folder,
    "skill_folders": checks.folders,
    "memory_url": checks.memory_url,
    "memory_key": checks.api_key,
}


def checked(name: str, raw: object, *, is_text: bool) -> object:
    """Return the checked value of a raw one; `is_text` means that "20" may be a number.

    Raises ValueError saying what is expected, without the value.
    """
    kind, check = _TYPES[name], _CHECKS.get(name)
    try:
        value = msgspec.convert(raw, _RAW_TYPES.get(name, kind), strict=not is_text)
    except msgspec.ValidationError as error:
        if get_origin(kind) is Literal:
            raise ValueError(f"use one of {', '.join(get_args(kind))}") from None
        raise ValueError(str(error)[:1].lower() + str(error)[1:]) from None
    return value if check is None else check(value)


def describe(loaded: LoadedSettings) -> list[tuple[str, object, str]]:
    """Return name, value and source of every setting in order of declaration; secrets masked."""
    rows: list[tuple[str, object, str]] = []
    for name in _TYPES:
        value: object = getattr(loaded.settings, name)
        if name in ("api_key", "memory_key"):
            value = checks.masked_key(getattr(loaded.settings, name))
        elif name == "proxy":
            value = checks.masked_proxy(loaded.settings.proxy)
        elif isinstance(value, Path):
            value = str(value)
        elif name == "skill_folders":
            value = ", ".join(map(str, loaded.settings.skill_folders))
        elif name in ("providers", "logical_models", "agents", "mcp"):
            # Their contents may be anything; the doctor's checks report what matters.
            value = ", ".join(getattr(loaded.settings, name))
        elif name == "commands":
            value = loaded.settings.commands.mode
        elif name == "budget" and loaded.settings.budget is not None:
            value = msgspec.to_builtins(loaded.settings.budget)
        rows.append((name, value, loaded.sources.get(name, "default")))
    return rows
