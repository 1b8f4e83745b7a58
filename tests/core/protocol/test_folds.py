"""The folds under `protocol/fold`: all ways to load a session give the same, in every language."""

import json
import os
import random
import subprocess
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

from kode_sidecar.terminal.client.client_session import ClientSession
from kode_sidecar.terminal.client.fold import Fold
from tests.editors.neovim_builds import SUITES
from tests.editors.neovim_driver import PLUGIN, require_neovim
from tests.support.golden_folds import FOLDER, RETRY_PROMPT, SESSIONS, play, read_golden
from tests.support.node_tools import node_modules, run_node
from tests.support.program import ROOT

Json = dict[str, Any]
FOLDS = ROOT / "protocol" / "fold"
HERE = Path(__file__).parent
GOLDEN = [str(FOLDER / f"{name}.json") for name in SESSIONS]
_LEFT_OUT = ("open", "grown")


@cache
def fold_class() -> Any:
    spec = spec_from_file_location("fold", FOLDS / "fold.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Fold


def fed(items: list[Json], fold: Any = None) -> Any:
    fold = fold_class()() if fold is None else fold
    for item in items:
        for event in item.get("events", ()):
            fold.event(event)
        for delta in item.get("deltas", ()):
            fold.delta(delta)
    return fold


def attached(answer: Json, fold: Any = None) -> Any:
    fold = fold_class()() if fold is None else fold
    fold.attach(answer)
    return fold


def state(fold: Any) -> Json:
    blocks = {
        key: {name: value for name, value in block.items() if name not in _LEFT_OUT}
        for key, block in fold.blocks.items()
    }
    hunks = {
        key: {name: value for name, value in hunk.items() if name != "range"}
        for key, hunk in fold.hunks.items()
    }
    found = {
        "seq": fold.seq,
        "headId": fold.head_id,
        "turnId": fold.turn_id,
        "usage": fold.usage,
        "stopReason": fold.last_turn and fold.last_turn["stopReason"],
        "messages": fold.messages,
        "blocks": blocks,
        "results": fold.results,
        "changeSets": fold.change_sets,
        "hunks": hunks,
        "plan": fold.plan,
        "findings": fold.findings,
    }
    return {name: value for name, value in found.items() if value not in (None, {}, [])}


@cache
def ways(name: str) -> Json:
    """What the fold in Python makes of a golden session in each way."""
    reported = read_golden(name)
    events = [
        e for item in reported["stream"] for e in item.get("events", ()) if e.get("seq", 0) <= 9
    ]
    listed = fold_class()()
    for page in reported["pages"]:
        listed.page(page)
    return {
        "stream": state(fed(reported["stream"])),
        "middle": state(fed(reported["stream"][reported["after"] :], attached(reported["middle"]))),
        "snapshot": state(attached(reported["snapshot"])),
        "replay": state(attached(reported["replay"], fed([{"events": events}]))),
        "list": state(listed),
    }


@pytest.mark.parametrize("name", SESSIONS)
def test_all_ways_lead_to_the_same(name: str) -> None:
    found = ways(name)
    for way in ("middle", "snapshot", "replay"):
        assert found[way] == found["stream"], way
    for part in ("messages", "blocks", "results"):
        assert found["list"].get(part) == found["stream"].get(part)


def test_what_a_session_shows() -> None:
    edits, retry = ways("edits")["stream"], ways("retry")["stream"]
    texts = [block["text"] for block in retry["blocks"].values() if block["type"] == "text"]
    assert texts == [RETRY_PROMPT, "Half of it, and all of it 👋"]
    assert [hunk["state"] for hunk in edits["hunks"].values()] == ["applied"]
    calls = {block["id"] for block in edits["blocks"].values() if block["type"] == "tool_use"}
    assert set(edits["results"]) == calls
    assert [step["state"] for step in edits["plan"]] == ["done", "in_progress"]
    assert (edits["stopReason"], "turnId" in edits) == ("end_turn", False)


@pytest.mark.parametrize("name", SESSIONS)
def test_deltas_alone_bring_what_a_snapshot_tells_in_the_middle(name: str) -> None:
    reported = read_golden(name)
    growing = {block["blockId"]: block["text"] for block in reported["middle"]["openBlocks"]}
    fold = attached(reported["middle"])
    assert {key: block["grown"] for key, block in fold.blocks.items() if block["open"]} == growing
    assert "Half of it," in growing.values()
    for delta in (d for item in reported["stream"] for d in item.get("deltas", ())):
        fold.delta(delta)
    grown = {block["grown"] for block in fold.blocks.values() if block["open"]}
    assert "Half of it, and all of it 👋" in grown


# Events told again, deltas lost, doubled or late, and kinds of a newer server change nothing.
@pytest.mark.parametrize("name", SESSIONS)
def test_the_fold_heals(name: str, rng: random.Random) -> None:
    reported = read_golden(name)["stream"]
    for _ in range(20):
        stream: list[Json] = []
        for item in reported:
            times = rng.choice((0, 1, 2)) if "deltas" in item else rng.choice((1, 2))
            stream += [item] * times
            if rng.random() < 0.2:
                stream += [old for old in stream[-9:] if "seq" in old.get("events", [{}])[0]]
                stream.append({"events": [{"type": "hologram.waved", "blockId": "b"}]})
        stream += [item for item in reported if "deltas" in item]
        assert state(fed(stream)) == ways(name)["stream"]


def same_ways(found: list[Json]) -> None:
    for name, states in zip(SESSIONS, found, strict=True):
        for way, expected in ways(name).items():
            reported = {key: states[way].get(key) for key in expected}
            assert reported == expected, (name, way)


def test_typescript_folds_the_same() -> None:
    compiler = node_modules() / "typescript"
    done = run_node(str(HERE / "fold_states.mjs"), str(compiler), str(FOLDS / "fold.ts"), *GOLDEN)
    assert done.returncode == 0, done.stderr
    same_ways(json.loads(done.stdout))


def test_lua_folds_the_same(tmp_path: Path) -> None:
    build, result = require_neovim(SUITES[0]), tmp_path / "states.json"
    script, fold = HERE / "fold_states.lua", FOLDS / "fold.lua"
    done = subprocess.run(
        [*build.command, "-l", str(script), str(fold), str(result), *GOLDEN],
        env={**os.environ, **build.environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    same_ways(json.loads(result.read_bytes()))


def test_each_is_short() -> None:
    lines = {path.name: path.read_bytes().count(b"\n") for path in FOLDS.glob("fold.*")}
    assert sorted(lines) == ["fold.lua", "fold.py", "fold.ts"]
    assert max(lines.values()) < 150


def test_neovim_uses_the_one_of_the_protocol() -> None:
    assert (PLUGIN / "lua/kode/session_fold.lua").read_bytes() == (FOLDS / "fold.lua").read_bytes()


def test_our_client_uses_the_one_of_the_protocol() -> None:
    used = ROOT / "kode_sidecar" / "terminal" / "client" / "fold.py"
    assert used.read_bytes() == (FOLDS / "fold.py").read_bytes()
    assert issubclass(ClientSession, Fold)


@pytest.mark.program
async def test_the_process_still_says_what_is_written_down(tmp_path: Path) -> None:
    project = tmp_path / "teahouse"
    project.mkdir()
    played = await play("retry", project)
    assert played["snapshot"] == read_golden("retry")["snapshot"]
