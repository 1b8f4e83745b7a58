"""What scouts said and were told: `conversations/{id}/scouts/{scout}.jsonl`."""

from pathlib import Path

from kode_sidecar.domain.message import Message
from kode_sidecar.records.jsonl import JsonlFile
from kode_sidecar.records.message_record import encode_message
from kode_sidecar.records.storage_error import not_saved

FOLDER = "scouts"


class ScoutLog:
    """Messages as in `messages.jsonl`, in the order written."""

    def __init__(self, path: Path) -> None:
        self._file = JsonlFile(path)

    def append(self, message: Message) -> None:
        """Write one finished message; on disk when this returns. Raises KodeError `Storage`."""
        self._file.append(encode_message(message))

    def close(self) -> None:
        """Release the file."""
        self._file.close()


def open_scout_log(conversation_folder: Path, scout_id: str) -> ScoutLog:
    """The record of a scout, whose id is one of ours; the folder appears with the first.

    Raises KodeError `Storage`.
    """
    folder = conversation_folder / FOLDER
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise not_saved(FOLDER, error) from None
    return ScoutLog(folder / f"{scout_id}.jsonl")


def scout_logs(conversation_folder: Path) -> list[Path]:
    """The records of all scouts of a conversation, in the order of their names."""
    return sorted((conversation_folder / FOLDER).glob("*.jsonl"))
