"""The user shows a picture beside the words."""

import base64
import struct
import zlib

from tests.support.model_script import answer, text
from tests.support.sidecar import HANG_SECONDS
from tests.support.transcripts import Stage


def chunk(kind: bytes, data: bytes) -> bytes:
    checked = kind + data
    return struct.pack(">I", len(data)) + checked + struct.pack(">I", zlib.crc32(checked))


PIXEL = b"".join(
    (
        b"\x89PNG\r\n\x1a\n",
        chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)),
        chunk(b"IDAT", zlib.compress(b"\x00\x80\x40\x00")),
        chunk(b"IEND", b""),
    )
)
FILES = {"menu.py": "PRICE = 12\n"}
RESPONSES = (answer(text("A brown dot. 茶！")),)


async def play(stage: Stage) -> None:
    world = stage.world
    session = await world.session(model="kimi-k2.6")
    picture = {
        "type": "image",
        "mediaType": "image/png",
        "data": base64.b64encode(PIXEL).decode(),
    }
    words = {"type": "text", "text": "What is this?"}
    params = {"sessionId": session.session_id, "input": [words, picture]}
    started = await world.client.request("kode/turn/start", params, HANG_SECONDS)
    await world.watch.turn_end(session.session_id, started["turnId"], HANG_SECONDS)
