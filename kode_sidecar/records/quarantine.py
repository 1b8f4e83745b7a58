"""Takes damaged lines out of a file, into `FILE.bad` beside it, when it is opened for writing."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from kode_sidecar.errors import KodeError
from kode_sidecar.records.jsonl import DiskCounter, JsonlFile, Lines, read_lines
from kode_sidecar.records.whole_file import replace_file

T = TypeVar("T")


def open_lines(
    path: Path, decode: Callable[[bytes], T], counter: DiskCounter | None = None
) -> Lines[T]:
    """`jsonl.read_lines` by the only writer of the file; what is damaged leaves it.

    When that fails it stays for the next time: nobody is kept from the rest. Raises KodeError
    `Storage` when the file cannot be read.
    """
    lines = read_lines(path, decode, keep=False)
    if lines.problems:
        lines = read_lines(path, decode)
        with suppress(KodeError):
            if lines.damaged:
                _keep(path.with_name(f"{path.name}.bad"), lines.damaged, counter)
            whole = b"".join(line + b"\n" for line in lines.whole)
            replace_file(path, whole, durable=True, counter=counter)
    return lines


def _keep(path: Path, damaged: list[bytes], counter: DiskCounter | None) -> None:
    file = JsonlFile(path, counter)
    try:
        for line in damaged:
            file.append(line)
        file.sync()
    finally:
        file.close()
