"""`kode-sidecar hooks`: lists hooks, and takes the user's yes to one that a project names."""

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from kode_sidecar.agent.hooks.hook_file import read_hooks
from kode_sidecar.core.settings import load_settings
from kode_sidecar.core.text.shown_text import one_line
from kode_sidecar.errors import KodeError
from kode_sidecar.servers.boot.project_hooks import ProjectHook, ProjectHooks

Shown = dict[str, Any]
_STATES = {
    "untrusted": "waits for your yes",
    "trusted": "trusted",
    "changed": "changed since your yes",
}


def hooks_command(options: argparse.Namespace) -> int:
    """List the hooks, or save a yes; return 1 if some cannot be read. Raises KodeError."""
    settings = load_settings(os.environ, env_file=options.env_file).settings
    project, root = ProjectHooks(settings.storage_root), Path.cwd()
    found = project.read([root])
    if options.trust is not None:
        chosen = _chosen(found, options.trust)
        project.agree(chosen)
        found = [one for one in project.read([root]) if one.digest == chosen.digest]
    shown: list[Shown] = [_view(one) for one in found]
    if options.trust is None:
        own = read_hooks(settings.hooks, "`hooks`")
        shown = [
            *({"source": "user", "hook": one.about, "state": "trusted"} for one in own),
            *shown,
        ]
    lines = _lines(shown, project.problems)
    if options.json:
        lines = iter([msgspec.json.encode({"hooks": shown, "problems": project.problems}).decode()])
    sys.stdout.write("\n".join(lines) + "\n")
    return 1 if project.problems else 0


def _chosen(found: Sequence[ProjectHook], wanted: str) -> ProjectHook:
    """Return the hook with an id. Raises KodeError `NotFound`: its text may have changed."""
    chosen = next((one for one in found if one.id == wanted), None)
    if chosen is None:
        text = f"No hook of this folder has the text {wanted}: see `kode-sidecar hooks`."
        raise KodeError("NotFound", text)
    return chosen


def _view(one: ProjectHook) -> Shown:
    return {
        "source": "project",
        "hook": one.hook.about,
        "matcher": one.hook.matcher and one.hook.matcher.pattern,
        "state": one.state,
        "id": one.id,
        "files": one.files,
    }


def _lines(shown: Sequence[Shown], problems: Sequence[str]) -> Iterator[str]:
    for one in shown:
        yield one_line(f"{one['source']}, {_STATES[str(one['state'])]}: {one['hook']}")
        if one.get("matcher"):
            yield one_line(f"    for {one['matcher']}")
        if one.get("files"):
            yield one_line(f"    runs {', '.join(one['files'])}")
        if one["state"] != "trusted":
            yield f"    read it, then: kode-sidecar hooks --trust {one['id']}"
    yield from (one_line(f"! {problem}") for problem in problems)
    if not shown and not problems:
        yield "There are no hooks."
