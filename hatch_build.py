"""Writes the commit into wheel and sdist, for `kode-sidecar --version`; hatchling runs it."""

import json
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

sys.path.insert(0, str(Path(__file__).parent))  # a build is isolated from the project

from freeze.commit import commit_of
from kode_sidecar.servers.boot.unpacked import MARKER


class CommitHook(BuildHookInterface):  # type: ignore[type-arg]
    """An sdist passes the file on to the wheel that is made from it, without a repository."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called before a target is built; an editable install asks its checkout."""
        commit = commit_of(Path(self.root))
        if version == "editable" or not commit:
            return
        marker = Path(self.root, "build", MARKER)
        marker.parent.mkdir(exist_ok=True)
        marker.write_text(json.dumps({"commit": commit}), encoding="utf-8")
        build_data["force_include"][str(marker)] = f"kode_sidecar/{MARKER}"
