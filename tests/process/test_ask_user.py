"""`ask_user` over the real process: `kode/ask`, LSP's message request, silence, cancel (D1)."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from kode_sidecar.terminal.client.connection import RpcError
from tests.support.model_script import answer, text, tool_call
from tests.support.session_fold import SessionFold
from tests.support.sidecar import HANG_SECONDS, World, sidecar

CHOICES = ["prices.json", "数据库 🗄️", "the environment"]
PLAIN = {"kode": False}


def ask(**more: Any) -> Any:
    return tool_call("ask_user", {"question": "价目放哪里？", "choices": CHOICES, **more})


def asking(**more: Any) -> list[Any]:
    return [answer(ask(**more)), answer(text("ok"))]


def result(world: World, session: SessionFold) -> dict[str, Any]:
    """The tool result of the one call."""
    (block,) = world.messages(session)[2]["content"]
    return block


def reported(world: World, session: SessionFold) -> str:
    return result(world, session)["content"][0]["text"]


@pytest.mark.parametrize(
    ("multi", "chosen", "expected"),
    [
        (False, [CHOICES[1]], "The user chose:\n- 数据库 🗄️"),
        (False, [CHOICES[2], CHOICES[0]], "The user chose:\n- prices.json"),
        (True, [CHOICES[2], CHOICES[0]], "The user chose:\n- prices.json\n- the environment"),
        (True, ["something else"], "The user chose nothing. Go on with the most careful"),
        (False, [], "The user chose nothing. Go on with the most careful"),
    ],
)
async def test_a_choice(tmp_path: Path, multi: bool, chosen: Sequence[str], expected: str) -> None:
    async def choose(params: dict[str, Any]) -> Sequence[str]:
        return chosen

    async with sidecar(asking(multi=multi), roots=[tmp_path]) as world:
        world.editor.answer_choice = choose
        session = await world.session()
        turn = await world.turn(session, "go")
        assert turn.stop_reason == "end_turn"
        assert reported(world, session).startswith(expected)
        (params,) = world.editor.asked
        assert params["requestId"]
        assert (params["sessionId"], params["turnId"]) == (session.session_id, turn.id)
        assert (params["question"], params["choices"]) == ("价目放哪里？", CHOICES)
        assert params["multi"] is multi


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"choices": [], "text": " in the cloud 云\n"}, "own words:\nin the cloud 云"),
        (
            {"choices": [CHOICES[0]], "text": "but sorted"},
            "The user chose:\n- prices.json\nThe user answered in their own words:\nbut sorted",
        ),
        ({"choices": [], "text": " "}, "The user chose nothing."),
    ],
)
async def test_an_answer_in_the_users_own_words(
    tmp_path: Path, given: dict[str, Any], expected: str
) -> None:
    async def write(params: dict[str, Any]) -> dict[str, Any]:
        return given

    async with sidecar(asking(), roots=[tmp_path]) as world:
        world.editor.answer_choice = write
        session = await world.session()
        await world.turn(session, "go")
        assert expected in reported(world, session)
        (resolved,) = [one for one in world.events() if one["type"] == "ask.resolved"]
        assert resolved.get("text", "") == given["text"].strip()
        assert resolved["chosen"] == given["choices"]


async def test_a_plain_lsp_client_is_asked_by_a_message(tmp_path: Path) -> None:
    messages: list[dict[str, Any]] = []

    async def click(params: dict[str, Any]) -> dict[str, Any] | None:
        messages.append(params)
        return params["actions"][1]

    async with sidecar(asking(), roots=[tmp_path], handshake=PLAIN) as world:
        world.editor.answer_message = click
        session = await world.session()
        await world.turn(session, "go")
        assert reported(world, session) == "The user chose:\n- 数据库 🗄️"
        assert [action["title"] for action in messages[0]["actions"]] == CHOICES
        assert messages[0]["message"] == "价目放哪里？"


async def test_a_closed_message_is_no_choice(tmp_path: Path) -> None:
    async with sidecar(asking(), roots=[tmp_path], handshake=PLAIN) as world:
        session = await world.session()
        await world.turn(session, "go")
        assert reported(world, session).startswith("The user chose nothing.")


async def test_no_answer_in_time_is_an_answer(tmp_path: Path) -> None:
    taken_back = asyncio.Event()

    async def never(params: dict[str, Any]) -> Sequence[str]:
        try:
            await asyncio.Event().wait()
        finally:
            taken_back.set()
        return ()

    environment = {"KODE_PERMISSION_TIMEOUT": "0.2"}
    async with sidecar(asking(), roots=[tmp_path], environment=environment) as world:
        world.editor.answer_choice = never
        session = await world.session()
        assert (await world.turn(session, "go")).stop_reason == "end_turn"
        assert reported(world, session).startswith("No answer within 0.2 seconds. Go on")
        assert not result(world, session).get("is_error", False)
        async with asyncio.timeout(HANG_SECONDS):
            await taken_back.wait()


async def test_cancelling_the_turn_takes_the_question_back(tmp_path: Path) -> None:  # O8
    asked, taken_back = asyncio.Event(), asyncio.Event()

    async def never(params: dict[str, Any]) -> Sequence[str]:
        asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            taken_back.set()
        return ()

    async with sidecar(asking(), roots=[tmp_path]) as world:
        world.editor.answer_choice = never
        session = await world.session()
        turn_id = await world.start(session, "go")
        async with asyncio.timeout(HANG_SECONDS):
            await asked.wait()
            await world.client.request("kode/turn/cancel", {"sessionId": session.session_id})
            await taken_back.wait()
        turn = await world.watch.turn_end(session.session_id, turn_id, HANG_SECONDS)
        assert turn.stop_reason == "cancelled"
        assert result(world, session)["status"] == "cancelled"


async def test_an_editor_that_cannot_ask_fails_the_call_and_not_the_turn(tmp_path: Path) -> None:
    async def broken(params: dict[str, Any]) -> Sequence[str]:
        raise RpcError(-32603, "no window")

    async with sidecar(asking(), roots=[tmp_path]) as world:
        world.editor.answer_choice = broken
        session = await world.session()
        assert (await world.turn(session, "go")).stop_reason == "end_turn"
        assert result(world, session)["is_error"]
        assert "could not be asked" in reported(world, session)
        assert "most careful" in reported(world, session)


@pytest.mark.parametrize("choices", [["one"], ["same", "same"], ["a", " b"], ["a", "b\x07"]])
async def test_choices_that_are_none_are_not_shown(tmp_path: Path, choices: list[str]) -> None:
    async with sidecar(asking(choices=choices), roots=[tmp_path]) as world:
        session = await world.session()
        await world.turn(session, "go")
        assert result(world, session)["is_error"]
        assert world.editor.asked == []
