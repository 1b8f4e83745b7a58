"""Hooks that a project names: each runs only after the user's yes to exactly its text.

Its text is its entry, and the files of the project that its command names: a changed script waits
for another yes.
"""

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import msgspec

from kode_sidecar.agent.hooks.hook_file import Hook, placed_words, read_hooks
from kode_sidecar.core.real_path import real_path
from kode_sidecar.core.settings import PROJECT_HOOK_FILES
from kode_sidecar.core.whole_files import make_private
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.records.disk import replace_file

HookState = Literal["untrusted", "trusted", "changed"]
_APPROVALS = "hooks/approved.json"
_MOST_BYTES = 10_000_000
_SHOWN_DIGITS = 12


@dataclass(frozen=True)
class ProjectHook:
    """A hook of a project. `place` names it, `digest` is of its text, `files` are part of that."""

    hook: Hook
    place: str
    digest: str
    files: Sequence[str]
    state: HookState

    @property
    def id(self) -> str:
        """What the user says yes to."""
        return self.digest[:_SHOWN_DIGITS]


class ProjectHooks:
    """Reads the hooks of folders that the user trusts, and which of them the user agreed to."""

    def __init__(self, storage_root: Path) -> None:
        self._approvals = storage_root / _APPROVALS
        self.problems: list[str] = []

    def read(self, roots: Sequence[Path]) -> Sequence[ProjectHook]:
        """Return all hooks of these folders; sets `problems`."""
        self.problems = []
        agreed = self._agreed()
        found: list[ProjectHook] = []
        for root in roots:
            for file in PROJECT_HOOK_FILES:
                try:
                    hooks = read_hooks(_written(root / file), str(root / file))
                    found += [_judged(one, root, file, agreed) for one in hooks]
                except KodeError as error:
                    self.problems.append(error.message)
        return found

    def holds(self, hook: Hook, roots: Sequence[Path]) -> bool:
        """Return whether the user's yes covers what this hook is now."""
        return any(one.hook == hook and one.state == "trusted" for one in self.read(roots))

    def agree(self, one: ProjectHook) -> None:
        """Save the user's yes. Raises KodeError `Storage`."""
        try:
            make_private(self._approvals.parent)
        except OSError as error:
            raise KodeError("Storage", f"{self._approvals}: {error.strerror}.") from None
        agreed = {**self._agreed(), one.place: one.digest}
        replace_file(self._approvals, msgspec.json.encode(agreed), durable=False)

    def _agreed(self) -> Mapping[str, str]:
        try:
            return msgspec.json.decode(self._approvals.read_bytes(), type=dict[str, str])
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
            return {}


def _written(path: Path) -> Mapping[str, Any]:
    """Return what a file says of hooks. Raises KodeError `ConfigInvalid`."""
    if not path.is_file():
        return {}
    try:
        whole = msgspec.json.decode(_content(path), type=dict[str, Any])
        return msgspec.convert(whole.get("hooks", {}), dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise KodeError("ConfigInvalid", f"{path}: {error}.") from None


def _judged(hook: Hook, root: Path, file: str, agreed: Mapping[str, str]) -> ProjectHook:
    hook = replace(hook, folder=root)
    files = _files_of(hook, root)
    text = hashlib.sha256(repr((str(root), file, hook.entry)).encode("utf-8", "replace"))
    for name in files:
        text.update(f"\0{name}\0".encode("utf-8", "replace"))
        text.update(hashlib.sha256(_content(root / name)).digest())
    place = f"{root} {file} {hook.about}"
    known = agreed.get(place)
    state: HookState = "untrusted" if known is None else "changed"
    if known == text.hexdigest():
        state = "trusted"
    return ProjectHook(hook, place, text.hexdigest(), files, state)


def _files_of(hook: Hook, root: Path) -> Sequence[str]:
    """Return the files below the folder that the command names."""
    real, found = real_path(root), list[str]()
    for word in placed_words(hook.argv, str(root)):
        path = Path(os.path.join(root, word))
        try:
            if path.is_file() and real_path(path).is_relative_to(real):
                found.append(str(path.relative_to(root)) if path.is_relative_to(root) else word)
        except (OSError, ValueError):
            continue
    return found


def _content(path: Path) -> bytes:
    """Return the bytes of a file. Raises KodeError `ConfigInvalid`, also where it has just gone."""
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise KodeError("ConfigInvalid", f"{path}: {error.strerror}.") from None
    if len(content) > _MOST_BYTES:
        raise KodeError("ConfigInvalid", f"{path}: more than {_MOST_BYTES:,} bytes.")
    return content
