"""A client of the Agent Client Protocol without a user: it tries all that its agent announces.

It says yes to what it is asked, holds files in memory, and runs no command: its terminals are
empty. What it sends wrong on purpose is marked in the recording. Standard library only.
"""

import queue
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from kode_sidecar.devtools.grading.acp_recording import (
    CLIENT,
    AcpPipe,
    AcpRecorder,
    Json,
    dismiss,
    part,
    parts,
    start_agent,
)

PATIENCE = 60.0
TEXT = "one\ntwo\nthree\n"
CAPABILITIES: Json = {
    "fs": {"readTextFile": True, "writeTextFile": True},
    "terminal": True,
    "elicitation": {"form": {}},
}


class NoAnswer(Exception):
    """The agent has ended, or did not answer in time."""


class ScriptedClient:
    """Drives one agent, whose messages come by `pipe`, in a folder of its own."""

    def __init__(self, pipe: AcpPipe, folder: Path, patience: float = PATIENCE) -> None:
        self._pipe, self._folder, self._patience = pipe, folder, patience
        self._answers: dict[int, Json] = {}
        self._files = {str(folder / "notes.txt"): TEXT}
        self._count = 0
        self._cancelling: str | None = None

    def play(self) -> None:
        """Hold the conversation. Raises NoAnswer."""
        opening = {"protocolVersion": 1, "clientInfo": {"name": "scripted-client", "version": "1"}}
        started = self._ask("initialize", {**opening, "clientCapabilities": CAPABILITIES})
        able = part(started, "agentCapabilities")
        sessions = part(able, "sessionCapabilities")
        self._ask("_kode.example/unknown", {})
        self._pipe.send({"method": "_kode.example/unknown", "params": {}})
        self._ask("session/new", {"cwd": 5}, probe=True)
        for method in parts(started, "authMethods"):
            if method.get("type", "agent") == "agent":
                self._ask("authenticate", {"methodId": method["id"]})
                break
        place: Json = {"cwd": str(self._folder), "mcpServers": []}
        opened = self._ask("session/new", place)
        session = opened.get("sessionId")
        if session is None:
            return
        self._choose(session, opened)
        self._prompt(session, "Use everything that you have.")
        self._cancelling = session
        self._prompt(session, "Wait until I cancel this.")
        self._cancelling = None
        here = {"sessionId": session, **place}
        if sessions.get("list") is not None:
            self._ask("session/list", {"cwd": str(self._folder)})
        if sessions.get("close") is not None:
            self._ask("session/close", {"sessionId": session})
        if able.get("loadSession"):
            self._ask("session/load", here)
        if sessions.get("resume") is not None:
            self._ask("session/resume", here)
        if sessions.get("delete") is not None:
            self._ask("session/delete", {"sessionId": session})
            if sessions.get("list") is not None:
                self._ask("session/list", {})

    def _choose(self, session: str, opened: Json) -> None:
        """Set the last mode, and the last value of each option."""
        for mode in parts(part(opened, "modes"), "availableModes")[-1:]:
            self._ask("session/set_mode", {"sessionId": session, "modeId": mode["id"]})
        for option in parts(opened, "configOptions"):
            chosen: Json = {"type": "boolean", "value": True}
            if option["type"] == "select":
                last = option["options"][-1]
                chosen = {"value": (last["options"][-1] if "options" in last else last)["value"]}
            params = {"sessionId": session, "configId": option["id"], **chosen}
            self._ask("session/set_config_option", params)

    def _prompt(self, session: str, text: str) -> None:
        link = {"type": "resource_link", "name": "notes.txt"}
        uri = (self._folder / "notes.txt").as_uri()
        prompt = [{"type": "text", "text": text}, {**link, "uri": uri}]
        self._ask("session/prompt", {"sessionId": session, "prompt": prompt})

    def _ask(self, method: str, params: Json, *, probe: bool = False) -> Json:
        """Ask the agent, serve it meanwhile, and return its result, empty for an error."""
        self._count += 1
        number = self._count
        message = {"id": number, "method": method, "params": params}
        self._pipe.send(message, probe=probe)
        end = time.monotonic() + self._patience
        while number not in self._answers:
            try:
                came = self._pipe.receive(max(0.0, end - time.monotonic()))
            except queue.Empty:
                raise NoAnswer(f"{method} was not answered in {self._patience:g} s") from None
            if came is None:
                raise NoAnswer(f"the agent ended before it answered {method}")
            self._handle(came)
        return part(self._answers.pop(number), "result")

    def _handle(self, message: Json) -> None:
        method = message.get("method")
        if method is None:
            self._answers[message.get("id", 0)] = message
        elif "id" in message:
            self._pipe.send({"id": message["id"], **self._answer(method, message["params"])})
        elif method == "session/update":
            update = part(message["params"], "update")
            if update.get("sessionUpdate") == "agent_message_chunk":
                self._cancel()

    def _cancel(self) -> None:
        """Cancel the turn that is to be cancelled, once: at its first words or question."""
        if self._cancelling:
            params = {"sessionId": self._cancelling}
            self._cancelling = ""
            self._pipe.send({"method": "session/cancel", "params": params})

    def _answer(self, method: str, params: Json) -> Json:
        if method == "session/request_permission":
            self._cancel()
            return {"result": {"outcome": self._permitted(params)}}
        if method == "fs/read_text_file":
            return self._read(params)
        if method == "fs/write_text_file":
            self._files[params["path"]] = params["content"]
            return {"result": {}}
        if method.startswith("terminal/"):
            return {"result": self._terminal(method.partition("/")[2])}
        if method == "elicitation/create":
            return {"result": self._filled(params)}
        return {"error": {"code": -32601, "message": f"There is no method {method}"}}

    def _permitted(self, params: Json) -> Json:
        if self._cancelling is not None:
            return {"outcome": "cancelled"}
        allowed = [one for one in params["options"] if one["kind"].startswith("allow")]
        return {"outcome": "selected", "optionId": (allowed or params["options"])[0]["optionId"]}

    def _read(self, params: Json) -> Json:
        text = self._files.get(params["path"])
        if text is None:
            return {"error": {"code": -32002, "message": f"There is no file {params['path']}"}}
        lines = text.splitlines(keepends=True)
        first = max(0, (params.get("line") or 1) - 1)
        limit = params.get("limit")
        last = len(lines) if limit is None else first + limit
        return {"result": {"content": "".join(lines[first:last])}}

    def _terminal(self, verb: str) -> Json:
        if verb == "create":
            self._count += 1
            return {"terminalId": f"t{self._count}"}
        if verb == "output":
            return {"output": "", "truncated": False, "exitStatus": {"exitCode": 0}}
        return {"exitCode": 0} if verb == "wait_for_exit" else {}

    def _filled(self, params: Json) -> Json:
        """Answer a form with the first value of each choice."""
        if params.get("mode") != "form":
            return {"action": "decline"}
        asked = part(params, "requestedSchema")
        fields: Json = part(asked, "properties")
        values = {name: field["enum"][0] for name, field in fields.items() if "enum" in field}
        if not set(asked.get("required") or ()) <= set(values):
            return {"action": "decline"}
        return {"action": "accept", "content": values}


def drive(command: Sequence[str], recorder: AcpRecorder, patience: float = PATIENCE) -> str:
    """Drive an agent, recorded; return what it did not answer, or an empty text. Raises OSError."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "notes.txt").write_text(TEXT, encoding="utf-8")
        agent = start_agent(command)
        assert agent.stdin is not None
        assert agent.stdout is not None
        pipe = AcpPipe(CLIENT, agent.stdout, agent.stdin, recorder)
        missing = ""
        try:
            ScriptedClient(pipe, Path(folder), patience).play()
        except NoAnswer as error:
            missing = str(error)
        recorder.end(CLIENT)
        dismiss(agent)
        return missing


if __name__ == "__main__":
    drive(sys.argv[3:], AcpRecorder(Path(sys.argv[1])), float(sys.argv[2]))
