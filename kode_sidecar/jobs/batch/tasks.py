"""Reads the tasks of a batch from a file or a folder, and plans each with one configuration."""

import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, field

from kode_sidecar.core.whole_files import read_user_text
from kode_sidecar.errors import KodeError
from kode_sidecar.jobs.run import (
    Overrides,
    RunConfig,
    config_fingerprint,
    parse_run_config,
)
from kode_sidecar.jobs.run.contracts import is_plain_id

MAX_ID_CHARS = 80
"""Limited because the id of a run joins the batch's id, the task's id and a number."""
_PLACE = re.compile(r"\{\{\s*(\w+)\s*\}\}")
_ODD = re.compile(r"[^A-Za-z0-9._-]+")
_PROMPT_SUFFIXES = (".md", ".txt")


class Task(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """One line of the file of tasks.

    Paths are relative to that file. `set` changes fields of the configuration by their path, such
    as `model.name`. With `variables` each `{{name}}` in the prompt is replaced. Without `prompt`
    and `prompt_file` the task has the prompt of the whole batch.
    """

    id: str
    prompt: str = ""
    prompt_file: str = ""
    workspace: str = ""
    set: dict[str, Any] = field(default_factory=dict[str, Any])
    variables: dict[str, str] = field(default_factory=dict[str, str])


class PlannedTask(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A task with everything its run needs. Equal fingerprints mean equal work.

    A fingerprint is made of the resolved configuration, the prompt and the path of the workspace,
    not of the files in it. `model` is empty if a script is played.
    """

    id: str
    fingerprint: str
    prompt: str
    workspace: str = ""
    fields: dict[str, Any] = field(default_factory=dict[str, Any])
    model: str = ""
    timeout: float = 0.0


def read_tasks(source: Path, prompt: str) -> Iterator[Task]:
    """Yield the tasks of a JSONL file or a folder.

    If the batch has a `prompt`, each subfolder of the folder is the workspace of a task, else each
    `.md` or `.txt` file in it is the prompt of a task. Raises KodeError `ConfigInvalid` naming the
    fault.
    """
    if source.is_dir():
        yield from _workspaces(source) if prompt else _prompts(source)
        return
    decoder = msgspec.json.Decoder(Task)
    try:
        with source.open("rb") as file:
            for number, line in enumerate(file, start=1):
                if line.strip():
                    yield _decoded(decoder, line.removeprefix(b"\xef\xbb\xbf"), source, number)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise _invalid(f"{source.name} cannot be read: {reason}.") from None


def _decoded(decoder: msgspec.json.Decoder[Task], line: bytes, source: Path, number: int) -> Task:
    try:
        return decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _invalid(f"{source.name}, line {number}: {error}") from None


def _workspaces(folder: Path) -> Iterator[Task]:
    found = sorted(one for one in folder.iterdir() if one.is_dir() and one.name[:1] != ".")
    if not found:
        raise _invalid(f"There is no folder in {folder.name} to work on.")
    for one in found:
        yield Task(id=_plain(one.name), workspace=one.name)


def _prompts(folder: Path) -> Iterator[Task]:
    found = sorted(one for one in folder.iterdir() if one.suffix in _PROMPT_SUFFIXES)
    if not found:
        raise _invalid(
            f"There is no prompt (.md, .txt) in {folder.name}. Where the folders in it are to be "
            "worked on, say with --prompt or --prompt-file what is to be done in each."
        )
    for one in found:
        yield Task(id=_plain(one.stem), prompt_file=one.name)


def _plain(name: str) -> str:
    """Return a stable id for a file name; a hash stands for letters beyond ASCII."""
    plain = _ODD.sub("-", name).strip("-.").lstrip("-._")[:MAX_ID_CHARS]
    if plain and name.isascii():
        return plain
    mark = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{plain[: MAX_ID_CHARS - 9] or 'task'}-{mark}"


class Planner:
    """Plans tasks with one configuration, which is parsed once for each different `set`.

    Raises KodeError `ConfigInvalid` if the configuration is invalid, also with a task's `set`.
    """

    def __init__(self, config: Path, source: Path, prompt: str) -> None:
        self._name = config.name
        self._text = read_user_text(config)
        self._base = source if source.is_dir() else source.parent
        self._prompt = prompt
        self._known: dict[bytes, tuple[RunConfig, str]] = {}
        self._ids: set[str] = set()
        self.config = self._config({})[0]

    def plan(self, task: Task) -> PlannedTask:
        """Return the task as it will be run."""
        self._check_id(task.id)
        try:
            config, config_print = self._config(task.set)
            prompt = _filled(self._prompt_of(task), task.variables)
            workspace = self._workspace(task)
        except KodeError as error:
            raise KodeError(
                error.code, f"task {task.id}: {error.message}", details=error.details
            ) from None
        reported = msgspec.json.encode([config_print, prompt, workspace])
        return PlannedTask(
            id=task.id,
            fingerprint=hashlib.sha256(reported).hexdigest(),
            prompt=prompt,
            workspace=workspace,
            fields=task.set,
            model="" if config.runtime.engine == "scripted" else config.model.name,
            timeout=config.runtime.timeout_seconds,
        )

    def _config(self, fields: Mapping[str, Any]) -> tuple[RunConfig, str]:
        key = msgspec.json.encode(fields, order="sorted")
        if key not in self._known:
            overrides = Overrides(fields=dict(fields))
            config = parse_run_config(self._text, self._name, overrides)
            self._known[key] = (config, config_fingerprint(config))
        return self._known[key]

    def _check_id(self, name: str) -> None:
        if not is_plain_id(name) or len(name) > MAX_ID_CHARS:
            raise _invalid(
                f"The task id {name[:100]!r} is refused: use letters, digits, `.`, `_` and `-`, at "
                f"most {MAX_ID_CHARS}, beginning with a letter or digit."
            )
        if name.casefold() in self._ids:
            raise _invalid(f"The task id {name} is given twice.")
        self._ids.add(name.casefold())

    def _prompt_of(self, task: Task) -> str:
        if task.prompt and task.prompt_file:
            raise _invalid("`prompt` and `prompt_file` cannot both be given.")
        text = task.prompt or self._prompt
        if task.prompt_file:
            text = read_user_text(self._base / task.prompt_file)
        if not text.strip():
            raise _invalid("The prompt is empty; say what is to be done.")
        return text

    def _workspace(self, task: Task) -> str:
        if not task.workspace:
            return ""
        path = os.path.abspath(self._base / task.workspace)
        if not os.path.isdir(path):
            raise _invalid(f"There is no folder {task.workspace!r}.")
        return path


def _filled(prompt: str, variables: Mapping[str, str]) -> str:
    """Return the prompt with its variables replaced; unchanged if there are none."""
    if not variables:
        return prompt

    def value(found: re.Match[str]) -> str:
        name = found[1]
        if name not in variables:
            raise _invalid(f"The prompt asks for {{{{{name}}}}}, which `variables` does not have.")
        return variables[name]

    return _PLACE.sub(value, prompt)


def _invalid(problem: str) -> KodeError:
    return KodeError("ConfigInvalid", problem)
