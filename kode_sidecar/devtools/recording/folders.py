"""The open folders of a recording: their files read, laid out again, and their names replaced."""

import os
import re
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any, cast
from urllib.parse import quote

from kode_sidecar.core.text.secret_text import SecretMask, find_in_data
from kode_sidecar.core.text.uris import uri_to_path
from kode_sidecar.devtools.recording.lanes import as_object
from kode_sidecar.devtools.recording.recorded_lines import (
    FilesLeftOut,
    RecordedFile,
    RecordingHead,
    data_of,
    with_data,
)
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.workspace.credentials import is_secret_path
from kode_sidecar.infrastructure.workspace.listing import list_tree
from kode_sidecar.infrastructure.workspace.paths import Location, make_roots, screened

MAX_FILES = 5_000
MAX_FILE_BYTES = 1_000_000
MAX_BYTES = 20_000_000

_SizeAndTime = tuple[int, int]


class FolderReader:
    """Reads the files that changed since the last time.

    Ignored, large and secret files are left out, and counted. A file counts as changed when its
    size or its time does. Blocking.
    """

    def __init__(self, roots: Sequence[Path], mask: SecretMask) -> None:
        self._roots = make_roots(roots)
        self._mask = mask
        self._read: dict[tuple[int, str], _SizeAndTime] = {}
        self._secret: dict[tuple[int, str], _SizeAndTime] = {}
        self._left_out: dict[int, int] = {}
        self._bytes = 0

    def changes(self) -> Iterator[RecordedFile | FilesLeftOut]:
        """Yield the files that are new, different or gone; the first time, every file."""
        found: set[tuple[int, str]] = set()
        for number, root in enumerate(self._roots):
            start = Location(root, root.path, root.real, (), root.name)
            left_out = 0
            for file in list_tree(start, lambda _: True, MAX_FILES, lambda: False).files:
                key = (number, "/".join(file.parts))
                if file.is_link or is_secret_path(file.parts):
                    left_out += 1
                    continue
                state = self._changed(key, root.real.joinpath(*file.parts))
                if key not in self._secret:
                    found.add(key)
                left_out += state is False
                if isinstance(state, RecordedFile):
                    yield state
            if self._left_out.get(number, 0) != left_out:
                self._left_out[number] = left_out
                yield FilesLeftOut(root=number, count=left_out)
        for root_number, path in [*self._read.keys() - found]:
            del self._read[root_number, path]
            yield RecordedFile(root=root_number, path=path)

    def _changed(self, key: tuple[int, str], path: Path) -> RecordedFile | bool:
        """Return the file if it changed, True if not, False when a recording cannot hold it."""
        try:
            status = os.stat(path)
            now = (status.st_mtime_ns, status.st_size)
            if self._read.get(key) == now:
                return True
            if self._secret.pop(key, None) == now:
                self._secret[key] = now
                return False
            if status.st_size > MAX_FILE_BYTES or self._bytes + status.st_size > MAX_BYTES:
                return False
            data = path.read_bytes()
        except OSError:
            return False
        if find_in_data(data) is not None:
            self._secret[key] = now
            return False
        self._read[key] = now
        self._bytes += len(data)
        root, name = key
        return RecordedFile(root=root, path=name, **with_data(self._mask.data(data)))


class FolderCopies:
    """Folders below `top` that stand for the recorded ones and have their names."""

    def __init__(self, head: RecordingHead, top: Path) -> None:
        pure = PureWindowsPath if head.platform == "Windows" else PurePosixPath
        self.roots: Sequence[Path] = [
            top / str(number) / _plain_name(pure(root).name)
            for number, root in enumerate(head.roots)
        ]
        for root in self.roots:
            with laid_out(root.name):
                root.mkdir(parents=True)

    def write(self, state: RecordedFile) -> None:
        """Make a file as it was, or remove it.

        Raises KodeError `Storage` for a place outside, and for one where no file can be.
        """
        if not 0 <= state.root < len(self.roots):
            raise _outside(state.path)
        path = place_below(self.roots[state.root], state.path)
        with laid_out(state.path):
            if state.text is None and state.base64 is None:
                path.unlink(missing_ok=True)
                return
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data_of(state))


@contextmanager
def laid_out(name: str) -> Generator[None]:
    """Raise KodeError `Storage` where a recorded file cannot be, such as `a/b` below a file."""
    try:
        yield
    except OSError as error:
        text = (
            f"The recording's file {name} cannot be laid out: {error.strerror}. Where no disk is "
            "full, its lines contradict each other, and it has to be recorded anew."
        )
        raise KodeError("Storage", text) from None


def place_below(top: Path, name: str) -> Path:
    """Return the place of a recorded name below `top`. Raises KodeError `Storage` for another."""
    parts = name.split("/")
    if "\0" in name or any(part != _plain_name(part) for part in parts):
        raise _outside(name)
    return top.joinpath(*parts)


def _plain_name(name: str) -> str:
    """Return a name if it is one, on this system: neither a way up, nor a drive or a device."""
    if name in ("", ".", ".."):
        return "root"
    try:
        return name if os.name != "nt" or screened(name) == ("", (name,)) else "root"
    except KodeError:
        return "root"


def _outside(name: str) -> KodeError:
    return KodeError("Storage", f"The recording names a file outside: {name}")


class FolderNames:
    """Replaces the recorded folders by those of this machine, and both by names to compare them.

    `initialize` are its params: they show how the editor spells the folders. `here` are the URIs or
    paths that stand for the recording's roots, in order.
    """

    def __init__(
        self, head: RecordingHead, initialize: Mapping[str, Any], here: Sequence[str]
    ) -> None:
        spelt = folder_uris(initialize)
        recorded: dict[str, str] = {}
        to_here: dict[str, str] = {}
        live: dict[str, str] = {}
        for number, root in enumerate(head.roots):
            uris = {_uri(root), *spelt[number : number + 1]}
            recorded |= {root: f"<root {number}>", **dict.fromkeys(uris, f"<uri {number}>")}
            if number < len(here):
                place, uri = _path_and_uri(here[number])
                to_here |= {root: place, **dict.fromkeys(uris, uri)}
                live |= {place: f"<root {number}>", uri: f"<uri {number}>"}
        self.here = _replacing(to_here)
        self.name_recorded = _replacing(recorded)
        self.name_live = _replacing(live)


def folder_uris(params: Mapping[str, Any]) -> list[str]:
    """Return the open folders as an editor spells them (`workspaceFolders`, else `rootUri`)."""
    folders = _listed(params.get("workspaceFolders")) or [{"uri": params.get("rootUri")}]
    uris = [as_object(folder).get("uri") for folder in folders]
    return [uri for uri in uris if isinstance(uri, str) and uri.startswith("file:")]


def keep_inside(frame: dict[str, Any], top: Path) -> None:
    """Let a message of the client open folders below `top` only.

    In place of another one, which the recording does not hold, stands a folder that is not there.
    """
    params, opened = as_object(frame.get("params")), list[Any]()
    if frame.get("method") == "initialize":
        opened = [params, *_listed(params.get("workspaceFolders"))]
    elif frame.get("method") == "workspace/didChangeWorkspaceFolders":
        opened = _listed(as_object(params.get("event")).get("added"))
    for folder in map(as_object, opened):
        for name in {"uri", "rootUri", "rootPath"} & folder.keys():
            reported = str(folder[name] or "")
            path = Path(reported) if name == "rootPath" else uri_to_path(reported)
            if reported and path and not Path(os.path.abspath(path)).is_relative_to(top):
                absent = top / "not recorded"
                folder[name] = str(absent) if name == "rootPath" else absent.as_uri()


def in_texts(value: Any, change: Callable[[str], str]) -> Any:
    """Return a JSON value with every text in it changed."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [in_texts(item, change) for item in cast(list[Any], value)]
    if isinstance(value, dict):
        return {name: in_texts(item, change) for name, item in cast(dict[str, Any], value).items()}
    return value


def _listed(value: object) -> list[Any]:
    return cast(list[Any], value) if isinstance(value, list) else []


def _uri(root: str) -> str:
    """Return the file URI of a path of any platform."""
    path = root.replace("\\", "/") if root[1:2] == ":" or root.startswith("\\") else root
    if path.startswith("//"):
        return f"file:{quote(path)}"
    drive, colon, rest = path.partition(":") if path[1:2] == ":" else ("", "", path)
    return f"file:///{drive}{colon}{quote(rest)}" if colon else f"file://{quote(path)}"


def _path_and_uri(place: str) -> tuple[str, str]:
    return (place, place) if place.startswith("file:") else (place, Path(place).as_uri())


def _replacing(names: Mapping[str, str]) -> Callable[[Any], Any]:
    """Return a function that replaces every key of `names` in the texts of a JSON value."""
    longest_first = sorted(names, key=len, reverse=True)
    if not longest_first:
        return lambda value: value
    pattern = re.compile(f"(?:{'|'.join(map(re.escape, longest_first))})(?![\\w-])")
    return lambda value: in_texts(value, lambda text: pattern.sub(lambda m: names[m[0]], text))
