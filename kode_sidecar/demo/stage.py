"""Where the demo plays: a copy of the sample project, a state folder, an environment."""

import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
EDITED_FILE = "src/receipt.js"
# Settings of the user's own must not leak into a recorded play.
_OWN_SETTINGS = ("KODE_", "KIMI_", "MOONSHOT_", "AGENT_LOG_")


@dataclass(frozen=True)
class Stage:
    """Folders of one play; they are kept so that the records can be looked at."""

    project: Path
    home: Path

    @property
    def file(self) -> Path:
        """The file that gets edited."""
        return self.project / EDITED_FILE

    @property
    def unsaved_text(self) -> str:
        """What the editor's buffer holds of it, ahead of the disk."""
        return (HERE / "unsaved" / self.file.name).read_bytes().decode("utf-8")


def set_stage() -> Stage:
    """A fresh stage below the system's folder for temporary files. Raises OSError."""
    top = Path(tempfile.mkdtemp(prefix="kode-demo-")).resolve()
    shutil.copytree(HERE / "sample_project", top / "tea-shop")
    (top / "home").mkdir()
    return Stage(top / "tea-shop", top / "home")


def recorded_environment(environ: Mapping[str, str], base_url: str) -> dict[str, str]:
    """The child's environment when a recording answers."""
    kept = {
        name: value for name, value in environ.items() if not name.upper().startswith(_OWN_SETTINGS)
    }
    return {**kept, "KIMI_BASE_URL": base_url, "KIMI_API_KEY": "sk-demo-recorded"}


def has_key(environ: Mapping[str, str]) -> bool:
    """Can the real service be asked?"""
    return bool(environ.get("KIMI_API_KEY") or environ.get("MOONSHOT_API_KEY"))
