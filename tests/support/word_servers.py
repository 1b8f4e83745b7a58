"""An editor whose language server knows words: enough to answer every `kode/editor/*` truthfully.

A symbol is a word, defined where `def` or `class` stands before it or `=` behind it. What is wrong
is each line that holds `BUG`.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kode_sidecar.core.text.text_lines import LineIndex
from kode_sidecar.core.text.uris import file_path, path_to_uri
from tests.support.mannered_editor import ManneredEditor

SERVES = ("diagnostics", "definition", "references", "symbols", "hover", "rename")


def capabilities(*names: str) -> dict[str, Any]:
    """`initializationOptions.kode` of an editor that answers these."""
    editor: dict[str, dict[str, Any]] = {name: {} for name in names or SERVES}
    return {"capabilities": {"permission": {}, "ask": {}, "editor": editor}}


class WordServers:
    """Answers over the buffers of `editor`, and the `*.py` files below `root` that are closed.

    `asked` logs every question with its method.
    """

    def __init__(self, editor: ManneredEditor, root: Path) -> None:
        self._editor = editor
        self._root = root
        self.asked: list[tuple[str, dict[str, Any]]] = []
        for name in SERVES:
            editor.client.handle(f"kode/editor/{name}", self.answering(name))

    def answering(self, name: str) -> Any:
        """Return what answers the questions of that name, and logs them."""

        async def answer(params: dict[str, Any]) -> dict[str, Any]:
            self.asked.append((name, params))
            return getattr(self, f"_{name}")(params)

        return answer

    def _texts(self) -> Iterator[tuple[str, str]]:
        opened = {buffer.uri: buffer.text for buffer in self._editor.buffers}
        yield from opened.items()
        for path in sorted(self._root.rglob("*.py")):
            if path_to_uri(path) not in opened:
                yield path_to_uri(path), path.read_bytes().decode()

    def _index(self, text: str) -> LineIndex:
        return LineIndex(text, self._editor.encoding)

    def _found(self, pattern: str, uri: str | None = None) -> Iterator[tuple[str, re.Match[str]]]:
        for name, text in self._texts():
            if uri in (None, name):
                for match in re.finditer(pattern, text, re.MULTILINE):
                    yield name, match

    def _range(self, match: re.Match[str], group: int = 0) -> dict[str, Any]:
        index = self._index(match.string)
        return {
            "start": index.position(match.start(group)),
            "end": index.position(match.end(group)),
        }

    def _word(self, params: dict[str, Any]) -> str:
        text = self._editor.text(params["uri"])
        text = file_path(params["uri"]).read_bytes().decode() if text is None else text
        place = params["position"]
        at = self._index(text).offset(place["line"], place["character"])
        match = re.compile(r"\w+").match(text, at)
        return match[0] if match else ""

    def _locations(self, pattern: str, group: int = 0) -> dict[str, Any]:
        found = self._found(pattern)
        return {
            "locations": [{"uri": uri, "range": self._range(match, group)} for uri, match in found]
        }

    def _definition(self, params: dict[str, Any]) -> dict[str, Any]:
        word = self._word(params)
        return self._locations(rf"(?:(?:def|class) )\b({word})\b|^{word}\b(?= =)")

    def _references(self, params: dict[str, Any]) -> dict[str, Any]:
        return self._locations(rf"\b{self._word(params)}\b")

    def _hover(self, params: dict[str, Any]) -> dict[str, Any]:
        return {"text": f"({self._word(params)}) is a word"}

    def _symbols(self, params: dict[str, Any]) -> dict[str, Any]:
        query = params.get("query", "")
        found = self._found(r"(?:def|class) (\w+)", params.get("uri"))
        return {
            "symbols": [
                {"name": match[1], "kind": 12, "uri": uri, "range": self._range(match, 1)}
                for uri, match in found
                if query in match[1]
            ]
        }

    def _rename(self, params: dict[str, Any]) -> dict[str, Any]:
        word = self._word(params)
        if not params["newName"].isidentifier():
            return {"files": [], "refused": "that is no name"}
        files: dict[str, list[dict[str, Any]]] = {}
        for uri, match in self._found(rf"\b{word}\b"):
            edit = {"range": self._range(match), "newText": params["newName"]}
            files.setdefault(uri, []).append(edit)
        return {"files": [{"uri": uri, "edits": edits} for uri, edits in files.items()]}

    def _diagnostics(self, params: dict[str, Any]) -> dict[str, Any]:
        files: dict[str, list[dict[str, Any]]] = {}
        for uri, match in self._found(r"^.*\b(BUG\w*)\b.*$", params.get("uri")):
            found = {"range": self._range(match, 1), "message": f"{match[1]} is wrong"}
            files.setdefault(uri, []).append({**found, "severity": 1, "source": "words"})
        return {"files": [{"uri": uri, "diagnostics": found} for uri, found in files.items()]}
