# ruff: noqa: E501
"""Agents and clients of ACP, each with one fault: changes to the sources of the scripted ones."""

from typing import NamedTuple

AGENT, CLIENT = "acp_scripted_agent.py", "acp_scripted_client.py"


class AcpMutant(NamedTuple):
    """`old` becomes `new` in the source `file`, at its first place."""

    name: str
    file: str
    old: str
    new: str


_ANSWER = '        self._pipe.send({"id": message["id"], **answer})\n'
_DONE = '            return {"stopReason": "cancelled"}\n'
_SAID = '        self._say(session_id, "agent_message_chunk", text)\n'
_RESUME = "lambda params: self._state(self._known(params, closed=True))"
_OPTION = '{"optionId": "yes", "name": "Allow", "kind": "allow_once"}'
_REPLAY = '            self._say(session["id"], kind, text)\n'
_UNKNOWN_METHOD = 'raise Refused(-32601, f"There is no method {method}")'
_EDIT_BEGINS = '        self._update(session_id, "tool_call", **edit, content=[diff])\n'
_EDIT_ENDS = '        self._update(session_id, "tool_call_update", toolCallId="e", status=status)\n'
_END_TURN = '        return {"stopReason": "end_turn"}\n'

_PRINTS = '    sys.stdout.buffer.write(b"Welcome!\\n")\n'

OF_AGENTS = (
    AcpMutant("answers twice", AGENT, _ANSWER, _ANSWER + _ANSWER),
    AcpMutant(
        "answers under an id of text",
        AGENT,
        _ANSWER,
        _ANSWER.replace('message["id"]', 'str(message["id"])'),
    ),
    AcpMutant(
        "never answers an unknown method", AGENT, "        try:\n            serve", '        if method[0] == "_":\n            return\n        try:\n            serve'
    ),
    AcpMutant("refuses an unknown method as internal", AGENT, "Refused(-32601", "Refused(-32603"),
    AcpMutant(
        "ends at an unknown notification",
        AGENT,
        '        elif message["method"] == "session/cancel":',
        '        elif message["method"] != "session/cancel":\n            sys.exit(1)\n        else:',
    ),
    AcpMutant("refuses wrong params as internal", AGENT, '"code": -32602', '"code": -32603'),
    AcpMutant("ends at wrong params", AGENT, "(KeyError, TypeError) as", "(IndexError, OSError) as"),
    AcpMutant("serves wrong params", AGENT, 'cwd, _ = params["cwd"] + "", params["mcpServers"][:]', 'cwd = str(params["cwd"])'),
    AcpMutant("answers with version 2", AGENT, '"protocolVersion": 1,', '"protocolVersion": 2,'),
    AcpMutant("answers with a version of text", AGENT, '"protocolVersion": 1,', '"protocolVersion": "1",'),
    AcpMutant("answers without a version", AGENT, '            "protocolVersion": 1,\n', ""),
    AcpMutant("speaks before its handshake", AGENT, '        self._client = part(', '        self._say("s1", "agent_message_chunk", "hi")\n        self._client = part('),
    AcpMutant("says hello on stdout", AGENT, "    ScriptedAgent(AcpPipe", _PRINTS + "    ScriptedAgent(AcpPipe"),
    AcpMutant("logs between its messages", AGENT, _END_TURN, "    " + _PRINTS + _END_TURN),
    AcpMutant("leaves jsonrpc out", AGENT, '        self._pipe.send({"id": number, "method": method, "params": params})', '        self._pipe.send({"id": number, "method": method, "params": params, "jsonrpc": "1.0"})'),
    AcpMutant("answers with a result and an error", AGENT, _ANSWER, _ANSWER.replace("**answer", '"error": {"code": 1, "message": ""}, **answer')),
    AcpMutant("gives errors without a message", AGENT, ', "message": str(error)}', "}"),
    AcpMutant("gives sessions numbers", AGENT, 'return {"sessionId": session_id, **', 'return {"sessionId": 1, **'),
    AcpMutant("forgets the session's id", AGENT, 'return {"sessionId": session_id, **', "return {**"),
    AcpMutant("updates another session", AGENT, '        self._update(session_id, "usage_update"', '        self._update("other", "usage_update"'),
    AcpMutant("updates a deleted session", AGENT, _ANSWER, _ANSWER + '        if method == "session/delete":\n            self._update(params["sessionId"], "usage_update", used=1, size=2)\n'),
    AcpMutant("misspells an update", AGENT, '"agent_thought_chunk"', '"agent_thinking_chunk"'),
    AcpMutant("sends text instead of a block", AGENT, 'content={"type": "text", "text": text}', "content=text"),
    AcpMutant("sends a plan without states", AGENT, ', "status": "in_progress"}]\n', "}]\n"),
    AcpMutant("has a kind of tool of its own", AGENT, '"kind": "edit"', '"kind": "write"'),
    AcpMutant("has a state of its own", AGENT, 'status="completed")', 'status="done")'),
    AcpMutant("never begins a tool call", AGENT, '            self._update(session_id, "tool_call", title="Read", kind="read", **where)\n', "            del where\n"),
    AcpMutant("begins a tool call twice", AGENT, _EDIT_BEGINS, _EDIT_BEGINS * 2),
    AcpMutant("never ends a tool call", AGENT, _EDIT_ENDS, ""),
    AcpMutant("goes back to pending", AGENT, _EDIT_ENDS, _EDIT_ENDS + _EDIT_ENDS.replace("status=status", 'status="pending"')),
    AcpMutant("names tool calls by numbers", AGENT, '"toolCallId": "e"', '"toolCallId": 1'),
    AcpMutant("asks with one id twice", AGENT, _OPTION, _OPTION.replace("yes", "no")),
    AcpMutant("asks with nothing to choose", AGENT, '"toolCall": asked, "options": OPTIONS}', '"toolCall": asked, "options": []}'),
    AcpMutant("asks without a tool call", AGENT, '"toolCall": asked, ', ""),
    AcpMutant("asks with a kind of its own", AGENT, '"kind": "allow_once"', '"kind": "allow"'),
    AcpMutant("reads by a relative path", AGENT, 'str(Path(session["cwd"]) / "notes.txt")', '"notes.txt"'),
    AcpMutant("counts lines from minus one", AGENT, '"line": 2', '"line": -1'),
    AcpMutant("asks under one id for all", AGENT, 'number = f"a{self._count}"', 'number = "a"'),
    AcpMutant("calls what was not announced", AGENT, '{"mode": "form"', '{"mode": "url", "url": "https://x.example", "elicitationId": "1"'),
    AcpMutant("calls a method that nobody has", AGENT, '"fs/read_text_file", {**file', '"fs/readTextFile", {**file'),
    AcpMutant("never releases its terminal", AGENT, '("wait_for_exit", "output", "release")', '("wait_for_exit", "output")'),
    AcpMutant("uses a released terminal", AGENT, '("wait_for_exit", "output", "release")', '("wait_for_exit", "release", "output")'),
    AcpMutant("makes up a terminal", AGENT, '"terminalId": terminal})', '"terminalId": "x"})'),
    AcpMutant("speaks after its turn", AGENT, _ANSWER, _ANSWER + '        if method == "session/prompt":\n            self._say(params["sessionId"], "agent_message_chunk", "late")\n'),
    AcpMutant("begins a tool call after its turn", AGENT, _ANSWER, _ANSWER + '        if method == "session/prompt":\n            self._update(params["sessionId"], "tool_call", toolCallId="z", title="z", status="completed")\n'),
    AcpMutant("ends a cancelled turn with an error", AGENT, _DONE, '            raise Refused(-32800, "cancelled")\n'),
    AcpMutant("ends every turn as cancelled", AGENT, _END_TURN, _END_TURN.replace("end_turn", "cancelled")),
    AcpMutant("ends with a reason of its own", AGENT, _END_TURN, _END_TURN.replace("end_turn", "stop")),
    AcpMutant("ends without a reason", AGENT, _END_TURN, "        return {}\n"),
    AcpMutant("ignores a cancel", AGENT, "            if session is not None:\n                session", "            if session is None:\n                session"),
    AcpMutant("has no current mode", AGENT, '"currentModeId": session["mode"], "available', '"currentModeId": "none", "available'),
    AcpMutant("has a mode twice", AGENT, '{"id": "code", "name": "Code"}', '{"id": "ask", "name": "Code"}'),
    AcpMutant("reports a mode that it has not", AGENT, 'currentModeId=session["mode"])', 'currentModeId="none")'),
    AcpMutant("has no current value", AGENT, '"currentValue": session["model"]', '"currentValue": "none"'),
    AcpMutant("does not change the option", AGENT, '        session["model"] = params["value"]\n', ""),
    AcpMutant("answers a change with nothing", AGENT, '        return {"configOptions": self._options(session)}\n', "        return {}\n"),
    AcpMutant("loads without the conversation", AGENT, _REPLAY, "            pass\n"),
    AcpMutant("loads only its own words", AGENT, _REPLAY, '            if kind[0] == "a":\n    ' + _REPLAY),
    AcpMutant("resumes with the conversation", AGENT, _RESUME, "self._load"),
    AcpMutant("announces a load that it has not", AGENT, '            "session/load": self._load,\n', ""),
    AcpMutant("announces a list that it has not", AGENT, '            "session/list": self._list,\n', ""),
    AcpMutant("cannot sign in as it said", AGENT, '            "authenticate": lambda _: {},\n', ""),
    AcpMutant("lists a deleted session", AGENT, '        self._sessions.pop(params["sessionId"], None)\n', ""),
    AcpMutant("lists each session twice", AGENT, "for one in found]}", "for one in found * 2]}"),
    AcpMutant("lists all folders", AGENT, '"cwd": one["cwd"]} for', '"cwd": "/"} for'),
    AcpMutant("lists without folders", AGENT, ', "cwd": one["cwd"]} for', "} for"),
    AcpMutant("announces by words", AGENT, '"loadSession": True', '"loadSession": "yes"'),
    AcpMutant("ends in the middle of a turn", AGENT, _SAID, "        sys.exit(0)\n"),
)  # fmt: skip

_ASK_SENDS = "        self._pipe.send(message, probe=probe)\n"
_OPENING = '        opening = {"protocolVersion": 1, '
_UNKNOWN = '        return {"error": {"code": -32601, "message": f"There is no method {method}"}}\n'
_SEND_ANSWER = '            self._pipe.send({"id": message["id"], **self._answer(method, message["params"])})\n'
_NEW = '        opened = self._ask("session/new", place)\n'
_FIRST_PROMPT = '        self._prompt(session, "Use everything that you have.")\n'

OF_CLIENTS = (
    AcpMutant("never says initialize", CLIENT, '        started = self._ask("initialize", {**opening, "clientCapabilities": CAPABILITIES})\n', "        started: Json = {}\n"),
    AcpMutant("says initialize twice", CLIENT, _NEW, '        self._ask("initialize", {**opening, "clientCapabilities": CAPABILITIES})\n' + _NEW),
    AcpMutant("does not wait for initialize", CLIENT, '        started = self._ask("initialize"', '        self._pipe.send({"method": "session/cancel", "params": {"sessionId": "s1"}})\n        started = self._ask("initialize"'),
    AcpMutant("talks before the answer", CLIENT, "        end = time.monotonic()", '        if number == 1:\n            self._pipe.send({"method": "_early/note", "params": {}})\n        end = time.monotonic()'),
    AcpMutant("has a version of text", CLIENT, _OPENING, _OPENING.replace("1,", '"1",')),
    AcpMutant("has no version", CLIENT, _OPENING, _OPENING.replace('"protocolVersion": 1, ', "")),
    AcpMutant("announces by words", CLIENT, '"terminal": True', '"terminal": "yes"'),
    AcpMutant("opens a relative folder", CLIENT, '"cwd": str(self._folder), "mcp', '"cwd": ".", "mcp'),
    AcpMutant("names no servers", CLIENT, ', "mcpServers": []}', "}"),
    AcpMutant("names more folders unasked", CLIENT, '"mcpServers": []}', '"mcpServers": [], "additionalDirectories": ["/x"]}'),
    AcpMutant("names a server of a kind that the agent has not", CLIENT, '"mcpServers": []}', '"mcpServers": [{"type": "http", "name": "x", "url": "https://x.example", "headers": []}]}'),
    AcpMutant("sends a prompt as text", CLIENT, '"prompt": prompt})', '"prompt": text})'),
    AcpMutant("sends a resource unasked", CLIENT, '{**link, "uri": uri}]', '{"type": "resource", "resource": {"uri": uri, "text": "x"}}]'),
    AcpMutant("sends audio unasked", CLIENT, '{**link, "uri": uri}]', '{"type": "audio", "data": "", "mimeType": "audio/wav"}]'),
    AcpMutant("sends a link without an address", CLIENT, '{**link, "uri": uri}]', "link]"),
    AcpMutant("prompts in a session that nobody made", CLIENT, '{"sessionId": session, "prompt"', '{"sessionId": "mine", "prompt"'),
    AcpMutant("prompts in a closed session", CLIENT, '            self._ask("session/close", {"sessionId": session})\n', '            self._ask("session/close", {"sessionId": session})\n' + "    " + _FIRST_PROMPT),
    AcpMutant("cancels as a request", CLIENT, '{"method": "session/cancel", "params": params}', '{"id": 999, "method": "session/cancel", "params": params}'),
    AcpMutant("prompts by a note", CLIENT, _FIRST_PROMPT, _FIRST_PROMPT + '        self._pipe.send({"method": "session/prompt", "params": {"sessionId": session, "prompt": []}})\n'),
    AcpMutant("calls a method that nobody has", CLIENT, '"session/set_mode", {', '"session/setMode", {'),
    AcpMutant("chooses a mode that nobody offered", CLIENT, '"modeId": mode["id"]', '"modeId": mode["name"]'),
    AcpMutant("chooses an option that nobody offered", CLIENT, '"configId": option["id"]', '"configId": option["name"]'),
    AcpMutant("chooses a value that nobody offered", CLIENT, "else last)[\"value\"]", "else last)[\"name\"]"),
    AcpMutant("signs in by a way that nobody offered", CLIENT, '{"methodId": method["id"]}', '{"methodId": "password"}'),
    AcpMutant("lists from a cursor that nobody gave", CLIENT, '"session/list", {}', '"session/list", {"cursor": "7"}'),
    AcpMutant("signs out unasked", CLIENT, _NEW, '        self._ask("logout", {})\n' + _NEW),
    AcpMutant("uses one id for all", CLIENT, "        number = self._count\n", "        number = 7\n"),
    AcpMutant("answers twice", CLIENT, _SEND_ANSWER, _SEND_ANSWER * 2),
    AcpMutant("answers under another id", CLIENT, _SEND_ANSWER, _SEND_ANSWER.replace('"id": message["id"]', '"id": "x" + str(message["id"])')),
    AcpMutant("answers what nobody asked", CLIENT, _FIRST_PROMPT, '        self._pipe.send({"id": "x", "result": {}})\n' + _FIRST_PROMPT),
    AcpMutant("never answers permissions", CLIENT, _SEND_ANSWER, '            if "options" in message["params"]:\n                return\n' + _SEND_ANSWER),
    AcpMutant("refuses permissions as unknown", CLIENT, 'if method == "session/request_permission":', 'if method == "session/ask":'),
    AcpMutant("permits by the option's name", CLIENT, '[0]["optionId"]}', '[0]["name"]}'),
    AcpMutant("permits without saying selected", CLIENT, '{"outcome": "selected", "optionId"', '{"optionId"'),
    AcpMutant("permits at the wrong place", CLIENT, '{"result": {"outcome": self._permitted(params)}}', '{"result": self._permitted(params)}'),
    AcpMutant("permits what it has cancelled", CLIENT, '            return {"outcome": "cancelled"}\n', "            pass\n"),
    AcpMutant("does not serve reading as it said", CLIENT, 'if method == "fs/read_text_file":', 'if method == "fs/read":'),
    AcpMutant("does not serve writing as it said", CLIENT, 'if method == "fs/write_text_file":', 'if method == "fs/write":'),
    AcpMutant("does not serve terminals as it said", CLIENT, 'if method.startswith("terminal/"):', 'if method.startswith("tty/"):'),
    AcpMutant("reads more lines than asked", CLIENT, "else first + limit", "else first + limit + 1"),
    AcpMutant("reads without the content", CLIENT, '{"result": {"content": "".join(lines[first:last])}}', '{"result": {"text": "".join(lines[first:last])}}'),
    AcpMutant("reads the disk instead of what was written", CLIENT, '            self._files[params["path"]] = params["content"]\n', ""),
    AcpMutant("answers a write with true", CLIENT, '            return {"result": {}}\n', '            return {"result": True}\n'),
    AcpMutant("gives a terminal no id", CLIENT, 'return {"terminalId": f"t{self._count}"}', "return {}"),
    AcpMutant("gives more output than asked", CLIENT, '"output": ""', '"output": "Python 3"'),
    AcpMutant("forgets whether output was cut", CLIENT, ', "truncated": False', ""),
    AcpMutant("forgets how a terminal ended", CLIENT, ', "exitStatus": {"exitCode": 0}}', "}"),
    AcpMutant("ends a terminal without a code", CLIENT, 'return {"exitCode": 0} if verb == "wait_for_exit" else {}', "return {}"),
    AcpMutant("fills a form with a word of its own", CLIENT, 'field["enum"][0]', '"blue"'),
    AcpMutant("fills a form with nothing", CLIENT, '"content": values}', '"content": {}}'),
    AcpMutant("fills a form with more", CLIENT, '"content": values}', '"content": {**values, "size": 1}}'),
    AcpMutant("accepts a form in its own words", CLIENT, '{"action": "accept", "content"', '{"action": "ok", "content"'),
    AcpMutant("says null to what it does not know", CLIENT, _UNKNOWN, '        return {"result": None} if "fs" in method else {"error": {"code": -32000, "message": ""}}\n'),
    AcpMutant("is silent to what it does not know", CLIENT, _SEND_ANSWER, '            if method[0] == "_":\n                return\n' + _SEND_ANSWER),
    AcpMutant("writes a log between its messages", CLIENT, _FIRST_PROMPT, '        self._pipe._recorder.line("client", b"sending the prompt\\n")\n' + _FIRST_PROMPT),
    AcpMutant("leaves jsonrpc out", CLIENT, '        message = {"id": number,', '        message = {"jsonrpc": None, "id": number,'),
    AcpMutant("sends ids in lists", CLIENT, '        message = {"id": number,', '        message = {"id": [number],'),
)  # fmt: skip

MUTANTS = (*OF_AGENTS, *OF_CLIENTS)
