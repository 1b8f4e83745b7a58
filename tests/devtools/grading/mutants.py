# ruff: noqa: E501
"""Faulty variants of `examples/plugin-ci/plugin.py` and of the fold that it uses.

Each is one slip that an author makes: its name, the file, what stands there, and what stands there
instead. They were written before the grader had seen one of them.
"""

from typing import NamedTuple

P, F = "plugin.py", "fold.py"
_DID_CHANGE = '        send(method="textDocument/didChange", params=changes)\n'
_ANSWER = '        send(id=message["id"], result=QUESTIONS[method](params))\n'
_REFUSE = '        send(id=message["id"], error={"code": -32601, "message": f"no {method} here"})\n'
_INITIALIZED = 'send(method="initialized", params={})\n'
_OPEN = 'send(method="textDocument/didOpen", params={"textDocument": document})\n'
_CLOSE = 'send(method="textDocument/didClose", params={"textDocument": {"uri": uri}})\n'
_END = 'request("shutdown")\nsend(method="exit")\n'
_APPLIED = '    return {"applied": True}\n'
_ALLOW = '    return {"optionId": allowed[0]["optionId"]}\n'
_CHOOSE = '    return {"choices": params["choices"][:1]}\n'
_NEXT = 'buffer.update(version=buffer["version"] + 1, text=text)'
_TOLD = '"contentChanges": [{"text": text}]}'
_PUT = 'text = text[:start] + edit["newText"] + text[end:]'
_TURN = 'turn("Please mend the notes.")\n'
_NEW_TURN = '    return request("kode/turn/start", prompt)["turnId"]\n'
_DECIDE = '            call("kode/changeSet/decide", params)\n'
_CANCEL = 'request("kode/turn/cancel", {"sessionId": session})\n'
_SHOW = 'params={"blockId": name, "text": screen[name]}'
_EVENTS = '        for event in params["events"]:\n            fold.event(event)\n'
_DELTAS = '        for delta in params["deltas"]:\n            fold.delta(delta)\n'
_GROW = '            block["grown"] += delta["add"][have - delta["at"] :]\n'


class Mutant(NamedTuple):
    """One slip."""

    name: str
    file: str
    old: str
    new: str


MUTANTS = (
    Mutant("never says initialized", P, _INITIALIZED, ""),
    Mutant("says initialized twice", P, _INITIALIZED, _INITIALIZED * 2),
    Mutant(
        "pings before initialize",
        P,
        'request("initialize", hello)',
        'call("kode/ping", {})\nrequest("initialize", hello)',
    ),
    Mutant("initializes twice", P, _INITIALIZED, _INITIALIZED + 'call("initialize", hello)\n'),
    Mutant("goes without shutdown", P, _END, 'send(method="exit")\n'),
    Mutant("goes without a word", P, _END, "sidecar.stdin.close()\n"),
    Mutant("exits before shutdown", P, _END, 'send(method="exit")\ncall("shutdown")\n'),
    Mutant("talks after exit", P, _END, _END + 'send(method="exit")\n'),
    Mutant("never tells the change", P, _DID_CHANGE, ""),
    Mutant("tells the change under the old version", P, _NEXT, "buffer.update(text=text)"),
    Mutant("counts versions down", P, _NEXT, _NEXT.replace("+ 1", "- 1")),
    Mutant(
        "counts versions as texts",
        P,
        '"version": buffer["version"]}\n        changes',
        '"version": str(buffer["version"])}\n        changes',
    ),
    Mutant(
        "tells the text before the change",
        P,
        _TOLD,
        _TOLD.replace('"text": text', '"text": params["edit"]["kept"]').replace(
            'params["edit"]["kept"]', '"".join(["", buffer["text"][:0]])'
        ),
    ),
    Mutant(
        "applies edits from the first to the last",
        P,
        'reversed(change["edits"])',
        'change["edits"]',
    ),
    Mutant(
        "counts UTF-16 units where UTF-32 was agreed on",
        P,
        'starts[place["line"]] + place["character"]',
        'starts[place["line"]] + place["character"] + text[: starts[place["line"]] + place["character"]].count("🍵") - 1',
    ),
    Mutant("counts lines from one", P, 'starts[place["line"]]', 'starts[place["line"] + 1]'),
    Mutant(
        "puts the text in twice", P, _PUT, _PUT.replace('edit["newText"]', 'edit["newText"] * 2')
    ),
    Mutant("leaves the old text there", P, _PUT, _PUT.replace("text[end:]", "text[start:]")),
    Mutant(
        "strips what is put in",
        P,
        _PUT,
        _PUT.replace('edit["newText"]', 'edit["newText"].strip("👋")'),
    ),
    Mutant("applies only the first edit", P, 'reversed(change["edits"])', 'change["edits"][:1]'),
    Mutant(
        "says applied and does nothing",
        P,
        "def apply_edit(params):\n",
        'def apply_edit(params):\n    return {"applied": True}\n',
    ),
    Mutant("says refused and applies", P, _APPLIED, '    return {"applied": False}\n'),
    Mutant(
        "says applied of a file that it has not",
        P,
        '            return {"applied": False}  # another text, or no text at all\n',
        "            continue\n",
    ),
    Mutant("says applied: yes", P, _APPLIED, '    return {"applied": "yes"}\n'),
    Mutant("answers an edit with null", P, _APPLIED, "    return None\n"),
    Mutant("does not serve applyEdit", P, '    "workspace/applyEdit": apply_edit,\n', ""),
    Mutant(
        "never answers an edit",
        P,
        _ANSWER,
        '        value = QUESTIONS[method](params)\n        if "edit" not in params:\n            send(id=message["id"], result=value)\n',
    ),
    Mutant(
        "answers everything twice",
        P,
        _ANSWER,
        _ANSWER + '        send(id=message["id"], result={})\n',
    ),
    Mutant(
        "answers under another id", P, _ANSWER, _ANSWER.replace('message["id"]', "next(numbers)")
    ),
    Mutant(
        "answers only the first question",
        P,
        _ANSWER,
        '        if not answers.get("once"):\n    ' + _ANSWER + '        answers["once"] = True\n',
    ),
    Mutant("permits by the option's name", P, _ALLOW, _ALLOW.replace('["optionId"]}', '["name"]}')),
    Mutant("permits by its place", P, _ALLOW, '    return {"optionId": 0}\n'),
    Mutant(
        "answers a permission with a choice",
        P,
        _ALLOW,
        '    return {"choices": [allowed[0]["optionId"]]}\n',
    ),
    Mutant("permits with true", P, _ALLOW, '    return {"allowed": True}\n'),
    Mutant("does not serve permissions", P, '    "kode/permission/request": permit,\n', ""),
    Mutant(
        "never answers permissions",
        P,
        _ANSWER,
        '        if method != "kode/permission/request":\n    ' + _ANSWER,
    ),
    Mutant(
        "crashes at permissions", P, 'one["kind"] == "allow_once"', 'one["type"] == "allow_once"'
    ),
    Mutant("chooses by number", P, _CHOOSE, '    return {"choices": [0]}\n'),
    Mutant(
        "chooses in capitals",
        P,
        _CHOOSE,
        '    return {"choices": [params["choices"][0].upper()]}\n',
    ),
    Mutant("chooses all of one", P, _CHOOSE, '    return {"choices": params["choices"]}\n'),
    Mutant("chooses without a list", P, _CHOOSE, '    return {"choices": params["choices"][0]}\n'),
    Mutant("does not serve questions", P, '    "kode/ask": choose,\n', ""),
    Mutant(
        "says null to what it does not know",
        P,
        _REFUSE,
        '        send(id=message["id"], result=None)\n',
    ),
    Mutant("is silent to what it does not know", P, _REFUSE, "        pass\n"),
    Mutant("crashes at what it does not know", P, _REFUSE, "        raise KeyError(method)\n"),
    Mutant("refuses with another code", P, _REFUSE, _REFUSE.replace("-32601", "-32000")),
    Mutant(
        "crashes at an unknown notification",
        P,
        '    elif "id" in message:\n',
        '    elif "id" in message or sys.exit(method):\n',
    ),
    Mutant(
        "crashes at an unknown event",
        P,
        _EVENTS,
        _EVENTS
        + '            assert event["type"].split(".")[0] in "turn message block tool changeSet permission ask session usage model notice"\n',
    ),
    Mutant(
        "crashes at an unknown member",
        P,
        _DELTAS,
        '        for delta in params["deltas"]:\n            fold.delta(dict(zip(("blockId", "at", "add"), delta.values(), strict=True)))\n',
    ),
    Mutant(
        "crashes at an unknown block",
        P,
        '        if block["type"] in ("text", "thinking"):\n',
        '        if {"text": 1, "thinking": 1, "tool_use": 0, "tool_result": 0}[block["type"]]:\n',
    ),
    Mutant("appends whatever comes", F, _GROW, '            block["grown"] += delta["add"]\n'),
    Mutant(
        "puts each delta at its place and forgets the rest",
        F,
        _GROW,
        '            block["grown"] = block["grown"][: delta["at"]] + delta["add"]\n',
    ),
    Mutant(
        "counts deltas in bytes",
        F,
        '(have := len(block["grown"]))',
        '(have := len(block["grown"].encode()))',
    ),
    Mutant(
        "counts deltas in UTF-16",
        F,
        '(have := len(block["grown"]))',
        '(have := len(block["grown"].encode("utf-16-le")) // 2)',
    ),
    Mutant("replaces instead of growing", F, _GROW, '            block["grown"] = delta["add"]\n'),
    Mutant("reads only the first delta", P, _DELTAS, '        fold.delta(params["deltas"][0])\n'),
    Mutant("reads only the first event", P, _EVENTS, '        fold.event(params["events"][0])\n'),
    Mutant("takes events told twice", F, "            return False\n", "            pass\n"),
    Mutant(
        "keeps dropped blocks",
        F,
        'case "block.dropped" if self.blocks.pop(block_id, None):',
        'case "block.dropped" if self.blocks.get(block_id) is None:',
    ),
    Mutant("shows thoughts alone", P, 'in ("text", "thinking"):', '== "thinking":'),
    Mutant(
        "trims what it shows",
        P,
        _SHOW,
        'params={"blockId": name, "text": screen[name].strip()[:20]}',
    ),
    Mutant(
        "shows the block under another id",
        P,
        _SHOW,
        'params={"blockId": block["messageId"], "text": screen[name]}',
    ),
    Mutant(
        "decides without a change set",
        P,
        'params = {"changeSetId": name, "decisions"',
        'params = {"decisions"',
    ),
    Mutant(
        "decides about another change set",
        P,
        'params = {"changeSetId": name,',
        'params = {"changeSetId": session,',
    ),
    Mutant(
        "decides about a file instead of hunks",
        P,
        '{"hunkId": one, "action"',
        '{"hunkId": "notes.txt", "action"',
    ),
    Mutant("decides with an unknown word", P, '"action": "accept"}', '"action": "yes"}'),
    Mutant(
        "claims to have seen the future", P, '"seenSeq": fold.seq}', '"seenSeq": fold.seq + 1000}'
    ),
    Mutant("starts a turn twice", P, _TURN, _TURN + _TURN),
    Mutant(
        "sends a prompt as a text", P, '"input": [{"type": "text", "text": text}]', '"input": text'
    ),
    Mutant(
        "sends a prompt into a session that nobody made",
        P,
        '{"sessionId": session, "input"',
        '{"sessionId": "session-1", "input"',
    ),
    Mutant("opens twice", P, _OPEN, _OPEN + _OPEN),
    Mutant("never opens", P, _OPEN, ""),
    Mutant("opens without a version", P, _OPEN, 'del document["version"]\n' + _OPEN),
    Mutant("closes twice", P, _CLOSE, _CLOSE + _CLOSE),
    Mutant("closes what it edits", P, _TURN, _CLOSE + _TURN),
    Mutant("uses one id for all", P, "    number = next(numbers)\n", "    number = 7\n"),
    Mutant(
        "calls what is not there",
        P,
        _CANCEL,
        'call("kode/turn/stop", {"sessionId": session})\n' + _CANCEL,
    ),
    Mutant(
        "cancels without a session", P, _CANCEL, _CANCEL.replace('{"sessionId": session}', "{}")
    ),
    Mutant("trusts with a word", P, '"trusted": True', '"trusted": "yes"'),
    Mutant(
        "counts characters for Content-Length", P, "(len(body), body)", "(len(body.decode()), body)"
    ),
    Mutant("writes ids of answers as numbers", P, _ANSWER, _ANSWER.replace('message["id"]', "1")),
    Mutant("leaves jsonrpc out", P, '{"jsonrpc": "2.0", **message}', "message"),
    Mutant(
        "gives up at the end of a turn",
        P,
        "wait(lambda: all(hunk",
        "sys.exit(fold.seq and 1)\nwait(lambda: all(hunk",
    ),
)

NOT_CAUGHT = frozenset(
    {
        "talks after exit",  # nobody listens any more
        "says applied of a file that it has not",  # what is not open nobody can see
    }
)
"""What the grader does not see: a miss is named."""
