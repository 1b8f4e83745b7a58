"""LSP that pygls serves, behind the fast lane, over a real process."""

import os
from pathlib import Path
from typing import Any

import pytest

from kode_sidecar import __version__
from kode_sidecar.core.protocol.handshake import PLAIN_COMMANDS
from tests.support.program import ROOT, SERVE
from tests.support.stdio_process import StdioProcess, notification, request

COMMAND = "workspace/executeCommand"


def test_the_doctor_is_a_command_for_plain_clients() -> None:
    with StdioProcess() as process:
        capabilities = process.start()["capabilities"]
        assert capabilities["executeCommandProvider"] == {
            "commands": ["kode.doctor", *PLAIN_COMMANDS]
        }
        # nested `jsonrpc` keys and odd names are data
        arguments = [{"jsonrpc": "2.0", "method": "x"}, {"type_name": 1, "class": [None]}, "s", 5]
        result = process.result(COMMAND, {"command": "kode.doctor", "arguments": arguments})
        assert result == {"arguments": arguments, "thread": "MainThread"}
        assert process.result(COMMAND, {"command": "kode.doctor"})["arguments"] == []


def test_bad_params_and_failures_are_answered_without_popups() -> None:
    with StdioProcess() as process:
        process.start()

        def error(params: Any) -> Any:
            answered = process.call(COMMAND, params)["error"]
            assert answered["data"]["message"] == answered["message"]
            return answered

        missing = error({"arguments": []})
        assert (missing["code"], missing["data"]["details"]) == (-32602, {"path": "$.command"})
        assert error([1])["code"] == -32602
        assert error("text")["code"] == -32602
        assert error(None)["code"] == -32602
        assert error({"command": "nope"})["code"] == -32602
        bug = error({"command": "test.raise"})
        assert bug["code"] == -32603
        assert "sk-12345" not in str(bug)
        refused = error({"command": "test.refuse"})
        assert (refused["code"], refused["data"]["code"]) == (-33003, "TurnActive")
        process.send(
            notification("$/setTrace", {"value": "nonsense"}),
            notification("workspace/didChangeWorkspaceFolders", {"event": 5}),
            notification("window/workDoneProgress/cancel", {"token": {}}),
            notification("workspace/didChangeConfiguration", [1]),
        )
        assert process.result(COMMAND, {"command": "kode.doctor"})
        process.send(request(1, "shutdown"), notification("exit"))
        methods = {message.get("method") for message in process.rest()}
        assert methods == {None, "test/loaded", "test/closing"}


def test_notifications_reach_the_app_in_order() -> None:
    with StdioProcess() as process:
        process.start()
        settings = {"kode": {"type_name": "x", "list": [1, {"a": None}]}}
        added = {"uri": "file:///a%20b", "name": "a"}
        process.send(
            notification("$/setTrace", {"value": "verbose"}),
            notification("workspace/didChangeConfiguration", {"settings": settings}),
            notification(
                "workspace/didChangeWorkspaceFolders",
                {"event": {"added": [added], "removed": [{"uri": "file:///r", "name": "r"}]}},
            ),
            notification(
                "workspace/didChangeWatchedFiles",
                {"changes": [{"uri": "file:///x", "type": 2}, {"uri": "file:///y", "type": 3}]},
            ),
            notification("window/workDoneProgress/cancel", {"token": "t-1"}),
            notification("window/workDoneProgress/cancel", {"token": 7}),
        )
        expected = [
            ("test/configuration", settings),
            ("test/folders", {"added": ["file:///a%20b"], "removed": ["file:///r"]}),
            ("test/files", [["file:///x", 2], ["file:///y", 3]]),
            ("test/progress", "t-1"),
            ("test/progress", 7),
        ]
        for method, params in expected:
            assert process.next_method(method)["params"] == params


def test_queued_before_pygls_is_there_and_cancelled() -> None:
    with StdioProcess() as process:
        process.start()
        process.send(
            *(request(n, COMMAND, {"command": "kode.doctor", "arguments": [n]}) for n in range(9)),
            notification("$/cancelRequest", {"id": 4}),
            request("fast", "test/echo", {}),
            request(3, COMMAND, {"command": "kode.doctor"}),
        )
        # the fast lane does not wait; the id in use is refused at once
        assert process.answer(4)["error"]["code"] == -32800
        assert process.answer("fast")["result"] == {}
        assert process.answer(3)["error"]["code"] == -32600
        for n in (0, 1, 2, 3, 5, 6, 7, 8):
            assert process.answer(n)["result"]["arguments"] == [n]


def test_a_running_command_is_cancelled() -> None:
    with StdioProcess() as process:
        process.start()
        process.result(COMMAND, {"command": "kode.doctor"})
        process.send(request(1, COMMAND, {"command": "test.forever"}))
        process.next_method("test/running")
        process.send(notification("$/cancelRequest", {"id": 1}))
        assert process.answer(1)["error"]["code"] == -32800
        assert process.result("test/echo", {}) == {}


def test_notifications_that_nobody_asked_for_are_silent_and_order_is_kept() -> None:
    with StdioProcess() as process:
        process.start()
        process.next_method("test/loaded")
        unused = [notification("$/setTrace", {"value": "off"}), notification("initialized", {})]
        process.send(*unused * 1_000, notification("initialized", [1]), notification("initialized"))
        assert process.result("test/echo", {"a": 1}) == {"a": 1}
        process.send(request(1, "shutdown"), notification("exit"))
        assert {message.get("method") for message in process.rest()} == {None, "test/closing"}


def test_without_pygls_its_requests_are_refused_and_the_rest_is_served(tmp_path: Path) -> None:
    (tmp_path / "pygls").mkdir()
    (tmp_path / "pygls" / "__init__.py").write_text("raise ImportError('not installed')\n")
    with StdioProcess(env={"PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}) as process:
        process.start()
        process.send(*(request(n, COMMAND, {"command": "kode.doctor"}) for n in range(3)))
        for n in range(3):
            error = process.answer(n)["error"]
            assert (error["code"], error["data"]["code"]) == (-32603, "InternalError")
            assert "pygls" in error["message"]
        assert "pygls" in process.call(COMMAND, {"command": "kode.doctor"})["error"]["message"]
        assert process.result("test/echo", {"a": 1}) == {"a": 1}


@pytest.mark.program
def test_an_unusual_initialize_does_not_break_pygls() -> None:
    with StdioProcess(SERVE) as process:
        process.start(
            capabilities={"general": {"positionEncodings": 5}, "textDocument": {"hover": 7}},
            workspaceFolders="nonsense",
        )
        assert process.result(COMMAND, {"command": "kode.doctor"})["version"] == __version__
