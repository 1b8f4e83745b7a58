"""The smallest client that is still an editor: python3 client.py PROJECT SIDECAR [ARGUMENT...]"""

import json
import re
import subprocess
import sys
from pathlib import Path

sys.stdout.reconfigure(encoding="utf-8")
file = Path(sys.argv[1]).resolve() / "src/receipt.js"
uri = file.as_uri()
text = "// 未保存 🍵 unsaved\r\n" + file.read_bytes().decode("utf-8")
buffer = {"uri": uri, "languageId": "javascript", "version": 1, "text": text}
kinds, change_sets, seen, happened = {}, set(), {"seenSeq": 0}, {}
sidecar = subprocess.Popen(sys.argv[2:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def send(**message):
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    sidecar.stdin.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
    sidecar.stdin.flush()


def request(number, method, params=None):
    send(id=number, method=method, params=params)
    answer = next(message for message in iter(receive, None) if message.get("id") == number)
    return answer["result"] if "result" in answer else sys.exit(answer["error"]["message"])


def receive():
    length = 0
    while line := sidecar.stdout.readline().strip():
        length = int(line.split(b":")[1]) if line.lower().startswith(b"content-length") else length
    message = json.loads(sidecar.stdout.read(length) or sys.exit("the sidecar is gone"))
    params = message.get("params", {})
    for event in params.get("events", ()):  # kode/event
        seen["seenSeq"] = event.get("seq", seen["seenSeq"])
        kinds.setdefault(event.get("blockId"), event.get("block", {}).get("type"))
        waits = event["type"] == "changeSet.updated" and event["state"] != "decided"
        change_sets.update([event["changeSetId"]] if waits else [])
        happened[event["type"]] = event.get("error", {}).get("message")
    for delta in params.get("deltas", ()):  # kode/delta
        print(delta["add"] if kinds[delta["blockId"]] == "text" else "", end="", flush=True)
    if message.get("method") == "workspace/applyEdit":
        send(id=message["id"], result={"applied": apply(params["edit"]["documentChanges"][0])})
    return message


def apply(change):
    if change["textDocument"] != {"uri": uri, "version": buffer["version"]}:
        return False  # made for another text
    text = buffer["text"]
    starts = [0, *(end.end() for end in re.finditer(r"\r\n|\n|\r", text))]
    for edit in reversed(change["edits"]):  # they are in the order of the text
        places = edit["range"]["start"], edit["range"]["end"]
        start, end = (starts[place["line"]] + place["character"] for place in places)
        text = text[:start] + edit["newText"] + text[end:]
    buffer.update(version=buffer["version"] + 1, text=text)
    reported = {"textDocument": {"uri": uri, "version": buffer["version"]}}
    send(method="textDocument/didChange", params={**reported, "contentChanges": [{"text": text}]})
    return True


edits = {"applyEdit": True, "workspaceEdit": {"documentChanges": True}}
capabilities = {"workspace": edits, "general": {"positionEncodings": ["utf-32"]}}
options = {"kode": {"protocolVersions": ["1.0"], "client": {"name": "minimal", "version": "1"}}}
hello = {"processId": None, "rootUri": file.parents[1].as_uri(), "capabilities": capabilities}
request(1, "initialize", {**hello, "initializationOptions": options})
send(method="initialized", params={})
send(method="textDocument/didOpen", params={"textDocument": buffer})
session = request(2, "kode/session/new", {})["sessionId"]
prompt = {"type": "text", "text": "The total of the receipt is wrong. Please mend it."}
request(3, "kode/turn/start", {"sessionId": session, "input": [prompt]})
while "turn.completed" not in happened:
    receive()
    while change_sets:  # now, for in mode `ask` the turn waits for it
        wanted = {"changeSetId": change_sets.pop(), "rest": "accept", **seen}
        request(4, "kode/changeSet/decide", wanted)
print("\n\n" + buffer["text"].replace("\r\n", "\n"))
request(5, "shutdown")
send(method="exit")
sys.exit(happened["turn.completed"] or sidecar.wait())  # the turn's error is for the user
