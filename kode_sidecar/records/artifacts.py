"""Large tool output, kept whole as `conversations/{id}/artifacts/{artifact}.txt`."""

import hashlib
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

from kode_sidecar.domain.message import Blob
from kode_sidecar.protocol.events import artifact_ref
from kode_sidecar.records.json_text import clean_text
from kode_sidecar.records.storage_error import not_read, not_saved

_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
# An id of ours: too long for the name of a device, and no way out of the folder (W11).
_ID = re.compile(r"[a-z0-9]{6,64}")


class Artifacts:
    """The artifacts of one conversation; its folder appears with the first of them."""

    def __init__(self, conversation_folder: Path, new_id: Callable[[], str]) -> None:
        self._conversation = conversation_folder
        self._new_id = new_id

    def save(self, text: str) -> Blob:
        """Write a text; what reads it again. Raises KodeError `Storage`."""
        artifact_id = self._new_id()
        path = _path(self._conversation, artifact_id)
        data = clean_text(text).encode()
        try:
            path.parent.mkdir(mode=0o700, exist_ok=True)
            fd = os.open(path, _FLAGS, 0o600)
            with os.fdopen(fd, "wb") as file:
                file.write(data)
        except OSError as error:
            raise not_saved(f"artifacts/{path.name}", error) from None
        return Blob(
            ref=artifact_ref(self._conversation.name, artifact_id),
            bytes=len(data),
            sha256=hashlib.sha256(data).hexdigest(),
        )


def copy_artifact(conversation_folder: Path, artifact_id: str, other_folder: Path) -> bool:
    """Keep an artifact in another conversation's folder, too; False if there is none.

    Raises KodeError `Storage`.
    """
    if not _ID.fullmatch(artifact_id):
        return False
    path, copy = _path(conversation_folder, artifact_id), _path(other_folder, artifact_id)
    if path.is_symlink() or not path.is_file():
        return False
    try:
        copy.parent.mkdir(mode=0o700, exist_ok=True)
        fd = os.open(copy, _FLAGS, 0o600)
        with path.open("rb") as source, os.fdopen(fd, "wb") as target:
            shutil.copyfileobj(source, target)
    except FileExistsError:
        return True  # two results of one path may name it
    except OSError as error:
        raise not_saved(f"artifacts/{copy.name}", error) from None
    return True


def read_artifact(
    conversation_folder: Path, artifact_id: str, offset: int, length: int
) -> tuple[int, bytes] | None:
    """The size of an artifact and some of its bytes; None if there is no such artifact.

    Raises KodeError `Storage`.
    """
    if not _ID.fullmatch(artifact_id):
        return None
    path = _path(conversation_folder, artifact_id)
    if path.is_symlink() or not path.is_file():
        return None
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            file.seek(min(offset, size))
            return size, file.read(length)
    except OSError as error:
        raise not_read(f"artifacts/{path.name}", error) from None


def _path(conversation_folder: Path, artifact_id: str) -> Path:
    return conversation_folder / "artifacts" / f"{artifact_id}.txt"
