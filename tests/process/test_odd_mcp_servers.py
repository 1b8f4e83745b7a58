"""MCP servers that are alive and a little different hold a conversation, in the real process.

Two kinds stand behind all of it: a request whose answer is known to be lost ends at once, and a
server that failed never looks like one without tools.
"""

import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.process.test_mcp import configure, results
from tests.support.mcp_http_server import bad_server
from tests.support.model_script import answer, text, tool_call
from tests.support.program import ROOT
from tests.support.sidecar import World, sidecar

ODD = ROOT / "tests" / "support" / "mcp_odd_server.py"
CALL = tool_call("mcp", {"action": "call", "server": "odd", "tool": "orders"})
SEARCH = tool_call("mcp", {"action": "search", "query": "orders"})
SOON = 20.0
"""Far less than the 120 s that a call may take."""


def odd(oddity: str, log: Path, given: object = None, **options: Any) -> dict[str, Any]:
    command = [sys.executable, str(ODD), oddity, str(log)]
    command += [] if given is None else [json.dumps(given)]
    return {"command": command, "trusted_tools": ["orders"], **options}


async def play(
    tmp_path: Path, servers: dict[str, Any], rounds: Sequence[Any], *, home: str = "home"
) -> tuple[list[str], World]:
    """One turn for each round of calls; what the model was told in the end, and the world."""
    folder = tmp_path / home
    folder.mkdir(exist_ok=True)
    script = [one for call in rounds for one in (answer(call), answer(text("ok")))]
    environment = configure(folder, servers)
    async with sidecar(script, roots=[tmp_path], environment=environment) as world:
        session = await world.session()
        for _ in rounds:
            await world.turn(session, "go")
        return results(world), world


@pytest.mark.parametrize(
    ("oddity", "started"),
    [
        ("leaves_at_probe", 2),
        ("closes_at_probe", 2),
        ("leaves_after_refusal", 2),
        ("hangs_at_probe", 2),
        ("leaves_between", 2),
    ],
)
async def test_a_server_that_ends_at_a_probe_or_between_calls_serves_each_call(
    tmp_path: Path, oddity: str, started: int
) -> None:
    log = tmp_path / "log"
    server = odd(oddity, log, start_seconds=12 if oddity == "hangs_at_probe" else 30)
    reported, _ = await play(tmp_path, {"odd": server}, [CALL, CALL])
    assert [one.splitlines()[-1] for one in reported] == ["well", "well"]
    methods = log.read_text(encoding="utf-8").split()
    assert methods.count("start") == started
    assert methods.count("server/discover") == 1, "it is remembered that it does not know this"


async def test_a_server_that_was_updated_to_the_newer_generation_only_still_serves(
    tmp_path: Path,
) -> None:
    log = tmp_path / "log"
    for oddity in ("plain", "modern_now"):
        # The same command, so the same server: what it spoke the last time is remembered.
        program = tmp_path / "server.py"
        program.write_text(ODD.read_text(encoding="utf-8").replace("sys.argv[1]", repr(oddity)))
        server = {"command": [sys.executable, str(program), "x", str(log)]}
        server |= {"trusted_tools": ["orders"]}
        reported, _ = await play(tmp_path, {"odd": server}, [SEARCH, CALL])
        assert reported[-1].endswith("well"), oddity


@pytest.mark.parametrize("oddity", ["text_id", "float_id", "text_float_id"])
async def test_an_id_comes_back_as_text_or_as_a_fraction(tmp_path: Path, oddity: str) -> None:
    reported, _ = await play(tmp_path, {"odd": odd(oddity, tmp_path / "log")}, [SEARCH, CALL])
    assert "tool: orders" in reported[0]
    assert reported[1].endswith("well")


async def test_progress_prolongs_a_call(tmp_path: Path) -> None:
    server = odd("slow", tmp_path / "log", call_seconds=0.8)
    reported, _ = await play(tmp_path, {"odd": server}, [CALL])
    assert reported[0].endswith("well"), "it worked for 2 s, never silent for long"


@pytest.mark.parametrize(
    ("oddity", "tools", "pages"),
    [
        ("cursor_standing", 8, 2),
        ("cursor_counting", 8, 2),
        ("cursor_empty", 8, 3),
        ("cursor_refused", 4, 2),
        ("cursor_empty_pages", 0, 3),
        ("cursor_number", 8, 2),
    ],
)
async def test_a_list_ends_where_nothing_new_comes(
    tmp_path: Path, oddity: str, tools: int, pages: int
) -> None:
    log = tmp_path / "log"
    reported, _ = await play(tmp_path, {"odd": odd(oddity, log)}, [SEARCH])
    names = [line for line in reported[0].splitlines() if line.startswith("tool: ")]
    assert len(names) == len(set(names)) == tools
    assert log.read_text(encoding="utf-8").split().count("tools/list") <= pages


@pytest.mark.parametrize("oddity", ["announces_nothing", "others_refused", "null_fields"])
async def test_a_tool_is_found_whatever_stands_beside_it(tmp_path: Path, oddity: str) -> None:
    reported, _ = await play(tmp_path, {"odd": odd(oddity, tmp_path / "log")}, [SEARCH, CALL])
    assert "tool: orders" in reported[0]
    assert reported[1].endswith("well")


GOOD = '{"jsonrpc":"2.0","id":@ID,"result":{"content":[{"type":"text","text":"%s"}]}}'


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        (GOOD % r"half \ud83d of it", "half � of it"),
        (GOOD % r"a pair \ud83d\ude00", "a pair 😀"),
        (GOOD % "caf\xe9 Latin", "caf� Latin"),
        (GOOD % "a\ttab", "a\ttab"),
        (GOOD % "x" + "\r", "x"),
        ("\xef\xbb\xbf" + GOOD % "after a mark", "after a mark"),
        ("INFO done " + GOOD % "after a log", "after a log"),
        ("[" + GOOD % "in a batch" + "]", "in a batch"),
        (
            '{"jsonrpc":"2.0","id":@ID,"result":{"structuredContent":{"a":NaN,"b":-Infinity}}}',
            '{"a":null,"b":null}',
        ),
        (GOOD % "x" + "}", "cannot be read"),
        ('{"jsonrpc":"2.0","id":@ID,"result":{"content":[{"type":"text","text":"cut', "be read"),
        ('{"jsonrpc":"2.0","result":{"content":{{}},"id":@ID}', "cannot be read"),
        ('{"jsonrpc":"2.0","result":{"content":[}}', "cannot be read"),
        ('{"jsonrpc": "2.0", "error": {"message": oops}, "id": "@ID"}', "cannot be read"),
    ],
)
async def test_an_answer_that_strict_readers_refuse_is_read_or_fails_at_once(
    tmp_path: Path, line: str, shown: str
) -> None:
    began = time.monotonic()
    reported, _ = await play(tmp_path, {"odd": odd("raw", tmp_path / "log", line)}, [CALL])
    assert shown in reported[0]
    assert time.monotonic() - began < SOON


@pytest.mark.parametrize(
    ("shape", "shown"),
    [
        ({"content": None, "structuredContent": {"total": 3}}, '{"total":3}'),
        ({"structuredContent": [1, 2]}, "[1,2]"),
        ({"content": "plain words"}, "plain words"),
        ({"content": {"type": "text", "text": "one block"}}, "one block"),
        ({"content": ["a word", {"type": "text", "text": None, "annotations": None}]}, "a word"),
        ({"content": [{"type": "text", "text": {"rows": 2}}]}, '{"rows":2}'),
        ({"content": [{"type": "text", "text": 42}]}, "42"),
        ({"content": [{"type": "resource_link", "uri": "x://1", "name": None}]}, "x://1"),
        (
            {"content": [{"type": "resource_link", "uri": "x://1", "title": "T", "size": None}]},
            "[T: x://1]",
        ),
        ({"content": [{"rows": [1]}]}, '{"rows":[1]}'),
        ({"toolResult": {"rows": 5}}, '{"toolResult":{"rows":5}}'),
        ({"content": [], "isError": "true"}, "(nothing)"),
    ],
)
async def test_a_result_in_another_shape_reaches_the_model(
    tmp_path: Path, shape: dict[str, Any], shown: str
) -> None:
    reported, _ = await play(tmp_path, {"odd": odd("shape", tmp_path / "log", shape)}, [CALL])
    assert shown in reported[0]


FAILING: dict[str, tuple[dict[str, Any], str]] = {
    "missing": ({"command": ["/nowhere/to/be/found"]}, "cannot be started"),
    "ends": ({"command": [sys.executable, "-c", "raise SystemExit(1)"]}, "has ended"),
    "silent": (
        {"command": [sys.executable, "-c", "import time; time.sleep(600)"], "start_seconds": 0.4},
        "not start",
    ),
    "refused": ({"url": "http://127.0.0.1:9/mcp"}, "cannot be reached"),
    "unset": ({"command": ["x"], "env": ["KODE_TEST_NOT_SET"]}, "KODE_TEST_NOT_SET is not set"),
    "unsafe": ({"url": "http://example.com/mcp"}, "must begin with https://"),
    "wrong": ({"command": "x"}, "Expected `array`"),
}


@pytest.mark.parametrize("way", [*FAILING, "locked", "fails", "redirect_at_once", "old", "list"])
async def test_a_server_that_failed_is_named_to_the_model_and_once_to_the_user(
    tmp_path: Path, way: str
) -> None:
    log = tmp_path / "log"
    with bad_server(way, "http://127.0.0.1:9/elsewhere") as bad:
        web = {"locked": "wants a key", "fails": "", "redirect_at_once": "a redirect"}
        entry, why = FAILING.get(way, ({"url": bad.url}, web.get(way, "")))
        if way == "old":
            entry, why = odd("old", log), "1999-01-01"
        elif way == "list":
            entry, why = odd("list_refused", log), "the database is down"
        elif way == "fails":
            bad.mode, why = "fails_at_once", "HTTP 503"
        servers = {"shop": entry, "notes": odd("plain", tmp_path / "good")}
        reported, world = await play(tmp_path, servers, [SEARCH, SEARCH])
    for one in reported:
        assert "shop" in one
        assert why in one
        assert "server: notes" in one, "the other one is found all the same"
    notices = [event for event in world.events() if event["type"] == "notice"]
    failed = [one for one in notices if one["code"] == "ServerFailed"]
    assert len(failed) >= 1
    assert len({one["message"] for one in failed}) == len(failed)
    assert "shop" in failed[0]["message"]


@pytest.mark.parametrize("oddity", ["changes", "changes_on_request", "changes_by_age"])
async def test_a_changed_list_reaches_the_search(tmp_path: Path, oddity: str) -> None:
    again = tool_call("mcp", {"action": "search", "query": "refunds"})
    server = odd(oddity, tmp_path / "log")
    reported, _ = await play(tmp_path, {"odd": server}, [SEARCH, CALL, again])
    assert "refunds" not in reported[0]
    assert "tool: refunds" in reported[2]


LOST = {
    "404, a word as id": (404, '{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600}}'),
    "404, our id": (404, '{"jsonrpc":"2.0","id":@ID,"error":{"code":-32001,"message":"no"}}'),
    "404, null": (404, '{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"no"}}'),
    "404, nothing": (404, ""),
    "404, a page": (404, "<html>Not Found</html>"),
    "410": (410, "gone"),
    "400, null": (400, '{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad"}}'),
    "400, words": (400, "Invalid session"),
    "400, our id": (
        400,
        '{"jsonrpc":"2.0","id":@ID,"error":{"code":-32600,"message":"No valid session ID"}}',
    ),
    "200, null": (200, '{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"no"}}'),
    "200, no id": (200, '{"jsonrpc":"2.0","error":{"code":-32000,"message":"no"}}'),
    "200, -32001": (200, '{"jsonrpc":"2.0","id":@ID,"error":{"code":-32001,"message":"gone"}}'),
    "an event": (200, 'data: {"jsonrpc":"2.0","error":{"code":-32000,"message":"no"}}\n\n'),
    "500, words": (500, "Error: session terminated"),
}


@pytest.mark.parametrize("way", LOST)
async def test_a_lost_session_is_renewed_at_once_and_costs_no_call(
    tmp_path: Path, way: str
) -> None:
    go = tool_call("mcp", {"action": "call", "server": "web", "tool": "go"})
    began = time.monotonic()
    with bad_server("sessions") as web:
        web.lost = LOST[way]
        entry = {"url": web.url, "trusted_tools": ["go"]}
        reported, _ = await play(tmp_path, {"web": entry}, [go, go, go])
    assert [one.splitlines()[-1] for one in reported] == ["in s1", "in s2", "in s2"]
    methods = [method for method, _ in web.asked]
    assert methods.count("initialize") == 2
    assert methods.count("tools/call") == 4, "only the one call that was refused is repeated"
    assert time.monotonic() - began < SOON


async def test_a_refused_call_is_not_repeated(tmp_path: Path) -> None:
    """An error that is about the call and not about the session may have had effects."""
    go = tool_call("mcp", {"action": "call", "server": "web", "tool": "go"})
    for status, code, words in ((200, -32001, "Request timed out"), (400, -32602, "Bad input")):
        with bad_server("sessions") as web:
            error = {"code": code, "message": words}
            web.lost = (
                status,
                json.dumps({"jsonrpc": "2.0", "id": "@ID", "error": error}).replace('"@ID"', "@ID"),
            )
            entry = {"url": web.url, "trusted_tools": ["go"]}
            reported, _ = await play(tmp_path, {"web": entry}, [go, go])
        assert words in reported[1]
        assert [method for method, _ in web.asked].count("tools/call") == 2


@pytest.mark.parametrize("status", [301, 302, 307, 308])
@pytest.mark.parametrize("place", ["/mcp/", "", "?x", "other"])
async def test_only_a_slash_at_the_end_of_a_path_is_followed(
    tmp_path: Path, status: int, place: str
) -> None:
    go = tool_call("mcp", {"action": "call", "server": "web", "tool": "go"})
    with bad_server("well") as other, bad_server("slash") as web:
        web.other = f"{other.url}/" if place == "other" else place
        web.lost = status, ""
        entry = {"url": web.url, "trusted_tools": ["go"], "headers": {"authorization": "key"}}
        reported, _ = await play(tmp_path, {"web": entry}, [go])
        assert reported[0].endswith("well") == (place == "/mcp/")
        assert ("a redirect" in reported[0]) == (place != "/mcp/")
        assert other.asked == []
