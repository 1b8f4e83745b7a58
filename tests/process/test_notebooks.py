"""A notebook that the editor holds as cells: read with what is unsaved, edited by its cells."""

import json
from pathlib import Path
from typing import Any

from kode_sidecar.core.text.uris import path_to_uri
from kode_sidecar.terminal.client.buffer import Buffer
from tests.process.test_edit_variants import results, undo
from tests.support.mannered_editor import Manners, StyledBuffer
from tests.support.model_script import answer, text, tool_call
from tests.support.sidecar import World, only_change_set, sidecar

CELLS: list[dict[str, Any]] = [
    {"cell_type": "code", "execution_count": 1, "id": "a1", "metadata": {}, "outputs": [{"x": 1}]},
    {"cell_type": "markdown", "id": "b2", "metadata": {}},
]
SOURCES = ["x = 1\nprint(x)", "# Title"]


def notebook(*sources: str) -> str:
    cells: list[dict[str, Any]] = [
        {**cell, "source": source.splitlines(keepends=True)}
        for cell, source in zip(CELLS, sources, strict=True)
    ]
    parts: dict[str, Any] = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(parts, indent=1) + "\n"


class OpenNotebook:
    """A notebook in the editor of a test. Its cells are buffers, reported as a notebook's are."""

    def __init__(self, world: World, path: Path, sources: list[str], kind: str = "jupyter") -> None:
        self.world, self.uri, self.version = world, path_to_uri(path), 1
        self.cells = [self.cell(at, source) for at, source in enumerate(sources)]
        world.editor.report = self.report
        refs = [
            {"kind": 2 if at == 0 else 1, "document": cell.uri}
            for at, cell in enumerate(self.cells)
        ]
        document = {"uri": self.uri, "notebookType": kind, "version": 1, "cells": refs}
        texts = [cell.did_open()["textDocument"] for cell in self.cells]
        self.notify("didOpen", {"notebookDocument": document, "cellTextDocuments": texts})

    def cell(self, at: int, source: str) -> StyledBuffer:
        uri = f"file:///cells/{at}.py"  # of any scheme: what an editor calls its cells
        buffer = StyledBuffer(uri, source, language_id="python", version=1, encoding="utf-16")
        buffer.manners = Manners()
        self.world.editor.hold(buffer)
        return buffer

    def notify(self, what: str, params: dict[str, Any]) -> None:
        self.world.client.notify(f"notebookDocument/{what}", params)

    def change(self, cells: dict[str, Any]) -> None:
        self.version += 1
        document = {"uri": self.uri, "version": self.version}
        self.notify("didChange", {"notebookDocument": document, "change": {"cells": cells}})

    def report(self, buffer: Buffer) -> None:
        params = buffer.take_did_change()
        if params is not None:
            news = {"document": params["textDocument"], "changes": params["contentChanges"]}
            self.change({"textContent": [news]})

    def add(self, at: int, source: str) -> StyledBuffer:
        """The user adds a cell."""
        new = self.cell(len(self.cells), source)
        array = {"start": at, "deleteCount": 0, "cells": [{"kind": 2, "document": new.uri}]}
        opened = [new.did_open()["textDocument"]]
        self.change({"structure": {"array": array, "didOpen": opened}})
        return new


def edit(path: str, old: str, new: str) -> Any:
    return tool_call("propose_edit", {"path": path, "edits": [{"old": old, "new": new}]})


async def test_an_open_notebook_is_edited_through_its_cells(tmp_path: Path) -> None:
    path = tmp_path / "n.ipynb"
    path.write_text(notebook(*SOURCES), "utf-8")
    script = [
        answer(
            tool_call("read_file", {"path": "n.ipynb"}),
            edit("n.ipynb", "print(x)", "print(y)\nz = 1"),
            edit("n.ipynb", "# Title", "# 标题"),
            edit("n.ipynb", "# 标题", "# 标题\n# %% [code]\n1"),
        ),
        answer(text("ok")),
    ]
    async with sidecar(script, roots=[tmp_path]) as world:
        session = await world.session()
        held = OpenNotebook(world, path, ["x = 2  # unsaved\nprint(x)", SOURCES[1]])
        await world.turn(session, "go")
        said = results(world)
        assert "x = 2  # unsaved" in said[0]
        assert "only the sources of the cells that it has can be changed" in said[3]
        decided = await world.decide(only_change_set(session))
        assert decided["verified"] is True
        wanted = ["x = 2  # unsaved\nprint(y)\nz = 1", "# 标题"]
        assert [cell.text for cell in held.cells] == wanted
        assert path.read_text("utf-8") == notebook(*SOURCES)
        assert (await undo(world, session))["conflicts"] == []
        assert [cell.text for cell in held.cells] == ["x = 2  # unsaved\nprint(x)", SOURCES[1]]


async def test_cells_that_the_user_adds_are_read_searched_and_edited(tmp_path: Path) -> None:
    path = tmp_path / "n.ipynb"
    path.write_text(notebook(*SOURCES), "utf-8")
    script = [
        answer(text("Which?")),
        answer(
            tool_call("search_code", {"query": "added"}),
            edit("n.ipynb", "added = 1", "added = 2"),
        ),
        answer(text("ok")),
        answer(tool_call("read_file", {"path": "n.ipynb"})),
        answer(text("ok")),
    ]
    async with sidecar(script, roots=[tmp_path]) as world:
        session = await world.session()
        held = OpenNotebook(world, path, SOURCES)
        await world.turn(session, "first")
        added = held.add(1, "added = 1")
        await world.turn(session, "go")
        assert "n.ipynb:5: added = 1" in results(world)[0]
        await world.decide(only_change_set(session))
        assert added.text == "added = 2"
        held.notify("didClose", {"notebookDocument": {"uri": held.uri}, "cellTextDocuments": []})
        await world.turn(session, "and now?")
        assert "added" not in results(world)[-1]
        assert "from disk" in results(world)[-1]


async def test_a_notebook_of_another_kind_takes_no_edit(tmp_path: Path) -> None:
    (tmp_path / "a.http").write_text("GET /\n", "utf-8")
    script = [answer(edit("a.http", "GET /", "GET /x")), answer(text("ok"))]
    async with sidecar(script, roots=[tmp_path]) as world:
        session = await world.session()
        OpenNotebook(world, tmp_path / "a.http", ["GET /"], "rest-book")
        await world.turn(session, "go")
        assert "is open as a notebook of the kind rest-book" in results(world)[0]


async def test_a_change_that_cannot_be_read_leaves_no_wrong_text(tmp_path: Path) -> None:
    path = tmp_path / "n.ipynb"
    path.write_text(notebook(*SOURCES), "utf-8")
    script = [answer(tool_call("read_file", {"path": "n.ipynb"})), answer(text("ok"))]
    async with sidecar(script, roots=[tmp_path]) as world:
        session = await world.session()
        held = OpenNotebook(world, path, SOURCES)
        unknown = {"document": {"uri": "file:///cells/9.py"}, "changes": [{"text": ""}]}
        held.change({"textContent": [unknown]})
        held.change({"textContent": [{**unknown, "document": {"uri": held.cells[0].uri}}]})
        await world.turn(session, "go")
        assert "a cell changed that it does not have" in results(world)[0]
