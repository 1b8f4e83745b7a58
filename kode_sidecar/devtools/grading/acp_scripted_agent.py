"""An agent of the Agent Client Protocol without a model: it uses all that its client announces.

A prompt with the word "cancel" begins a turn that asks for permission and waits to be cancelled.
It reads and writes nothing itself. Standard library only.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kode_sidecar.devtools.grading.acp_recording import AGENT, AcpPipe, AcpRecorder, Json, part

MODES = [{"id": "ask", "name": "Ask"}, {"id": "code", "name": "Code"}]
MODELS = [{"value": "small", "name": "Small"}, {"value": "large", "name": "Large"}]
OPTIONS = [
    {"optionId": "yes", "name": "Allow", "kind": "allow_once"},
    {"optionId": "always", "name": "Always allow", "kind": "allow_always"},
    {"optionId": "no", "name": "Reject", "kind": "reject_once"},
]
FORM = {
    "type": "object",
    "properties": {"colour": {"type": "string", "enum": ["red", "green"]}},
    "required": ["colour"],
}
NEW_TEXT = "one\n二\nthree\n"


class Refused(Exception):
    """A request that is answered with an error."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class ScriptedAgent:
    """Serves one client, whose messages come by `pipe`."""

    def __init__(self, pipe: AcpPipe) -> None:
        self._pipe = pipe
        self._client: Json = {}
        self._sessions: dict[str, Json] = {}
        self._answers: dict[str, Json] = {}
        self._count = 0
        self._gone = False
        self._methods: dict[str, Callable[[Json], Json]] = {
            "initialize": self._initialize,
            "authenticate": lambda _: {},
            "session/new": self._new,
            "session/load": self._load,
            "session/resume": lambda params: self._state(self._known(params, closed=True)),
            "session/list": self._list,
            "session/close": self._close,
            "session/delete": self._delete,
            "session/set_mode": self._set_mode,
            "session/set_config_option": self._set_option,
            "session/prompt": self._prompt,
        }

    def run(self) -> None:
        """Serve until the client goes."""
        while not self._gone:
            self._handle()

    def _handle(self) -> None:
        message = self._pipe.receive()
        if message is None:
            self._gone = True
        elif "method" not in message:
            self._answers[str(message.get("id"))] = message
        elif "id" in message:
            self._answer(message)
        elif message["method"] == "session/cancel":
            session = self._sessions.get(str(message["params"].get("sessionId")))
            if session is not None:
                session["cancelled"] = True

    def _answer(self, message: Json) -> None:
        method, params = message["method"], part(message, "params")
        try:
            serve = self._methods.get(method)
            if serve is None:
                raise Refused(-32601, f"There is no method {method}")
            answer: Json = {"result": serve(params)}
        except Refused as error:
            answer = {"error": {"code": error.code, "message": str(error)}}
        except (KeyError, TypeError) as error:
            answer = {"error": {"code": -32602, "message": f"Wrong params: {error}"}}
        self._pipe.send({"id": message["id"], **answer})

    def _ask(self, method: str, params: Json) -> Json:
        """Ask the client, serve it meanwhile, and return its whole answer."""
        self._count += 1
        number = f"a{self._count}"
        self._pipe.send({"id": number, "method": method, "params": params})
        while number not in self._answers and not self._gone:
            self._handle()
        return self._answers.pop(number, {})

    def _update(self, session_id: str, kind: str, /, **fields: Any) -> None:
        params = {"sessionId": session_id, "update": {"sessionUpdate": kind, **fields}}
        self._pipe.send({"method": "session/update", "params": params})

    def _say(self, session_id: str, kind: str, text: str) -> None:
        self._update(session_id, kind, content={"type": "text", "text": text})

    def _initialize(self, params: Json) -> Json:
        self._client = part(params, "clientCapabilities")
        if not isinstance(params["protocolVersion"], int):
            raise Refused(-32602, "`protocolVersion` is no number")
        return {
            "protocolVersion": 1,
            "agentInfo": {"name": "scripted-agent", "version": "1"},
            "agentCapabilities": {
                "loadSession": True,
                "promptCapabilities": {"image": True},
                "sessionCapabilities": {one: {} for one in ("list", "resume", "close", "delete")},
            },
            "authMethods": [{"id": "key", "name": "Key"}],
        }

    def _new(self, params: Json) -> Json:
        session_id = f"s{len(self._sessions) + 1}"
        cwd, _ = params["cwd"] + "", params["mcpServers"][:]
        session = {"id": session_id, "cwd": cwd, "mode": "ask", "model": "small"}
        self._sessions[session_id] = {**session, "history": [], "open": True, "cancelled": False}
        return {"sessionId": session_id, **self._state(self._sessions[session_id])}

    def _state(self, session: Json) -> Json:
        modes = {"currentModeId": session["mode"], "availableModes": MODES}
        session["open"] = True
        return {"modes": modes, "configOptions": self._options(session)}

    def _options(self, session: Json) -> list[Json]:
        option = {"id": "model", "name": "Model", "type": "select"}
        return [{**option, "currentValue": session["model"], "options": MODELS}]

    def _known(self, params: Json, *, closed: bool = False) -> Json:
        session = self._sessions.get(params["sessionId"])
        if session is None or not (session["open"] or closed):
            raise Refused(-32002, f"There is no session {params['sessionId']!r}")
        return session

    def _load(self, params: Json) -> Json:
        session = self._known(params, closed=True)
        for kind, text in session["history"]:
            self._say(session["id"], kind, text)
        return self._state(session)

    def _list(self, params: Json) -> Json:
        known = self._sessions.values()
        found = [one for one in known if params.get("cwd") in (None, one["cwd"])]
        return {"sessions": [{"sessionId": one["id"], "cwd": one["cwd"]} for one in found]}

    def _close(self, params: Json) -> Json:
        self._known(params)["open"] = False
        return {}

    def _delete(self, params: Json) -> Json:
        self._sessions.pop(params["sessionId"], None)
        return {}

    def _set_mode(self, params: Json) -> Json:
        session = self._known(params)
        if params["modeId"] not in ("ask", "code"):
            raise Refused(-32602, f"There is no mode {params['modeId']!r}")
        session["mode"] = params["modeId"]
        self._update(session["id"], "current_mode_update", currentModeId=session["mode"])
        return {}

    def _set_option(self, params: Json) -> Json:
        session = self._known(params)
        session["model"] = params["value"]
        return {"configOptions": self._options(session)}

    def _prompt(self, params: Json) -> Json:
        session = self._known(params)
        session_id, session["cancelled"] = session["id"], False
        words = [one["text"] for one in params["prompt"] if one["type"] == "text"]
        session["history"] += [("user_message_chunk", one) for one in words]
        self._say(session_id, "agent_thought_chunk", "I try everything that you announce.")
        if "cancel" in " ".join(words):
            self._wait_to_be_cancelled(session_id)
        else:
            self._use_everything(session)
        if session["cancelled"]:
            return {"stopReason": "cancelled"}
        text = "It is done. 好了 🎉"
        session["history"].append(("agent_message_chunk", text))
        self._say(session_id, "agent_message_chunk", text)
        return {"stopReason": "end_turn"}

    def _wait_to_be_cancelled(self, session_id: str) -> None:
        self._update(session_id, "tool_call", toolCallId="w", title="Wait", status="pending")
        self._permission(session_id, "w", "Cancel this turn now, please")
        while not (self._sessions[session_id]["cancelled"] or self._gone):
            self._handle()
        self._update(session_id, "tool_call_update", toolCallId="w", status="failed")

    def _use_everything(self, session: Json) -> None:
        session_id, path = session["id"], str(Path(session["cwd"]) / "notes.txt")
        files = part(self._client, "fs")
        entries = [{"content": "Use everything", "priority": "high", "status": "in_progress"}]
        self._update(session_id, "plan", entries=entries)
        if files.get("readTextFile"):
            where = {"toolCallId": "r", "locations": [{"path": path, "line": 1}]}
            self._update(session_id, "tool_call", title="Read", kind="read", **where)
            file = {"sessionId": session_id, "path": path}
            self._ask("fs/read_text_file", {**file, "line": 2, "limit": 1})
            self._update(session_id, "tool_call_update", toolCallId="r", status="completed")
        diff = {"type": "diff", "path": path, "oldText": "one\ntwo\nthree\n", "newText": NEW_TEXT}
        edit = {"toolCallId": "e", "title": "Edit", "kind": "edit", "status": "pending"}
        self._update(session_id, "tool_call", **edit, content=[diff])
        allowed = self._permission(session_id, "e", "Edit notes.txt") in ("yes", "always")
        if allowed and files.get("writeTextFile"):
            file = {"sessionId": session_id, "path": path}
            self._ask("fs/write_text_file", {**file, "content": NEW_TEXT})
            if files.get("readTextFile"):
                self._ask("fs/read_text_file", file)
        status = "completed" if allowed else "failed"
        self._update(session_id, "tool_call_update", toolCallId="e", status=status)
        if self._client.get("terminal"):
            self._run_command(session)
        if part(self._client, "elicitation").get("form") is not None:
            form = {"mode": "form", "message": "Which colour?", "requestedSchema": FORM}
            self._ask("elicitation/create", {"sessionId": session_id, **form})
        self._ask("_kode.example/unknown", {"sessionId": session_id})
        self._pipe.send({"method": "_kode.example/unknown", "params": {}})
        self._update(session_id, "usage_update", used=100, size=1000)

    def _run_command(self, session: Json) -> None:
        session_id = session["id"]
        command = {"command": sys.executable, "args": ["--version"], "outputByteLimit": 5}
        made = self._ask("terminal/create", {"sessionId": session_id, **command})
        terminal = part(made, "result").get("terminalId")
        if terminal is None:
            return
        call = {"toolCallId": "t", "title": "Run", "kind": "execute", "status": "in_progress"}
        shown = [{"type": "terminal", "terminalId": terminal}]
        self._update(session_id, "tool_call", **call, content=shown)
        for verb in ("wait_for_exit", "output", "release"):
            self._ask(f"terminal/{verb}", {"sessionId": session_id, "terminalId": terminal})
        self._update(session_id, "tool_call_update", toolCallId="t", status="completed")

    def _permission(self, session_id: str, call: str, title: str) -> str:
        """Return the id of the chosen option, or an empty text."""
        asked = {"toolCallId": call, "title": title}
        params = {"sessionId": session_id, "toolCall": asked, "options": OPTIONS}
        result = part(self._ask("session/request_permission", params), "result")
        return str(part(result, "outcome").get("optionId", ""))


def serve_scripted(recorder: AcpRecorder) -> int:
    """Be the scripted agent on stdin and stdout, recorded; its exit code."""
    ScriptedAgent(AcpPipe(AGENT, sys.stdin.buffer, sys.stdout.buffer, recorder)).run()
    return 0


if __name__ == "__main__":
    sys.exit(serve_scripted(AcpRecorder(Path(sys.argv[1]))))
