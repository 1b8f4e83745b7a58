"""Files that an editor creates, renames and deletes on disk (LSP 3.17 "File Resource changes")."""

import errno
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal


@dataclass(frozen=True)
class FileOperation:
    """One change of one file; `target` is where a renamed one goes. Nothing is overwritten."""

    kind: Literal["create", "rename", "delete"]
    path: Path
    target: Path = Path()

    def carry_out(self) -> None:
        """Do it; missing folders are made. Raises OSError."""
        match self.kind:
            case "create":
                self.path.parent.mkdir(parents=True, exist_ok=True)
                self.path.open("xb").close()
            case "rename":
                if os.path.lexists(self.target):
                    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), self.target)
                self.target.parent.mkdir(parents=True, exist_ok=True)
                self.path.rename(self.target)
            case "delete":
                self.path.unlink()
