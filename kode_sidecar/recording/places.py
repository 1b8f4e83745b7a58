"""The folders of a recording, and those that stand for them here."""

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

from kode_sidecar.recording.strands import as_object
from kode_sidecar.recording.transcript import Head


class Places:
    """Puts folders of this machine for those of the recording, and names for both.

    `initialize` are its params: they tell how the editor spells the folders.
    """

    def __init__(self, head: Head, initialize: Mapping[str, Any], here: Sequence[str]) -> None:
        """`here` are the URIs or paths that stand for the recording's roots, in order."""
        spelt = folder_uris(initialize)
        recorded: dict[str, str] = {}
        self._here: dict[str, str] = {}
        live: dict[str, str] = {}
        for number, root in enumerate(head.roots):
            uris = {_uri(root), *spelt[number : number + 1]}
            recorded |= {root: f"<root {number}>", **dict.fromkeys(uris, f"<uri {number}>")}
            if number < len(here):
                place, uri = _path_and_uri(here[number])
                self._here |= {root: place, **dict.fromkeys(uris, uri)}
                live |= {place: f"<root {number}>", uri: f"<uri {number}>"}
        self.here = _replacing(self._here)
        self.name_recorded = _replacing(recorded)
        self.name_live = _replacing(live)


def folder_uris(params: Mapping[str, Any]) -> list[str]:
    """The open folders as an editor spells them (LSP `workspaceFolders`, else `rootUri`)."""
    folders = params.get("workspaceFolders") or [{"uri": params.get("rootUri")}]
    uris = [as_object(folder).get("uri") for folder in cast(list[Any], folders)]
    return [uri for uri in uris if isinstance(uri, str) and uri.startswith("file:")]


def _uri(root: str) -> str:
    """The file URI of a path of any platform."""
    path = root.replace("\\", "/") if root[1:2] == ":" or root.startswith("\\") else root
    if path.startswith("//"):
        return f"file:{quote(path)}"
    drive, colon, rest = path.partition(":") if path[1:2] == ":" else ("", "", path)
    return f"file:///{drive}{colon}{quote(rest)}" if colon else f"file://{quote(path)}"


def _path_and_uri(place: str) -> tuple[str, str]:
    if place.startswith("file:"):
        return place, place
    return place, Path(place).as_uri()


def _replacing(names: Mapping[str, str]) -> Callable[[Any], Any]:
    """Puts one for the other in every text of a JSON value."""
    longest_first = sorted(names, key=len, reverse=True)
    if not longest_first:
        return lambda value: value
    pattern = re.compile(f"(?:{'|'.join(map(re.escape, longest_first))})(?![\\w-])")
    return lambda value: in_texts(value, lambda text: pattern.sub(lambda m: names[m[0]], text))


def in_texts(value: Any, change: Callable[[str], str]) -> Any:
    """A JSON value with every text in it changed."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [in_texts(item, change) for item in cast(list[Any], value)]
    if isinstance(value, dict):
        return {name: in_texts(item, change) for name, item in cast(dict[str, Any], value).items()}
    return value
