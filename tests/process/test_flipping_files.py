"""Files that somebody replaces without a pause are refused by a typed error, and end no turn."""

import itertools
import os
import shutil
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from kode_sidecar.core.real_path import real_path
from tests.support.model_script import answer, text, tool_call
from tests.support.sidecar import sidecar

pytestmark = pytest.mark.skipif(os.name == "nt", reason="a user of Windows makes no links")
CALLS = (
    tool_call("read_file", {"path": "flip"}),
    tool_call("read_file", {"path": "flip/a.txt"}),
    tool_call("list_files", {}),
    tool_call("search_code", {"pattern": "one"}),
    tool_call("propose_edit", {"path": "flip", "edits": [{"old": "one", "new": "two"}]}),
    tool_call("propose_file", {"action": "create", "path": "flip/b.txt", "content": "x"}),
    tool_call("propose_file", {"action": "delete", "path": "flip"}),
    tool_call("propose_file", {"action": "move", "path": "flip", "to": "c.txt"}),
)


def a_file(place: Path) -> None:
    place.write_text("one\n")


def a_link(place: Path) -> None:
    place.symlink_to(place.parent.parent / "target.txt")


def a_folder(place: Path) -> None:
    place.mkdir()
    (place / "a.txt").write_text("one\n")


def a_loop(place: Path) -> None:
    place.symlink_to("flip")


@contextmanager
def flipping(place: Path, *kinds: Callable[[Path], None]) -> Generator[None]:
    """Something else stands at `place` all the time."""
    ended = threading.Event()

    def flip() -> None:
        for number, kind in enumerate(itertools.cycle(kinds)):
            if ended.is_set():
                return
            fresh = place.with_name(f".next{number % 2}")
            kind(fresh)
            with suppress(OSError):
                if place.is_dir() and not place.is_symlink():
                    shutil.rmtree(place)
                elif kind is a_folder:
                    place.unlink()
            with suppress(OSError):
                os.replace(fresh, place)
            if fresh.is_dir() and not fresh.is_symlink():
                shutil.rmtree(fresh)
            fresh.unlink(missing_ok=True)

    thread = threading.Thread(target=flip)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def test_a_real_path_is_found_while_links_come_and_go(tmp_path: Path) -> None:
    with flipping(tmp_path / "flip", a_file, a_link):
        found = {real_path(tmp_path / "flip") for _ in range(20_000)}
    assert found <= {tmp_path / "flip", tmp_path.parent / "target.txt"}
    assert len(found) == 2


@pytest.mark.parametrize(
    "kinds",
    [(a_file, a_link), (a_file, a_folder), (a_link, a_folder), (a_file, a_loop)],
    ids=lambda kinds: " and ".join(kind.__name__ for kind in kinds),
)
async def test_no_turn_ends_because_of_it(
    kinds: tuple[Callable[[Path], None], ...], tmp_path: Path
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (tmp_path / "target.txt").write_text("one\n")
    (project / "target.txt").write_text("one\n")
    turns = 15
    script = [answer(*CALLS), answer(text("ok"))] * turns
    with flipping(project / "flip", *kinds):
        async with sidecar(script, roots=[project]) as world:
            session = await world.session()
            for _ in range(turns):
                turn = await world.turn(session, "go")
                assert turn.stop_reason == "end_turn"
            blocks = [e["block"] for e in world.events() if e["type"] == "block.completed"]
            reported = [one for one in blocks if one["type"] == "tool_result"]
            assert len(reported) == turns * len(CALLS)
            assert "InternalError" not in str(world.events())
