"""The configuration of a run (B2): its fields, their defaults and their checks.

An unknown field, a wrong type or a value out of bounds is refused with file, line and field. Lists
without a meaningful order are sorted, so that equal configurations have equal fingerprints."""

import hashlib
import json
import re
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn, cast

import msgspec
from msgspec import Meta, Struct, field
from msgspec.structs import replace

from kode_sidecar.core.domain.budget import AMOUNT
from kode_sidecar.core.domain.permission import is_pattern
from kode_sidecar.core.text.yaml_text import YamlDocument, YamlProblem, read_yaml
from kode_sidecar.core.whole_files import read_user_text
from kode_sidecar.errors import KodeError
from kode_sidecar.jobs.run.sandbox import DELIVERABLES, zone_parts

Text = Annotated[str, Meta(min_length=1, max_length=100_000)]
Name = Annotated[str, Meta(min_length=1, max_length=200)]
Id = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
EnvName = Annotated[str, Meta(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,127}$")]
FolderPath = Annotated[str, Meta(min_length=1, max_length=4_096)]
Seconds = Annotated[float, Meta(gt=0, le=86_400)]
WriteMode = Literal["disabled", "candidate", "external"]
EngineName = Literal["native", "scripted", "pydantic-ai"]


class _Part(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A part of the file."""


class SchemaPart(_Part, frozen=True, kw_only=True):
    """`kgent`: the version of the file format; the only one is 1."""

    schema_version: Literal[1]


class ModelPart(_Part, frozen=True, kw_only=True):
    """`model`, may be written as its name alone. Null leaves a value to the provider."""

    name: Name = "ide-chat"
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = 0.3
    top_p: Annotated[float, Meta(gt=0, le=1)] | None = 0.95
    max_tokens: Annotated[int, Meta(ge=1)] | None = None


class ProfilePart(_Part, frozen=True, kw_only=True):
    """`profile`: who does the work. `id` stays the same when the texts change.

    `language` is that of the prompts around the role; null means Chinese if the role has Chinese
    characters, else English.
    """

    id: Id
    role: Text
    rules: tuple[Text, ...] = ()
    language: Literal["zh", "en"] | None = None


class SkillsPart(_Part, frozen=True, kw_only=True):
    """`skills`: `enabled` ids must exist, in `folders` first, then in the user's own folder.

    `max_bytes` limits what one skill adds to the prompt, references included. Folders are relative
    to the configuration.
    """

    enabled: tuple[Id, ...] = ()
    folders: tuple[FolderPath, ...] = ()
    max_bytes: Annotated[int, Meta(ge=1_000, le=1_000_000)] = 40_000


class ShellPart(_Part, frozen=True, kw_only=True):
    """`tools.shell`: `run_command`. `allow` lists the first words of allowed commands.

    `environment` names variables that a command may see besides the harmless ones.
    """

    enabled: bool = False
    allow: tuple[Annotated[tuple[Name, ...], Meta(min_length=1)], ...] = ()
    environment: tuple[EnvName, ...] = ()
    timeout_seconds: Seconds = 60.0
    max_output_bytes: Annotated[int, Meta(ge=1_000, le=10_000_000)] = 200_000


class FilesystemPart(_Part, frozen=True, kw_only=True):
    """`tools.filesystem`: whether files of the copied project may be deleted."""

    delete: bool = False


class PermissionPart(_Part, frozen=True, kw_only=True):
    """One rule of `tools.permissions`: a tool and a path; `**` at its end means all below."""

    tool: Name
    path: Name = "**"
    effect: Literal["allow", "deny"]


class ToolsPart(_Part, frozen=True, kw_only=True):
    """`tools`: which are offered (null: all that are on) and what is refused; deny wins.

    `servers` names MCP servers of the user's own settings; no others start.
    """

    offer: tuple[Name, ...] | None = None
    servers: tuple[Id, ...] = ()
    permissions: tuple[PermissionPart, ...] = ()
    shell: ShellPart = ShellPart()
    filesystem: FilesystemPart = FilesystemPart()


class ExternalMemoryPart(_Part, frozen=True, kw_only=True):
    """`memory.external`: a service behind the HTTP contract; the key stays in the environment."""

    url: Annotated[str, Meta(pattern=r"^https?://", max_length=2_000)]
    token_env: EnvName | None = None
    timeout_seconds: Seconds = 10.0


class MemoryPart(_Part, frozen=True, kw_only=True):
    """`memory`: where the model's memories are written, and how many it gets back."""

    write_mode: WriteMode = "candidate"
    scope: Name = "default"
    recall_limit: Annotated[int, Meta(ge=0, le=50)] = 5
    external: ExternalMemoryPart | None = None


class WorkspacePart(_Part, frozen=True, kw_only=True):
    """`workspace`: a project to copy into the sandbox; the original is only read.

    `import` is relative to the configuration, `exclude` are patterns as in `.gitignore`. `include`
    names files to copy even if they are ignored or hold credentials, relative to the project.
    With `git` the history of a Git project is copied too, for commands such as `git diff`.
    """

    source: FolderPath | None = field(default=None, name="import")
    exclude: tuple[Name, ...] = ()
    include: tuple[FolderPath, ...] = ()
    git: bool = False
    max_bytes: Annotated[int, Meta(ge=1, le=10_000_000_000)] = 500_000_000


class DeliverablePart(_Part, frozen=True, kw_only=True):
    """One of `deliverables`. A required one lies under `deliverables/` and is not empty."""

    path: Name
    required: bool = True
    description: str = ""
    content_type: Name | None = None
    min_bytes: Annotated[int, Meta(ge=0)] = 1


class GoalPart(_Part, frozen=True, kw_only=True):
    """`goal`: the run goes on until `command` has exited with 0 in `folder` after the last edit.

    It ends after `rounds` all the same, or with its time or budget.
    """

    command: Annotated[tuple[Name, ...], Meta(min_length=1)]
    folder: Name = "workspace"
    rounds: Annotated[int, Meta(ge=1, le=100)] = 6


class RuntimePart(_Part, frozen=True, kw_only=True):
    """`runtime`: the engine and its limits. `script` is what the scripted engine plays.

    `budget` is what the whole run may cost, such as `0.5CNY`.
    """

    stream: bool = True
    max_steps: Annotated[int, Meta(ge=1, le=1_000)] = 30
    timeout_seconds: Seconds = 900.0
    budget: Annotated[str, Meta(pattern=AMOUNT)] | None = None
    engine: EngineName = "native"
    script: FolderPath | None = None


class RunConfig(_Part, frozen=True, kw_only=True):
    """A whole configuration."""

    kgent: SchemaPart
    model: ModelPart = ModelPart()
    profile: ProfilePart
    skills: SkillsPart = SkillsPart()
    tools: ToolsPart = ToolsPart()
    memory: MemoryPart = MemoryPart()
    workspace: WorkspacePart = WorkspacePart()
    deliverables: tuple[DeliverablePart, ...] = ()
    runtime: RuntimePart = RuntimePart()
    goal: GoalPart | None = None


class Overrides(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the command line changes; None leaves the configured value.

    `fields` are values by the path of their field, such as `model.name`.
    """

    stream: bool | None = None
    max_steps: int | None = None
    timeout_seconds: float | None = None
    model: str | None = None
    workspace: str | None = None
    fields: dict[str, Any] = field(default_factory=dict[str, Any])


def parse_run_config(text: str, name: str, overrides: Overrides | None = None) -> RunConfig:
    """Return the configuration of a text: defaults filled in, sets sorted, overrides applied.

    Raises KodeError `ConfigInvalid`, or `PathOutsideRoots` for an unsafe path; both name file, line
    and field.
    """
    overrides = overrides or Overrides()
    try:
        document = read_yaml(text)
        value: Any = document.value
        if isinstance(value, dict):
            fields = cast(dict[str, Any], value)
            _expand_model(fields)
            for path, new in overrides.fields.items():
                _set_field(fields, path, new)
            _expand_model(fields)
        config = _sorted(document.convert(RunConfig))
    except YamlProblem as error:
        raise _located(name, error, overrides) from None
    _check(config, document, name, overrides)
    return _override(config, overrides)


def _expand_model(fields: dict[str, Any]) -> None:
    """Expand a model that is given by its name alone."""
    if isinstance(fields.get("model"), str):
        fields["model"] = {"name": fields["model"]}


def _set_field(value: dict[str, Any], path: str, new: Any) -> None:
    """Set the field at `path`. Raises KodeError `ConfigInvalid`."""
    *parts, last = path.split(".")
    for name in parts:
        inner = value.setdefault(name, {})
        if not isinstance(inner, dict):
            text = f"`{path}` cannot be set: `{name}` has no fields."
            raise KodeError("ConfigInvalid", text, details={"field": path})
        value = cast(dict[str, Any], inner)
    value[last] = new


def read_run_config(path: Path, overrides: Overrides | None = None) -> RunConfig:
    """Read and parse a configuration. Also raises KodeError `ConfigInvalid` if unreadable."""
    return parse_run_config(read_user_text(path), path.name, overrides)


def _sorted(config: RunConfig) -> RunConfig:
    """Sort the lists that mean sets, without duplicates."""
    shell, offer = config.tools.shell, config.tools.offer
    tools = replace(
        config.tools,
        offer=None if offer is None else _set(offer),
        servers=_set(config.tools.servers),
        permissions=tuple(
            sorted(set(config.tools.permissions), key=lambda one: (one.tool, one.path, one.effect))
        ),
        shell=replace(shell, allow=_set(shell.allow), environment=_set(shell.environment)),
    )
    return replace(
        config,
        tools=tools,
        skills=replace(config.skills, enabled=_set(config.skills.enabled)),
        workspace=replace(config.workspace, include=_set(config.workspace.include)),
        deliverables=tuple(sorted(config.deliverables, key=lambda one: one.path)),
    )


def _set(items: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(sorted(set(items)))


def _check(config: RunConfig, document: YamlDocument, name: str, overrides: Overrides) -> None:
    """Check what types cannot express."""

    def refuse(path: str, problem: str, code: str = "ConfigInvalid") -> NoReturn:
        line = document.line_of(f"$.{path}")
        located = YamlProblem(problem, line=line, path=path)
        raise _located(name, located, overrides, code) from None

    value: Any = document.value
    seen: set[str] = set()
    for position, item in enumerate(value.get("deliverables", [])):
        place = f"deliverables[{position}].path"
        try:
            parts = zone_parts(item["path"])
        except KodeError as error:
            refuse(place, error.message, error.code)
        if item.get("required", True) and parts[0] != DELIVERABLES:
            refuse(place, f"a required deliverable lies under {DELIVERABLES}/")
        if "/".join(parts).casefold() in seen:
            refuse(place, "this deliverable is given twice")
        seen.add("/".join(parts).casefold())
    for position, rule in enumerate(value.get("tools", {}).get("permissions", [])):
        if not is_pattern(rule.get("path", "**")):
            place = f"tools.permissions[{position}].path"
            refuse(place, "write a path, one with /** at its end, or **")
    if config.memory.write_mode == "external" and config.memory.external is None:
        refuse("memory.write_mode", "`external` needs `memory.external.url`")
    if config.goal is not None and not config.tools.shell.enabled:
        refuse("goal", "its command needs `tools.shell.enabled: true`")
    if config.goal is not None and config.runtime.engine == "pydantic-ai":
        refuse("goal", "the engine `pydantic-ai` knows no goals: use `native`")
    if (config.runtime.engine == "scripted") != (config.runtime.script is not None):
        refuse("runtime", "the engine `scripted`, and only that, needs `script`")


def _located(
    name: str, problem: YamlProblem, overrides: Overrides, code: str = "ConfigInvalid"
) -> KodeError:
    """Return the problem with file, line and field, or with the override that caused it."""
    for path in overrides.fields:
        within = problem.path == path or problem.path.startswith((f"{path}.", f"{path}["))
        # An unknown field is reported at its section, which an override may share.
        unknown = "unknown field" in problem.problem and path.startswith(f"{problem.path}.")
        if within or unknown:
            name, problem.line, problem.column = f"set {path}", 0, 0
    where = f", line {problem.line}" if problem.line else ""
    where += f", column {problem.column}" if problem.column else ""
    field_path = f"`{problem.path}`: " if problem.path else ""
    broken = "" if problem.path or not problem.column else "not valid YAML: "
    return KodeError(
        code,
        f"{name}{where}: {field_path}{broken}{problem.problem}",
        details={"file": name, "line": problem.line, "field": problem.path},
    )


def _override(config: RunConfig, overrides: Overrides) -> RunConfig:
    """Apply the overrides of the command line, with the same checks."""
    runtime = {
        name: value
        for name in ("stream", "max_steps", "timeout_seconds")
        if (value := getattr(overrides, name)) is not None
    }
    raw: dict[str, Any] = msgspec.to_builtins(config)
    raw["runtime"].update(runtime)
    if overrides.model is not None:
        raw["model"]["name"] = overrides.model
    if overrides.workspace is not None:
        raw["workspace"]["import"] = overrides.workspace
    try:
        return msgspec.convert(raw, RunConfig)
    except msgspec.ValidationError as error:
        raise KodeError("ConfigInvalid", f"command line: {error}") from None


_USER_INFO = re.compile(r"(?<=://)[^/@\s]*@")
MASK = "***"


def config_fingerprint(config: RunConfig) -> str:
    """Return the SHA-256 of the resolved configuration: equal for equal meanings.

    Key order, explicit defaults, values repeated on the command line and the file's place make no
    difference.
    """
    text = json.dumps(msgspec.to_builtins(config), sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def recorded_config(config: RunConfig) -> dict[str, Any]:
    """Return the configuration as plain data, with names and passwords in URLs masked.

    Keys are never in a configuration: it names environment variables instead.
    """
    data: dict[str, Any] = msgspec.to_builtins(config)
    external: dict[str, Any] | None = data["memory"]["external"]
    if external is not None:
        external["url"] = _USER_INFO.sub(f"{MASK}@", external["url"])
    return data
