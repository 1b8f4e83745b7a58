"""Every method, every parameter, every wrong kind of value, at the real process.

The cases are made from `protocol/schema.json`, so a new method or member is covered by being in
the table.
"""

import asyncio
import json
import re
from pathlib import Path
from typing import Any

from kode_sidecar.core.protocol.base_protocol import encode_frame
from kode_sidecar.core.protocol.methods import METHODS
from kode_sidecar.errors import INVALID_PARAMS
from kode_sidecar.terminal.client.connection import RpcError
from kode_sidecar.terminal.client.handshake import Handshake
from tests.support.model_script import answer, text
from tests.support.protocol_files import FOLDER
from tests.support.sidecar import HANG_SECONDS, World, sidecar
from tests.support.wrong_params import Wrong, WrongParams, places, spelled

SCHEMA: dict[str, Any] = json.loads((FOLDER / "schema.json").read_bytes())
FROM_CLIENT = {
    name: method
    for name, method in SCHEMA["x-kode"]["methods"].items()
    if method["from"] == "client"
}


def type_name(method: dict[str, Any]) -> str:
    """What the params are called under `$defs`."""
    return method["params"]["$ref"].rpartition("/")[2]


def cases_of(kind: str) -> dict[str, list[Wrong]]:
    """The cases of every request or of every notification. Params that are null are none."""
    walk = WrongParams(SCHEMA)
    return {
        name: [case for case in walk.of(method["params"]) if case.value is not None]
        for name, method in FROM_CLIENT.items()
        if method["kind"] == kind
    }


async def refusal(world: World, method: str, params: Any) -> RpcError | None:
    """What the process has against the params; None when it takes them."""
    try:
        await world.client.request(method, params, HANG_SECONDS)
    except RpcError as error:
        return error
    return None


def right(error: RpcError | None, path: str) -> bool:
    """The code, and exactly this place in what is said to people and in what programs read."""
    return (
        error is not None
        and error.code == INVALID_PARAMS
        and error.message.endswith(f" at `{path}`")
        and error.message.count("`$") == 1
        and error.data["code"] == "InvalidParams"
        and error.data["details"] == {"path": path}
    )


async def test_every_request_answers_every_wrong_parameter_with_its_path() -> None:
    """The process reads all of them from its pipe at once, and still serves afterwards."""
    table = [(name, case) for name, cases in cases_of("request").items() for case in cases]
    async with sidecar() as world:
        asked = [refusal(world, name, case.value) for name, case in table]
        answers = await asyncio.gather(*asked)
        missed = [
            f"{name} {spelled(case.value)}: expected {case.path}, got {error}"
            for (name, case), error in zip(table, answers, strict=True)
            if not right(error, case.path)
        ]
        assert missed == []
        pong = await world.client.request("kode/ping", {"echo": "还在吗"}, HANG_SECONDS)
        assert pong == {"echo": "还在吗"}
        listed = await world.client.request("kode/session/list", {"all": True}, HANG_SECONDS)
        assert listed["sessions"] == []  # nothing was done before it was refused


async def test_params_that_are_absent_or_null_are_an_empty_object() -> None:
    """So a method with a required member names it, and the others serve."""
    asked: dict[str, str] = {}
    async with sidecar() as world:
        for name, method in FROM_CLIENT.items():
            first, *_ = SCHEMA["$defs"][type_name(method)].get("required", [None])
            if method["kind"] == "request" and first:
                for number, params in enumerate(("", ', "params": null')):
                    request_id = f"{name} {number}"
                    body = f'{{"jsonrpc": "2.0", "id": "{request_id}", "method": "{name}"{params}}}'
                    world.client.send_raw(encode_frame(body.encode()))
                    asked[request_id] = f"$.{first}"
        await world.client.request("kode/ping", {}, HANG_SECONDS)
        answers = [one.message() for one in world.client.frames if one.direction == "in"]
    said = {one["id"]: one["error"]["data"]["details"]["path"] for one in answers if "error" in one}
    assert asked
    assert said == asked


async def test_the_handshake_refuses_every_wrong_option_and_goes_on_waiting() -> None:
    """A refused `initialize` may be sent again."""
    options = SCHEMA["x-kode"]["initialize"]["options"]
    cases = list(WrongParams(SCHEMA).of(options, "$.initializationOptions.kode"))
    # A null `kode` is that of a client which knows nothing of it.
    # An empty list is what Lua makes of empty settings.
    table = [case for case in cases if case.value not in (None, {"settings": []})]
    assert "$.initializationOptions.kode.settings.mode" in places(table)
    async with sidecar(initialize=False) as world:
        missed: list[str] = []
        for case in table:
            params = {"capabilities": {}, "initializationOptions": {"kode": case.value}}
            error = await refusal(world, "initialize", params)
            if not right(error, case.path):
                missed.append(f"{spelled(case.value)}: expected {case.path}, got {error}")
        assert missed == []
        await world.editor.client.initialize(Handshake())
        await world.client.request("kode/ping", {}, HANG_SECONDS)


async def test_wrong_notifications_are_told_and_change_nothing(tmp_path: Path) -> None:
    """There is no answer to a notification: stderr names the method and the place."""
    seen = tmp_path / "seen.py"
    seen.write_text("x = 1\n", encoding="utf-8")
    async with sidecar([answer(text("ok"))], roots=[tmp_path]) as world:
        session = await world.session()
        world.client.notify("kode/editor/didChangeContext", {"uri": seen.as_uri()})
        expected: list[str] = []
        for name, cases in cases_of("notification").items():
            for case in cases:
                world.client.notify(name, case.value)
                expected.append(f"{name} was dropped:  at `{case.path}`")
        await world.turn(session, "Hello")
        asked = [part["content"] for part in world.asked()["messages"] if part["role"] == "user"]
        assert asked == ["The user looks at seen.py in the editor.", "Hello"]
    said = re.findall(
        r"^kode-sidecar: (.* was dropped: ).*( at `[^`]*`)$", world.client.process.stderr_tail, re.M
    )
    assert ["".join(parts) for parts in said] == expected


def test_every_method_and_every_member_of_its_params_has_cases() -> None:
    cases = cases_of("request") | cases_of("notification")
    assert set(cases) == {m.name for m in METHODS if m.direction == "client_to_server"}
    for name, method in FROM_CLIENT.items():
        found = places(cases[name])
        members = SCHEMA["$defs"][type_name(method)]["properties"].items()
        named = {f"$.{member}" for member, schema in members if schema}  # echo may be anything
        assert named | {"$"} <= found, name
    deep = places(cases["kode/turn/start"]) & places(cases["kode/turn/steer"])
    assert {"$.input[0].type", "$.input[0].blob.sha256"} <= deep
    assert "$.decisions[0].hunkId" in places(cases["kode/changeSet/decide"])
    assert "$.selection.end.character" in places(cases["kode/editor/didChangeContext"])
