"""What an MCP server wants done in the user's browser, in real turns: asked for, never opened."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.process.test_mcp import call, configure, raw, results
from tests.support.model_script import answer, text
from tests.support.sidecar import sidecar

PLACE = "https://shop.example/log-in?state=a%20b&next=/%E8%8C%B6"


async def play(
    folder: Path, mode: str, tool: str, address: object, chosen: Sequence[str]
) -> tuple[list[dict[str, Any]], str]:
    """What the user was asked in a call of `tool`, and what the model got of it."""
    home = folder / "home"
    home.mkdir()
    server = raw(mode, folder / "starts", trusted_tools=[tool])
    script = [answer(call(tool, url=address)), answer(text("ok"))]
    asked: list[dict[str, Any]] = []

    async def choice(params: dict[str, Any]) -> Sequence[str]:
        asked.append(params)
        return chosen

    environment = configure(home, {"raw": server})
    async with sidecar(script, roots=[folder], environment=environment) as world:
        world.editor.answer_choice = choice
        await world.turn(await world.session(), "go")
        return asked, results(world)[-1]


@pytest.mark.parametrize("mode", ["plain", "modern"])
@pytest.mark.parametrize(
    ("chosen", "reported"), [(["Yes"], '{"action": "accept"}'), ([], '{"action": "cancel"}')]
)
async def test_the_user_sees_the_whole_address_and_the_server_only_the_answer(
    mode: str, chosen: list[str], reported: str, tmp_path: Path
) -> None:
    (question,), result = await play(tmp_path, mode, "agree", PLACE, chosen)
    assert question["question"].startswith("The MCP server raw asks: Log in to the shop\n")
    assert question["question"].endswith(f": {PLACE}")
    assert question["choices"] == ["Yes", "No"]
    assert result.endswith(reported)


@pytest.mark.parametrize(("chosen", "reported"), [("Yes", "well"), ("No", "log in")])
async def test_a_call_that_needs_a_visit_first_is_made_again_after_it(
    chosen: str, reported: str, tmp_path: Path
) -> None:
    (question,), result = await play(tmp_path, "plain", "agree_first", PLACE, [chosen])
    assert PLACE in question["question"]
    assert reported in result


HARMFUL: tuple[object, ...] = (
    *("http://shop.example/", "file:///etc/passwd", "javascript:alert(1)", "shop.example", "", 5),
    *("https://[", "https://shop.example@evil.example/", "https://evil.example\\.shop.example/"),
    *("https://sh\u043ep.example/", "https://shop.example/\nhttps://evil.example/", "https://x:y/"),
)


@pytest.mark.parametrize("address", HARMFUL, ids=[str(one) for one in range(len(HARMFUL))])
@pytest.mark.parametrize("tool", ["agree", "agree_first"])
async def test_what_a_browser_should_not_open_is_not_offered(
    tool: str, address: object, tmp_path: Path
) -> None:
    asked, result = await play(tmp_path, "plain", tool, address, ["Yes"])
    assert asked == []
    assert "`url` must be a web address that begins with https://" in result
