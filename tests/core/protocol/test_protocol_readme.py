"""`protocol/README.md` is true: its frames were sent, its programs run, its tables are complete."""

import json
import os
import random
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest

from kode_sidecar.core.domain.agent_event import StopReason
from kode_sidecar.core.domain.change_set import ChangeSetState, HunkState
from kode_sidecar.core.protocol.methods import METHODS, PROTOCOL_VERSION
from kode_sidecar.core.protocol.session import Mode
from kode_sidecar.errors import ERRORS
from tests.support.golden_session import read_golden
from tests.support.program import PROGRAM, ROOT
from tests.support.protocol_files import EVENT_TYPES, FOLDER, recoded
from tests.support.sidecar import HANG_SECONDS

TEXT = (FOLDER / "README.md").read_text(encoding="utf-8")
Json = dict[str, Any]


def code(language: str) -> list[str]:
    """The code blocks marked so."""
    return re.findall(rf"^```{re.escape(language)}\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


def frames() -> Iterator[tuple[str, Json]]:
    """The frames told, with who sent them."""
    for block in code("frames"):
        for reported in re.split(r"^(?=[→←])", block, flags=re.MULTILINE)[1:]:
            yield ("client" if reported[0] == "→" else "server"), json.loads(reported[1:])


def is_part(reported: Any, sent: Any) -> bool:
    """Whether `told` is `sent` with members left out."""
    if isinstance(reported, dict) and isinstance(sent, dict):
        return all(name in sent and is_part(part, sent[name]) for name, part in reported.items())
    if isinstance(reported, list) and isinstance(sent, list):
        return len(reported) == len(sent) and all(map(is_part, reported, sent))
    return reported == sent


def test_its_frames_are_those_of_the_recorded_session_in_order() -> None:
    sent = iter(read_golden())
    reported = list(frames())
    assert len(reported) > 25
    for sender, frame in reported:
        found = (e for e in sent if e["from"] == sender and is_part(frame, e["message"]))
        assert next(found, None) is not None, f"not sent, or not after what is told before: {frame}"


def test_its_other_messages_are_of_their_types() -> None:
    for block in code("json"):
        frame = json.loads(block)
        assert recoded(frame) == frame


def fold_class() -> Any:
    names: Json = {}
    exec(code("python fold.py")[0], names)
    return names["Fold"]


def folded(stream: list[Json]) -> Any:
    """What is left at the end, as plain data."""
    fold = fold_class()()
    for frame in stream:
        if frame["method"] == "kode/event":
            for event in frame["params"]["events"]:
                fold.event(event)
        else:
            for delta in frame["params"]["deltas"]:
                fold.delta(delta)
    return vars(fold)


def stream() -> list[Json]:
    frames = [entry["message"] for entry in read_golden() if entry["from"] == "server"]
    return [frame for frame in frames if frame.get("method") in ("kode/event", "kode/delta")]


def test_the_fold_fits_on_a_page_and_shows_the_session() -> None:
    assert code("python fold.py")[0].count("\n") <= 55
    end = folded(stream())
    assert end["turn"] is None
    roles = [message["role"] for message in end["messages"].values()]
    assert roles == ["user", "assistant", "tool", "assistant", "tool", "assistant"]
    texts = [block["text"] for block in end["blocks"].values() if block["type"] == "text"]
    assert texts[0] == "Use f-strings, please. 谢谢 🙏"
    assert texts[-1] == "Done. 请看 the two hunks."
    first, second = end["hunks"].values()
    assert (first["state"], second["state"]) == ("applied", "rejected")
    assert first["newText"] == '    return f"你好 {name} 👋"\n'
    assert all("grown" not in block for block in end["blocks"].values())


def test_the_fold_grows_open_blocks_by_code_points() -> None:
    whole = stream()
    completed = next(
        index
        for index, frame in enumerate(whole)
        for event in frame["params"].get("events", ())
        if event["type"] == "block.completed" and event["block"]["type"] == "tool_use"
        if event["block"]["name"] == "propose_edit"
    )
    end = folded(whole[:completed])
    (grown,) = [b["grown"] for b in end["blocks"].values() if b.get("name") == "propose_edit"]
    assert json.loads(grown)["edits"][0]["new"] == '    return f"你好 {name} 👋"'


# What may happen on the way changes nothing: deltas lost or told twice, events told again.
def test_the_fold_heals(rng: random.Random) -> None:
    expected = folded(stream())
    for _ in range(50):
        reported: list[Json] = []
        for frame in stream():
            is_delta = frame["method"] == "kode/delta"
            reported += [frame] * (rng.choice((0, 1, 2)) if is_delta else rng.choice((1, 2)))
            if not is_delta and rng.random() < 0.2:
                reported += [frame for frame in reported[-9:] if frame["method"] == "kode/event"]
        assert folded(reported) == expected


# E1: from this page alone to a streamed turn in a client of one's own, without a key
@pytest.mark.program
def test_the_first_client_streams_a_turn(tmp_path: Path) -> None:
    for language in ("python model.py", "python client.py"):
        (tmp_path / language.split()[1]).write_text(code(language)[0], encoding="utf-8")
    environment = {**os.environ, "PYTHONUTF8": "1", "PYTHONPATH": str(ROOT), "KIMI_API_KEY": "any"}
    with subprocess.Popen(
        [sys.executable, "model.py"],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        encoding="utf-8",
    ) as model:
        try:
            assert model.stdout is not None
            environment["KIMI_BASE_URL"] = model.stdout.readline().strip()
            done = run_client(tmp_path, environment)
        finally:
            model.kill()
    assert done.stdout.strip() == "Hello from a model that is not there. 你好 👋", done.stderr
    assert done.returncode == 0
    alone = run_client(tmp_path, environment)
    assert alone.stdout.startswith("Cannot connect to 127.0.0.1"), alone.stderr


def run_client(folder: Path, environment: dict[str, str]) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "client.py", *PROGRAM],
        cwd=folder,
        env=environment,
        capture_output=True,
        encoding="utf-8",
        timeout=HANG_SECONDS,
        check=False,
    )


def test_every_error_with_a_code_of_its_own_is_explained() -> None:
    rows = re.findall(r"^\| (-33\d+) \| `(\w+)` \|", TEXT, re.MULTILINE)
    own = [(code, name) for name, (code, _, _) in ERRORS.items() if code <= -33001]
    assert rows == [(str(code), name) for code, name in sorted(own, reverse=True)]


@pytest.mark.parametrize(
    "words",
    [get_args(HunkState), get_args(StopReason), get_args(ChangeSetState), get_args(Mode)],
    ids=["hunk states", "stop reasons", "change set states", "modes"],
)
def test_all_states_and_modes_are_told(words: tuple[str, ...]) -> None:
    assert [word for word in words if not re.search(rf"\b{word}\b", TEXT)] == []


def test_the_ordering_rules_are_all_there() -> None:
    rules = re.findall(r"^- \*\*(O\d+)\*\* ", TEXT, re.MULTILINE)
    assert rules == [f"O{number}" for number in range(1, 12)]


def test_what_it_names_exists() -> None:
    methods = set(re.findall(r"(?<!\.)kode/[a-zA-Z]+(?:/[a-zA-Z]+)?", TEXT))
    assert sorted(methods - {method.name for method in METHODS}) == []
    kinds = r"`((?:turn|message|block|tool|changeSet|permission|session|usage)\.[a-z]+)`"
    assert sorted(set(re.findall(kinds, TEXT)) - {*EVENT_TYPES, "session.jsonl"}) == []
    for name in ("README.md", "CHANGELOG.md"):
        text = (FOLDER / name).read_text(encoding="utf-8")
        for target in re.findall(r"\]\(([^)#]+)\)", text):
            assert target.startswith("https://") or (FOLDER / target).exists(), target


def test_the_changelog_knows_this_version() -> None:
    assert f"## {PROTOCOL_VERSION}" in (FOLDER / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"version {PROTOCOL_VERSION}" in TEXT


def test_the_changelog_names_every_method() -> None:
    reported = (FOLDER / "CHANGELOG.md").read_text(encoding="utf-8")
    assert [method.name for method in METHODS if f"`{method.name}`" not in reported] == []
