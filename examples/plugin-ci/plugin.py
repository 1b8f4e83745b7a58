"""A plugin without an editor, for its own tests: python3 plugin.py PROJECT SIDECAR [ARGUMENT...]

It opens `notes.txt`, sends a prompt, shows the answer, answers questions, accepts every edit, stops
a second turn, and goes. `fold.py` beside it is protocol/fold/fold.py.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

from fold import Fold

project = Path(sys.argv[1]).resolve()
uri = (project / "notes.txt").as_uri()
buffer = {"version": 1, "text": "未保存 🍵 unsaved\n" + (project / "notes.txt").read_text("utf-8")}
sidecar = subprocess.Popen(sys.argv[2:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
fold, numbers, answers, screen, decided = Fold(), iter(range(1, 1000)), {}, {}, set()


def send(**message):
    body = json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False).encode()
    sidecar.stdin.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
    sidecar.stdin.flush()


def receive():
    length = 0
    while line := sidecar.stdout.readline().strip():
        length = int(line.split(b":")[1]) if line.lower().startswith(b"content-length") else length
    return json.loads(sidecar.stdout.read(length) or sys.exit("the sidecar is gone"))


def call(method, params=None):
    number = next(numbers)
    send(id=number, method=method, params=params)
    return number


def request(method, params=None):
    number = call(method, params)
    wait(lambda: number in answers)
    answer = answers.pop(number)
    return answer["result"] if "result" in answer else sys.exit(answer["error"]["message"])


def wait(done):
    while not done():
        hear(receive())


def hear(message):
    method, params = message.get("method"), message.get("params") or {}
    if method is None:
        answers[message["id"]] = message
    elif method == "kode/event":
        for event in params["events"]:
            fold.event(event)
    elif method == "kode/delta":
        for delta in params["deltas"]:
            fold.delta(delta)
    elif method in QUESTIONS:
        send(id=message["id"], result=QUESTIONS[method](params))
    elif "id" in message:
        send(id=message["id"], error={"code": -32601, "message": f"no {method} here"})
    show()
    review()


def show():
    """Tell what is on the screen now: texts and thoughts, not what is unknown here."""
    for name in fold.touched & fold.blocks.keys():
        block = fold.blocks[name]
        if block["type"] in ("text", "thinking"):
            screen[name] = block["grown"] if block["open"] else block["text"]
            send(method="kode/editor/didShow", params={"blockId": name, "text": screen[name]})
    for name in screen.keys() - fold.blocks.keys():  # dropped
        del screen[name]
        send(method="kode/editor/didShow", params={"blockId": name, "text": ""})
    fold.touched.clear()


def review():
    """Accept what waits, as a user does who reads fast; in mode `ask` the turn waits for it."""
    for name, change_set in fold.change_sets.items():
        waits = [one for one in change_set["hunks"] if fold.hunks[one]["state"] == "proposed"]
        decisions = [{"hunkId": one, "action": "accept"} for one in waits if one not in decided]
        decided.update(waits)
        if decisions:
            params = {"changeSetId": name, "decisions": decisions, "seenSeq": fold.seq}
            call("kode/changeSet/decide", params)


def apply_edit(params):
    for change in params["edit"]["documentChanges"]:
        if change.get("textDocument") != {"uri": uri, "version": buffer["version"]}:
            return {"applied": False}  # another text, or no text at all
        text = buffer["text"]
        starts = [0, *(end.end() for end in re.finditer(r"\r\n|\n|\r", text))]
        for edit in reversed(change["edits"]):  # they are in the order of the text
            places = edit["range"]["start"], edit["range"]["end"]
            start, end = (starts[place["line"]] + place["character"] for place in places)
            text = text[:start] + edit["newText"] + text[end:]
        buffer.update(version=buffer["version"] + 1, text=text)
        reported = {"uri": uri, "version": buffer["version"]}
        changes = {"textDocument": reported, "contentChanges": [{"text": text}]}
        send(method="textDocument/didChange", params=changes)
    return {"applied": True}


def permit(params):
    allowed = [one for one in params["options"] if one["kind"] == "allow_once"]
    return {"optionId": allowed[0]["optionId"]}


def choose(params):
    return {"choices": params["choices"][:1]}


QUESTIONS = {
    "workspace/applyEdit": apply_edit,
    "kode/permission/request": permit,
    "kode/ask": choose,
}


def turn(text):
    prompt = {"sessionId": session, "input": [{"type": "text", "text": text}]}
    return request("kode/turn/start", prompt)["turnId"]


edits = {"applyEdit": True, "workspaceEdit": {"documentChanges": True}}
kode = {
    "protocolVersions": ["1.0"],
    "client": {"name": "plugin", "version": "1"},
    "trusted": True,
    "capabilities": {"permission": {}, "ask": {}},
}
hello = {
    "processId": None,
    "rootUri": project.as_uri(),
    "capabilities": {"workspace": edits, "general": {"positionEncodings": ["utf-32"]}},
    "initializationOptions": {"kode": kode},
}
request("initialize", hello)
send(method="initialized", params={})
document = {"uri": uri, "languageId": "plaintext", **buffer}
send(method="textDocument/didOpen", params={"textDocument": document})
session = request("kode/session/new", {})["sessionId"]
turn("Please mend the notes.")
wait(lambda: fold.last_turn)
wait(lambda: all(hunk["state"] != "proposed" for hunk in fold.hunks.values()))
turn("Please go on.")
wait(lambda: any(block["open"] and block["grown"] for block in fold.blocks.values()))
request("kode/turn/cancel", {"sessionId": session})
wait(lambda: fold.last_turn)
snapshot = Fold()
snapshot.attach(request("kode/session/attach", {"sessionId": session}))
send(method="textDocument/didClose", params={"textDocument": {"uri": uri}})
request("shutdown")
send(method="exit")
print(buffer["text"])
same = {name for name in fold.messages if snapshot.messages[name]["complete"]} == {*fold.messages}
sys.exit(sidecar.wait() if same else "the snapshot is another conversation")
