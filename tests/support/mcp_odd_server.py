"""An MCP server over stdio that is alive, common, and a little different.

`python mcp_odd_server.py ODDITY LOG [JSON]`. Standard library only and nothing of ours. It writes
the method of each message to LOG, after a line `start` at each start. JSON is what the oddities
`raw` and `shape` answer.
"""

import json
import os
import sys
import time
from typing import Any

ODD, LOG = sys.argv[1], sys.argv[2]
GIVEN = json.loads(sys.argv[3]) if len(sys.argv) > 3 else None
OLD, NEW = "2025-11-25", "2026-07-28"
CHANGES = ODD.startswith("changes")


def log(line: str) -> None:
    with open(LOG, "a", encoding="utf-8") as file:
        file.write(line + "\n")


def put(data: bytes) -> None:
    sys.stdout.buffer.write(data + b"\n")
    sys.stdout.buffer.flush()


def say(message: dict[str, Any]) -> None:
    put(json.dumps({"jsonrpc": "2.0", **message}).encode())


def result(number: Any, value: object) -> None:
    spelled = {
        "text_id": str(number),
        "float_id": float(number or 0),
        "text_float_id": f"{number}.0",
    }
    say({"id": spelled.get(ODD, number), "result": value})


def refuse(number: Any, text: str = "no such method") -> None:
    say({"id": number, "error": {"code": -32601, "message": text}})


def tool(name: str, **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "description": "It finds orders",
        "inputSchema": {"type": "object"},
        **more,
    }


TOOLS: list[dict[str, Any]] = [tool("orders")]


def probed(number: Any) -> None:
    """The message of a generation that this server does not know."""
    if ODD == "leaves_at_probe":
        sys.stderr.write("expect initialize request\n")
        sys.exit(1)
    if ODD == "closes_at_probe":
        os.close(1)
        time.sleep(600)
    if ODD == "hangs_at_probe":
        time.sleep(600)
    refuse(number)
    if ODD == "leaves_after_refusal":
        sys.exit(0)


def listed(number: Any, cursor: Any) -> None:
    pages: dict[str, Any] = {
        "standing": lambda: ([tool(f"t{n}") for n in range(8)], "same"),
        "counting": lambda: ([tool(f"t{n}") for n in range(8)], str(int(str(cursor or 0)) + 1)),
        "empty": lambda: ([tool(f"t{n}") for n in range(4 if cursor is None else 8)], ""),
        "empty_pages": lambda: (TOOLS[:0], str(int(str(cursor or 0)) + 1)),
        "number": lambda: ([tool(f"t{n}") for n in range(cursor or 0, 8)], None if cursor else 4),
    }
    if ODD == "cursor_refused" and cursor is not None:
        refuse(number, "invalid cursor")
    elif ODD.startswith("cursor_"):
        kind = "empty" if ODD == "cursor_refused" else ODD.removeprefix("cursor_")
        tools, then = pages[kind]()
        result(number, {"tools": tools, **({} if then is None else {"nextCursor": then})})
    elif ODD == "list_refused":
        refuse(number, "the database is down")
    elif ODD == "null_fields":
        nothing = {"title": None, "annotations": None, "outputSchema": None}
        odd = tool("orders", **nothing, description=None)
        result(number, {"tools": [None, 3, {"title": "nameless"}, odd], "nextCursor": None})
    else:
        result(number, {"tools": TOOLS, **({"ttlMs": 0} if ODD == "changes_by_age" else {})})


def called(number: Any, params: dict[str, Any]) -> None:
    token = params.get("_meta", {}).get("progressToken")
    if ODD == "raw":
        put(str(GIVEN).encode("latin-1").replace(b"@ID", str(number).encode()))
        return
    if ODD == "shape":
        result(number, GIVEN)
        return
    if ODD == "slow":
        for done in range(8):
            time.sleep(0.25)
            spelled = str(token) if done % 2 else token
            say(
                {
                    "method": "notifications/progress",
                    "params": {"progressToken": spelled, "progress": done},
                }
            )
    if CHANGES:
        TOOLS.append(tool("refunds"))
        note = {"method": "notifications/tools/list_changed"}
        if ODD == "changes_on_request":
            meta = {"io.modelcontextprotocol/subscriptionId": SUBSCRIBED[-1]}
            say({**note, "params": {"_meta": meta}})
        elif ODD == "changes":
            say(note)
    result(number, {"content": [{"type": "text", "text": "well"}]})
    if ODD == "leaves_between":
        sys.exit(0)


SUBSCRIBED: list[Any] = []


def answer(message: dict[str, Any]) -> None:
    method, number = message.get("method"), message.get("id")
    params: dict[str, Any] = message.get("params") or {}
    modern = ODD in ("changes_on_request", "changes_by_age", "modern_now")
    able: dict[str, Any] = {"tools": {"listChanged": CHANGES}}
    if ODD == "others_refused":
        able |= {"resources": {}, "prompts": {}}
    if method == "server/discover" and modern:
        result(number, {"supportedVersions": [NEW], "capabilities": able})
    elif method == "server/discover":
        probed(number)
    elif method == "initialize" and ODD == "modern_now":
        refuse(number)
    elif method == "initialize":
        version = "1999-01-01" if ODD == "old" else OLD
        able = {} if ODD == "announces_nothing" else able
        info = {"serverInfo": {"name": "odd", "version": "1"}}
        result(number, {"protocolVersion": version, "capabilities": able, **info})
    elif method == "subscriptions/listen":
        assert params["notifications"] == {"toolsListChanged": True}
        SUBSCRIBED.append(number)
        say({"method": "notifications/subscriptions/acknowledged", "params": params})
    elif method == "tools/list":
        listed(number, params.get("cursor"))
    elif method == "tools/call":
        called(number, params)
    elif number is not None and method != "notifications/initialized":
        refuse(number)


log("start")
if ODD == "ends":
    sys.exit(1)
if ODD == "silent":
    time.sleep(600)
for line in sys.stdin:
    reported = json.loads(line)
    log(reported.get("method") or "answer")
    answer(reported)
