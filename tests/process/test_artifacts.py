"""Tool output that was too large for the model, read page by page with `kode/blob/read`."""

import hashlib
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from kode_sidecar.terminal.client.connection import RpcError
from tests.support.model_script import answer, text, tool_call
from tests.support.session_fold import SessionFold
from tests.support.sidecar import HANG_SECONDS, World, sidecar

Json = dict[str, Any]
LIST_ALL = tool_call("list_files", {"directory": "."})
RESPONSES = [answer(LIST_ALL), answer(text("ok"))]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Four hundred paths of more than 150 characters, 茶 in each."""
    folder = tmp_path / "project"
    deep = folder / ("茶" * 70) / ("tea" * 20)
    deep.mkdir(parents=True)
    for number in range(400):
        (deep / f"leaf-{number:03}-of-a-very-long-name.txt").touch()
    return folder


async def large_result(world: World) -> tuple[SessionFold, Json]:
    """A session, and the block of a tool result that the model did not get whole."""
    session = await world.session()
    await world.turn(session, "list everything")
    blocks = [block.block for message in session.messages.values() for block in message.blocks]
    (result,) = [block for block in blocks if block["type"] == "tool_result"]
    return session, result


async def page(world: World, ref: str, offset: int, length: int) -> Json:
    params = {"ref": ref, "offset": offset, "length": length}
    return await world.client.request("kode/blob/read", params, HANG_SECONDS)


async def refusal(world: World, ref: str, offset: int = 0, length: int = 9) -> RpcError:
    with pytest.raises(RpcError) as refused:
        await page(world, ref, offset, length)
    return refused.value


async def read(world: World, artifact: Json, length: int) -> str:
    found, offset = "", 0
    while True:
        part = await page(world, artifact["ref"], offset, length)
        assert part["bytes"] == artifact["bytes"]
        found += part["text"]
        if "nextOffset" not in part:
            return found
        offset = part["nextOffset"]
        assert offset == len(found.encode())


async def test_the_whole_output_can_be_read_now_and_by_a_later_process(project: Path) -> None:
    # A14
    async with sidecar(RESPONSES, roots=[project]) as world:
        session, result = await large_result(world)
        artifact = result["artifact"]
        whole = await read(world, artifact, 1_000_000)
        data = whole.encode()
        assert (artifact["bytes"], artifact["sha256"]) == (
            len(data),
            hashlib.sha256(data).hexdigest(),
        )
        assert all(f"leaf-{number:03}-of-a-very-long-name.txt" in whole for number in range(400))
        # The model got the beginning of it, and was told so.
        (got,) = [m["content"] for m in world.asked()["messages"] if m["role"] == "tool"]
        head, _, note = got.rpartition("\n")
        assert whole.startswith(head)
        assert note.startswith(f"[cut after {len(head)} of {len(whole)} characters")
        assert artifact["ref"] in note
        # What the model got can be read, too: it did not travel whole.
        (shown,) = result["content"]
        assert await read(world, shown["blob"], 50_000) == got
        assert world.messages(session)[2]["content"][0]["artifact"] == artifact
    async with sidecar(roots=[project]) as world:
        listed = await world.client.request(
            "kode/message/list", {"sessionId": session.session_id}, HANG_SECONDS
        )
        assert listed["messages"][2]["content"][0]["artifact"] == artifact
        assert await read(world, artifact, 7_777) == whole
        path = world.folder(session) / "artifacts" / f"{artifact['ref'].rpartition('.')[2]}.txt"
        path.unlink()
        assert (await refusal(world, artifact["ref"])).code == -33025


async def test_pages_end_with_whole_characters(project: Path) -> None:
    async with sidecar(RESPONSES, roots=[project]) as world:
        _, result = await large_result(world)
        ref, size = result["artifact"]["ref"], result["artifact"]["bytes"]
        data = (await read(world, result["artifact"], 1_000_000)).encode()
        tea = data.index("茶".encode())
        for length in (1, 2, 3):
            part = await page(world, ref, tea, length)
            assert (part["text"], part["nextOffset"]) == ("茶", tea + 3)
        assert (await page(world, ref, tea, 8))["text"] == "茶茶"
        assert await page(world, ref, size, 8) == {"text": "", "bytes": size}
        for offset in (tea + 1, tea + 2, -1, size + 1, 10**30):
            error = await refusal(world, ref, offset)
            assert (error.code, error.data["details"]) == (-32602, {"path": "$.offset"})
        for length in (0, -5):
            error = await refusal(world, ref, tea, length)
            assert (error.code, error.data["details"]) == (-32602, {"path": "$.length"})
        assert len((await page(world, ref, 0, 10**30))["text"].encode()) == min(size, 1 << 20)


async def test_a_ref_is_never_a_path(project: Path) -> None:
    # W11
    async with sidecar(RESPONSES, roots=[project]) as world:
        session, result = await large_result(world)
        artifact_id = result["artifact"]["ref"].rpartition(".")[2]
        other = await world.session()
        folder = world.folder(session)
        with suppress(OSError):  # Windows lets few users make links
            (folder / "artifacts" / "secret1.txt").symlink_to(folder / "meta.json")
        (folder / "artifacts" / "folder1.txt").mkdir()
        for session_id in (session.session_id, "..", "", "con", str(folder), "../conversations"):
            for name in (
                *("meta", "../meta", "..\\meta", "/etc/passwd", "C:\\Windows\\win", "nul", ""),
                *("secret1", f"{artifact_id}/", f"../artifacts/{artifact_id}", artifact_id.upper()),
                *(f"{artifact_id}\n", f"{artifact_id}\0", "％2e％2e", "a" * 5000),
            ):
                assert (await refusal(world, f"{session_id}.{name}")).code == -33025, name
        assert (await refusal(world, f"{other.session_id}.{artifact_id}")).code == -33025
        assert (await refusal(world, f"{session.session_id}.folder1")).code == -33025


async def test_a_fork_has_artifacts_of_its_own(project: Path) -> None:  # A4 A14
    async with sidecar(RESPONSES, roots=[project]) as world:
        session, result = await large_result(world)
        whole = await read(world, result["artifact"], 1_000_000)
        params = {"sessionId": session.session_id}
        forked = await world.client.request("kode/session/fork", params, HANG_SECONDS)
        await world.client.request("kode/session/delete", params, HANG_SECONDS)
        listed = await world.client.request(
            "kode/message/list", {"sessionId": forked["sessionId"]}, HANG_SECONDS
        )
        (artifact,) = [
            block["artifact"]
            for message in listed["messages"]
            for block in message["content"]
            if "artifact" in block
        ]
        assert artifact["ref"].startswith(forked["sessionId"])
        assert await read(world, artifact, 1_000_000) == whole
        assert (await refusal(world, result["artifact"]["ref"])).code == -33025
