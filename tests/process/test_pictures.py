"""A picture reaches a model that sees, or is refused before anything is sent."""

import os
from base64 import b64encode
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from kode_sidecar.terminal.client.connection import RpcError
from tests.process.test_summaries import PIXEL
from tests.support.raw_http import RawHttpServer, says
from tests.support.session_fold import FoldedTurn, SessionFold
from tests.support.sidecar import HANG_SECONDS, World, sidecar

PICTURE = {"type": "image", "mediaType": "image/png", "data": PIXEL}
CONFIG = """
providers:
  acme:
    base_url: {url}
    api_key_env: ACME_TEST_KEY
    models:
      - id: acme-words
      - id: acme-eyes
        images: true
logical_models:
  mine: [acme/acme-words, acme/acme-eyes]
"""


@asynccontextmanager
async def acme(folder: Path) -> AsyncGenerator[tuple[RawHttpServer, World]]:
    home = Path(os.environ["KODE_HOME"])
    home.mkdir(parents=True)
    async with RawHttpServer(says("I see")) as server:
        (home / "config.yaml").write_text(CONFIG.format(url=server.url), encoding="utf-8")
        environment = {"ACME_TEST_KEY": "acme-key-2718281828459045", "KIMI_API_KEY": None}
        async with sidecar(roots=[folder], environment=environment) as world:
            yield server, world


async def show(world: World, session: SessionFold, model: str) -> FoldedTurn:
    """Play a turn whose prompt holds a picture."""
    words = {"type": "text", "text": "What is this?"}
    params = {"sessionId": session.session_id, "input": [words, PICTURE], "model": model}
    started = await world.client.request("kode/turn/start", params, HANG_SECONDS)
    return await world.watch.turn_end(session.session_id, started["turnId"], HANG_SECONDS)


def asked(server: RawHttpServer) -> tuple[str, bool]:
    """The model that was asked last, and whether it was sent a picture."""
    body: dict[str, Any] = [sent.json for sent in server.requests if sent.method == "POST"][-1]
    return body["model"], "image_url" in str(body["messages"])


async def test_the_first_model_of_the_users_list_that_sees_is_asked(tmp_path: Path) -> None:
    async with acme(tmp_path) as (server, world):
        session = await world.session()
        await world.turn(session, "Hello", model="mine")
        assert asked(server) == ("acme-words", False)
        assert (await show(world, session, "mine")).stop_reason == "end_turn"
        assert asked(server) == ("acme-eyes", True)


async def test_a_picture_that_no_model_would_see_is_refused_before_anything_is_sent(
    tmp_path: Path,
) -> None:
    async with acme(tmp_path) as (server, world):
        session = await world.session()
        with pytest.raises(RpcError) as refused:
            await show(world, session, "acme/acme-words")
        assert refused.value.code == -32602
        text = refused.value.message
        assert "acme/acme-words reads text only" in text
        assert "These do: acme/acme-eyes." in text
        assert [sent for sent in server.requests if sent.method == "POST"] == []
        assert world.messages(session) == []


SVG, BMP = b"<svg xmlns='http://www.w3.org/2000/svg'/>", b"BM\x36\0\0\0\0\0\0\0"


# C2: by what it is, whatever it is called.
@pytest.mark.parametrize(
    ("kind", "data", "named"),
    [
        ("image/svg+xml", SVG, "image/svg+xml"),
        ("image/png", SVG, "image/svg+xml"),
        ("image/bmp", BMP, "image/bmp"),
        ("image/x-odd", b"odd", "image/x-odd"),
    ],
)
async def test_a_picture_of_a_kind_that_no_model_reads_is_refused_with_those_that_are_taken(
    tmp_path: Path, kind: str, data: bytes, named: str
) -> None:
    async with acme(tmp_path) as (_, world):
        session = await world.session()
        picture = {"type": "image", "mediaType": kind, "data": b64encode(data).decode()}
        params = {"sessionId": session.session_id, "input": [picture], "model": "mine"}
        with pytest.raises(RpcError) as refused:
            await world.client.request("kode/turn/start", params, HANG_SECONDS)
        assert refused.value.data["details"] == {"path": "$.input[0].mediaType"}
        assert f"models do not take {named}" in refused.value.message
        assert "image/png, image/jpeg, image/gif, image/webp" in refused.value.message
        assert world.messages(session) == []


async def test_the_user_learns_that_a_model_does_not_see_earlier_pictures(tmp_path: Path) -> None:
    async with acme(tmp_path) as (server, world):
        session = await world.session()
        await show(world, session, "mine")
        await world.turn(session, "And in words?", model="acme/acme-words")
        assert asked(server) == ("acme-words", False)
        notices = [one for one in world.events() if one["type"] == "notice"]
        (notice,) = [one for one in notices if one["code"] == "PicturesLeftOut"]
        assert notice["message"].startswith("acme-words reads text only")
