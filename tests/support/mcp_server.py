"""A raw MCP server over stdio, good or bad: `python mcp_server.py MODE [FILE]`.

Standard library only and nothing of ours: it knows the protocol by itself. With FILE it writes its
process id there when it starts, a line each time.
"""

import json
import os
import subprocess
import sys
import time

MODE = sys.argv[1]
VERSION = "2026-07-28"
PIXEL = "R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"
TOOLS = [
    {
        "name": "add",
        "description": "Add two numbers",
        "inputSchema": {
            "type": "object",
            "properties": {"a": {"type": "number"}, "b": {"type": "number"}},
            "required": ["a", "b"],
        },
    },
    {"name": "ask", "description": "Ask the user", "inputSchema": {"type": "object"}},
    {"name": "slow", "description": "Report progress", "inputSchema": {"type": "object"}},
    {"name": "misbehave", "description": "Do what the mode says", "inputSchema": {}},
]


def say(message: dict) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def tools() -> list:
    if MODE == "many":
        return [{"name": f"tool_{n}", "inputSchema": {"type": "object"}} for n in range(500)]
    if MODE == "long_names":
        return [{"name": "n" * 190 + str(n), "inputSchema": {}} for n in range(3)]
    return TOOLS


def page(cursor: str | None) -> dict:
    start = int(cursor or 0)
    found = tools()
    answer: dict = {"tools": found[start : start + 100]}
    if start + 100 < len(found):
        answer["nextCursor"] = str(start + 100)
    return answer


RESOURCES = [
    {
        "uri": "shop://rules",
        "name": "rules",
        "description": "House rules",
        "mimeType": "text/plain",
    },
    {"uri": "shop://logo", "name": "logo", "mimeType": "image/gif"},
]
TEMPLATES = [{"uriTemplate": "shop://shelf/{number}{?lang}", "name": "shelf"}, {"name": "no"}]
PROMPTS = [
    {
        "name": "review",
        "description": "Review a branch",
        "arguments": [{"name": "branch", "required": True}, {"name": "look_at"}],
    },
    {"name": "empty"},
]


def read(uri: str) -> dict:
    found = {
        "shop://rules": {"uri": uri, "text": "只卖苹果\x1b[31m"},
        "shop://logo": {"uri": uri, "mimeType": "image/gif", "blob": PIXEL},
        "shop://many": {"uri": uri, "text": "x" * 300_000},
    }
    if uri.startswith("shop://shelf/"):
        return {"contents": [{"uri": uri, "text": f"on {uri.rpartition('/')[2]}: 茶"}]}
    return {"contents": [found[uri]] if uri in found else []}


def prompt(name: str, given: dict) -> dict:
    if name == "empty":
        return {"messages": []}
    text = f"Review {given['branch']}; look at {given.get('look_at', 'all')}."
    return {
        "messages": [
            {"role": "user", "content": {"type": "text", "text": text}},
            {"role": "assistant", "content": {"type": "text", "text": "Gladly."}},
        ]
    }


def offer(number: object, method: str, params: dict) -> bool:
    """Answer what is about resources and prompts."""
    if not MODE.startswith("offers"):
        return False
    answers = {
        "resources/list": lambda: {"resources": RESOURCES},
        "resources/templates/list": lambda: {"resourceTemplates": TEMPLATES},
        "prompts/list": lambda: {"prompts": PROMPTS},
        "resources/read": lambda: read(params["uri"]),
        "prompts/get": lambda: prompt(params["name"], params.get("arguments", {})),
    }
    if method not in answers or (MODE == "offers_no_templates" and "templates" in method):
        return False
    say({"id": number, "result": answers[method]()})
    return True


def misbehave(number: object) -> None:
    if MODE == "silent":
        return
    if MODE == "dies":
        sys.stderr.write("out of cheese\n")
        sys.stderr.flush()
        os._exit(3)
    if MODE == "huge":
        block = "x" * 1_000_000
        sys.stdout.write('{"jsonrpc":"2.0","id":1,"result":{"text":"')
        while True:
            sys.stdout.write(block)
    if MODE == "changes":
        TOOLS.append({"name": "new", "inputSchema": {"type": "object"}})
        say({"method": "notifications/tools/list_changed"})
    say({"id": number, "result": {"content": [{"type": "text", "text": "well"}]}})


def answer(number: object, params: dict) -> None:
    name, arguments = params["name"], params.get("arguments", {})
    if name == "add":
        text = str(arguments["a"] + arguments["b"])
        say({"id": number, "result": {"content": [{"type": "text", "text": text}]}})
    elif name == "ask":
        ask(number, params, COLOUR)
    elif name == "agree":
        ask(number, params, {"mode": "url", **VISIT, "url": arguments["url"]})
    elif name == "agree_first" and not AGREED:
        AGREED.append(name)
        wanted = {"elicitations": [{"mode": "url", **VISIT, "url": arguments["url"]}]}
        say({"id": number, "error": {"code": -32042, "message": "log in", "data": wanted}})
    elif name == "slow":
        token = params.get("_meta", {}).get("progressToken")
        for done in (1, 2):
            note = {"progressToken": token, "progress": done, "total": 2, "message": "so far"}
            say({"method": "notifications/progress", "params": note})
        say({"id": number, "result": {"content": [{"type": "text", "text": "there"}]}})
    elif name == "picture":
        blocks = [
            {"type": "image", "data": PIXEL, "mimeType": "image/gif"},
            {"type": "image", "data": "AAAA", "mimeType": "image/png"},
            {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"},
            {"type": "text", "text": "a pixel"},
        ]
        say({"id": number, "result": {"content": blocks}})
    elif name == "large":
        text = "x" * 2_000_000 + "the end"
        say({"id": number, "result": {"content": [{"type": "text", "text": text}]}})
    elif name in ("misbehave", "agree_first"):
        misbehave(number)
    else:
        say({"id": number, "error": {"code": -32602, "message": f"no tool {name}"}})


AGREED: list = []
VISIT = {"message": "Log in to the shop", "elicitationId": "visit-1"}
COLOUR = {
    "message": "Which colour?",
    "requestedSchema": {
        "type": "object",
        "properties": {"colour": {"type": "string", "enum": ["red", "green"]}},
    },
}


def ask(number: object, params: dict, asked: dict) -> None:
    question = {"method": "elicitation/create", "params": asked}
    if MODE == "modern":
        given = params.get("inputResponses")
        if given is None:
            need = {"resultType": "input_required", "inputRequests": {"q": question}}
            say({"id": number, "result": {**need, "requestState": "state-1"}})
            return
        assert params["requestState"] == "state-1"
        text = json.dumps(given["q"])
    else:
        say({"id": "question-1", **question})
        reported = json.loads(sys.stdin.readline())
        text = json.dumps(reported.get("result") or reported["error"])
    say({"id": number, "result": {"content": [{"type": "text", "text": text}]}})


def check_meta(message: dict) -> bool:
    meta = message.get("params", {}).get("_meta", {})
    return meta.get("io.modelcontextprotocol/protocolVersion") == VERSION


def serve(message: dict) -> None:
    method, number = message.get("method"), message.get("id")
    params = message.get("params", {})
    if MODE == "modern" and not check_meta(message):
        say({"id": number, "error": {"code": -32602, "message": "no envelope"}})
    elif method == "server/discover" and MODE == "modern":
        offers = {"supportedVersions": [VERSION], "capabilities": {"tools": {}}}
        say({"id": number, "result": {**offers, "serverInfo": {"name": "raw", "version": "1"}}})
    elif method == "initialize":
        version = "1999-01-01" if MODE == "old" else "2025-11-25"
        able: dict = {"tools": {}}
        if MODE.startswith("offers"):
            able |= {"resources": {}, "prompts": {}}
        offers = {"protocolVersion": version, "capabilities": able}
        say({"id": number, "result": {**offers, "serverInfo": {"name": "raw", "version": "1"}}})
    elif method == "tools/list":
        say({"id": number, "result": page(params.get("cursor"))})
    elif method == "tools/call":
        answer(number, params)
    elif number is not None and not offer(number, method, params):
        say({"id": number, "error": {"code": -32601, "message": f"no method {method}"}})


def main() -> None:
    if len(sys.argv) > 2:
        with open(sys.argv[2], "a", encoding="utf-8") as file:
            file.write(f"{os.getpid()}\n")
    if MODE == "forks":  # what it starts wants to be nobody's
        sleeper = [sys.executable, "-c", "import time; time.sleep(1000)", *sys.argv[2:]]
        subprocess.Popen(sleeper, env={}, start_new_session=True)
    if MODE == "no_start":
        time.sleep(1_000)
    if MODE == "junk":
        sys.stdout.write("Welcome to my server!\n")
        sys.stdout.write("[1, 2\n")
    for line in sys.stdin:
        if MODE == "junk":
            sys.stdout.write("DEBUG: a line came\n")
        serve(json.loads(line))


if __name__ == "__main__":
    main()
