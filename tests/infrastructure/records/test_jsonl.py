"""Append-only files: what survives, and what an error says."""

import errno
import os
import stat
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.records.json_record import encode_json
from kode_sidecar.infrastructure.records.jsonl import JsonlFile, open_lines, read_records
from tests.support.disk_calls import DiskCalls

decode = msgspec.json.Decoder(dict[str, object]).decode


def append(path: Path, *records: dict[str, object]) -> None:
    file = JsonlFile(path)
    for record in records:
        file.append(encode_json(record))
    file.close()


def test_one_write_a_record_and_one_fsync_for_many(  # W6
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = DiskCalls(monkeypatch)
    file = JsonlFile(tmp_path / "a.jsonl")
    for number in range(3):
        file.append(encode_json({"n": number}))
    file.sync()
    file.sync()
    file.close()
    file.close()
    assert (calls.writes, calls.fsyncs) == (3, 1)
    assert read_records(tmp_path / "a.jsonl", decode) == ([{"n": 0}, {"n": 1}, {"n": 2}], [])


@pytest.mark.skipif(sys.platform == "win32", reason="modes are POSIX")
def test_only_the_owner_reads_it_and_children_do_not_get_it(tmp_path: Path) -> None:
    file = JsonlFile(tmp_path / "a.jsonl")
    assert stat.S_IMODE((tmp_path / "a.jsonl").stat().st_mode) == 0o600
    file.append(b"{}")
    assert not os.get_inheritable(file._fd)  # pyright: ignore[reportPrivateUsage]
    file.close()


@pytest.mark.skipif(sys.platform != "linux", reason="counts the descriptors in /proc")
def test_it_is_open_only_while_something_waits_for_its_fsync(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    file = JsonlFile(tmp_path / "a.jsonl")
    opened: list[int] = []
    for number in range(3):
        file.append(encode_json({"n": number}))
        opened.append(len(os.listdir("/proc/self/fd")) - before)
        file.sync()
        opened.append(len(os.listdir("/proc/self/fd")) - before)
    assert opened == [1, 0] * 3
    file.close()
    with pytest.raises(KodeError, match="not saved"):
        file.append(b"{}")
    assert len(read_records(tmp_path / "a.jsonl", decode)[0]) == 3


def test_a_file_that_is_gone_is_not_begun_anew(tmp_path: Path) -> None:
    file = JsonlFile(tmp_path / "a.jsonl")
    file.append(b"{}")
    file.sync()
    (tmp_path / "a.jsonl").unlink()
    with pytest.raises(KodeError, match="not saved"):
        file.append(b"{}")
    assert not (tmp_path / "a.jsonl").exists()


def test_threads_append_and_sync_side_by_side(tmp_path: Path) -> None:
    file = JsonlFile(tmp_path / "a.jsonl")
    done = threading.Event()

    def sync() -> None:
        while not done.is_set():
            file.sync()

    with ThreadPoolExecutor(3) as threads:
        waiting = [threads.submit(sync) for _ in range(3)]
        for number in range(500):
            file.append(encode_json({"n": number}))
        done.set()
        assert [one.result() for one in waiting] == [None] * 3
    file.close()
    assert [one["n"] for one in read_records(tmp_path / "a.jsonl", decode)[0]] == [*range(500)]


def test_lines_end_at_0x0a_only(tmp_path: Path) -> None:  # W6
    text = "a\u2028b\u2029c\u0085d\x0b\x0c\x1c\r\n中文😀"
    append(tmp_path / "a.jsonl", {"text": text}, {"n": 1})
    records, problems = read_records(tmp_path / "a.jsonl", decode)
    assert records == [{"text": text}, {"n": 1}]
    assert problems == []
    assert (tmp_path / "a.jsonl").read_bytes().count(b"\n") == 2


def test_lone_surrogates_become_replacement_characters(tmp_path: Path) -> None:
    append(tmp_path / "a.jsonl", {"te\udc80xt": ["x\ud83dy", {"deep": "\udfff"}], "n": 2**70})
    records, _ = read_records(tmp_path / "a.jsonl", decode)
    assert records == [{"te\ufffdxt": ["x\ufffdy", {"deep": "\ufffd"}], "n": 2**70}]


def test_absurd_nesting_is_a_typed_error() -> None:
    value: object = 1
    for _ in range(5_000):
        value = [value]
    with pytest.raises(KodeError, match="nested too deeply") as caught:
        encode_json(value)
    assert caught.value.code == "Storage"


def test_truncation_at_every_byte_keeps_every_whole_record(tmp_path: Path) -> None:  # W6
    records = [{"n": 0, "text": "a\u2028"}, {"n": 1, "text": "中"}, {"n": 2, "text": "c"}]
    whole = b"".join(encode_json(record) + b"\n" for record in records)
    path = tmp_path / "a.jsonl"
    for cut in range(len(whole) + 1):
        path.write_bytes(whole[:cut])
        # A record is whole without its newline, too.
        expected = records[: (whole[:cut] + b"\n").count(b"}\n")]
        kept, problems = read_records(path, decode)
        assert kept == expected
        assert len(problems) == (whole[:cut].rpartition(b"\n")[2] not in (b"", *whole.split(b"\n")))
        append(path, {"n": 9})
        assert read_records(path, decode)[0] == [*expected, {"n": 9}]


def test_a_bad_line_costs_only_itself(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    bad = [b"{", b"not json", b"\xff\xfe", b'"text"', b'{"n":1}{"n":2}', b"[" * 5_000]
    path.write_bytes(b"\xef\xbb\xbf" + b"".join(b'{"n":0}\n' + line + b"\n\n" for line in bad))
    records, problems = read_records(path, decode)
    assert records == [{"n": 0}] * len(bad)
    assert [problem.line for problem in problems] == [2, 5, 8, 11, 14, 17]


def test_zero_bytes_of_a_crash_do_not_hide_the_record_behind_them(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"n":0}\n' + bytes(4096) + b'{"n":1}\n' + bytes(512))
    records, problems = read_records(path, decode)
    assert records == [{"n": 0}, {"n": 1}]
    assert [one.line for one in problems] == [2, 3], "so that whoever may write takes them out"
    assert open_lines(path, decode).records == records
    assert path.read_bytes() == b'{"n":0}\n{"n":1}\n'


@given(st.binary(max_size=200))
def test_any_bytes_can_be_read(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / f"any-{os.getpid()}.jsonl"
    path.write_bytes(data)
    read_records(path, decode)


def test_a_missing_file_has_no_records(tmp_path: Path) -> None:
    assert read_records(tmp_path / "none.jsonl", decode) == ([], [])


def test_a_file_that_cannot_be_opened_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(KodeError, match=r"not saved: a\.jsonl: .*restart the sidecar") as caught:
        JsonlFile(tmp_path / "gone" / "a.jsonl")
    assert caught.value.code == "Storage"
    assert str(tmp_path) not in caught.value.message
    (tmp_path / "folder").mkdir()
    with pytest.raises(KodeError, match="not readable: folder"):
        read_records(tmp_path / "folder", decode)


@pytest.mark.skipif(sys.platform == "win32", reason="needs a limit on file sizes")
def test_a_failed_append_leaves_nothing_and_the_next_one_works(tmp_path: Path) -> None:  # W6
    """The limit on file sizes gives a real short write followed by a real error."""
    path = tmp_path / "a.jsonl"
    script = f"""
import errno, os, resource, signal, sys
from pathlib import Path
from kode_sidecar.errors import KodeError
from tests.support.disk_calls import DiskCalls
from kode_sidecar.infrastructure.records.jsonl import JsonlFile
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
file = JsonlFile(Path({str(path)!r}))
file.append(b'{{"n":0}}')
resource.setrlimit(resource.RLIMIT_FSIZE, (20, resource.RLIM_INFINITY))
try:
    file.append(b'{{"n":1,"text":"' + b'x' * 100 + b'"}}')
except KodeError as error:
    print(error.message)
assert os.path.getsize({str(path)!r}) == 8
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
file.append(b'{{"n":2}}')
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("not saved: a.jsonl: ")
    assert "free some space" in done.stdout
    assert read_records(path, decode) == ([{"n": 0}, {"n": 2}], [])


def test_a_full_disk_is_named(tmp_path: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("needs /dev/full")
    file = JsonlFile(tmp_path / "a.jsonl")
    file.append(b"{}")
    os.dup2(os.open("/dev/full", os.O_RDWR), file._fd)  # pyright: ignore[reportPrivateUsage]
    with pytest.raises(KodeError) as caught:
        file.append(b"{}")
    assert os.strerror(errno.ENOSPC) in caught.value.message
    assert "free some space" in caught.value.message
    assert caught.value.retryable
    file.close()
