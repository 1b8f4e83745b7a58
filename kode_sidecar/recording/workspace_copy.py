"""The recorded folders, laid out again."""

from collections.abc import Sequence
from pathlib import Path, PurePosixPath, PureWindowsPath

from kode_sidecar.errors import KodeError
from kode_sidecar.recording.transcript import FileState, Head


class WorkspaceCopy:
    """Folders below `top`, with the names that the recorded ones had."""

    def __init__(self, head: Head, top: Path) -> None:
        pure = PureWindowsPath if head.platform == "Windows" else PurePosixPath
        self.roots: Sequence[Path] = [
            top / str(number) / (pure(root).name or "root")
            for number, root in enumerate(head.roots)
        ]
        for root in self.roots:
            root.mkdir(parents=True)

    def put(self, state: FileState) -> None:
        """Make a file as it was. Raises KodeError `Storage` for a place outside."""
        parts = state.path.split("/")
        if not 0 <= state.root < len(self.roots) or any(p in ("", ".", "..") for p in parts):
            raise KodeError("Storage", f"The recording names a file outside: {state.path}")
        path = self.roots[state.root].joinpath(*parts)
        if not path.is_relative_to(self.roots[state.root]):
            raise KodeError("Storage", f"The recording names a file outside: {state.path}")
        if state.text is None and state.base64 is None:
            path.unlink(missing_ok=True)
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        data = state.base64 if state.base64 is not None else (state.text or "").encode()
        path.write_bytes(data)
