"""Names that models take, events cut anywhere, and what a configuration may say (F5)."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.mcp.config import user_servers
from kode_sidecar.infrastructure.mcp.event_stream import McpEvent, McpEventDecoder
from kode_sidecar.infrastructure.mcp.oauth import Token, TokenFile
from kode_sidecar.infrastructure.mcp.project import read_servers
from kode_sidecar.infrastructure.mcp.server_store import Approvals
from kode_sidecar.infrastructure.mcp.servers import MOST_CHARS, tool_name

NAMES = st.text(st.characters(codec="utf-8"), min_size=1, max_size=200)


@given(NAMES, NAMES)
def test_names_are_short_plain_and_differ(first: str, second: str) -> None:
    one, two = tool_name("server", first), tool_name("server", second)
    assert len(one) <= MOST_CHARS
    assert one.replace("-", "_").replace("_", "a").isalnum()
    assert one.isascii()
    assert (one == two) == (first == second)


def test_a_plain_name_stays_readable() -> None:
    assert tool_name("git", "git_status") == "mcp__git__git_status"


STREAM = (
    b": hello\r\nid: 1\nretry: 500\ndata: {\xe4\xb8\xad}\r\rdata: a\r\ndata: b\n\n"
    b"event: other\ndata:x\nid: 2\n\nid: 3\n\ndata: unfinished"
)


@given(st.lists(st.integers(0, len(STREAM)), max_size=8))
def test_a_stream_is_read_alike_wherever_it_is_cut(cuts: list[int]) -> None:
    decoder = McpEventDecoder()
    places = [0, *sorted(cuts), len(STREAM)]
    found = [event for start, end in pairwise(places) for event in decoder.feed(STREAM[start:end])]
    assert found == [
        McpEvent(b"{\xe4\xb8\xad}"),
        McpEvent(b"a\nb"),
        McpEvent(b"x", "other"),
    ]
    assert (decoder.last_id, decoder.retry_ms) == ("3", 500)


def test_a_users_servers_get_the_variables_they_name() -> None:
    raw: dict[str, Any] = {
        "git": {"command": ["uvx", "mcp-server-git"], "env": ["TOKEN"], "direct": True},
        "web": {"url": "https://example.com/mcp", "headers": {"authorization": "Bearer ${TOKEN}"}},
    }
    git, web = user_servers(raw, {"TOKEN": "secret", "OTHER": "x"})
    assert (git.argv, git.environment, git.direct) == (
        ("uvx", "mcp-server-git"),
        {"TOKEN": "secret"},
        True,
    )
    assert web.headers == {"authorization": "Bearer secret"}
    assert "secret" not in f"{git!r}{web!r}"
    again = user_servers(raw, {"TOKEN": "another"})
    assert [one.fingerprint for one in again] == [git.fingerprint, web.fingerprint]


@pytest.mark.parametrize(
    ("entry", "what"),
    [
        ({}, "either `command`"),
        ({"command": ["x"], "url": "https://x"}, "either `command`"),
        ({"command": "x"}, "Expected `array`"),
        ({"command": ["x"], "colour": 1}, "unknown field"),
        ({"command": ["x"], "env": ["MISSING"]}, "MISSING is not set"),
        ({"url": "https://x", "headers": {"a": "${MISSING}"}}, "MISSING is not set"),
        ({"command": ["x"], "call_seconds": 0}, "call_seconds"),
    ],
)
def test_a_wrong_entry_is_named(entry: dict[str, Any], what: str) -> None:
    with pytest.raises(KodeError) as caught:
        user_servers({"bad": entry}, {})
    assert caught.value.code == "ConfigInvalid"
    assert "mcp.bad" in caught.value.message
    assert what in caught.value.message


def read(text: str, file: str = ".mcp.json", **variables: str) -> tuple[list[Any], list[str]]:
    problems: list[str] = []
    return read_servers(text, file, Path("/project"), variables, problems.append), problems


ENTRY = '{"mcpServers": {"x": {"command": "node", "args": ["s.js"], "env": {"A": "${HOME}/a"}}}}'


def test_a_projects_file_is_read_as_data() -> None:
    (server,), problems = read(ENTRY, HOME="/home/me")
    assert (server.argv, server.folder, server.source, problems) == (
        ("node", "s.js"),
        str(Path("/project")),
        "project",
        [],
    )
    assert server.environment == {"A": "/home/me/a"}
    assert server.borrowed == ("HOME",)
    (same,), _ = read("x:\n  command: [node, s.js]\n  env: {A: /a}\n", ".kode/mcp.yaml")
    assert same.argv == server.argv


def test_one_wrong_entry_of_a_project_leaves_the_others() -> None:
    text = '{"mcpServers": {"a b": {"command": "x"}, "y": {"url": "http://127.0.0.1"}, "z": 3}}'
    (server,), problems = read(text)
    assert server.name == "y"
    assert [problem.split(":")[0] for problem in problems] == [".mcp.json, a b", ".mcp.json, z"]
    for broken in ("{", '{"mcpServers": []}', "[" * 100_000):
        with pytest.raises(KodeError):
            read(broken)


@pytest.mark.parametrize("other", ["s2.js", "${KEY}", "/etc"])
def test_a_changed_word_of_an_entry_waits_for_another_yes(other: str) -> None:
    (server,), _ = read(ENTRY, HOME="/home/me")
    was = "s.js" if other == "s2.js" else "${HOME}"
    (changed,), _ = read(ENTRY.replace(was, other), HOME="/home/me", KEY="k")
    assert server.fingerprint != changed.fingerprint
    approvals = Approvals(None)
    approvals.put(server.fingerprint, True)
    assert (approvals.get(server.fingerprint), approvals.get(changed.fingerprint)) == (True, None)


def test_what_cannot_be_kept_is_told_and_not_thrown(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for kept, value in (
        (Approvals(tmp_path / "file" / "approved.json"), True),
        (TokenFile(tmp_path / "file" / "tokens.json"), Token(access_token="t")),
    ):
        with pytest.raises(KodeError) as raised:
            kept.put("0" * 32, value)  # type: ignore[arg-type]
        assert raised.value.code == "Storage"
