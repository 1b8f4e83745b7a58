"""What `dev.py exe --windows` decides before anything is downloaded or started."""

import re
from pathlib import Path, PurePosixPath

import pytest

from freeze.build import program_path
from freeze.forwarder_dll import LIBRARY, forwarder_dll
from freeze.version_resource import version_resource
from freeze.windows_python import LOCK, for_windows
from freeze.wine import HINT, Wine, WineError, windows_path
from kode_sidecar import __version__


def test_where_wine_is_missing_it_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(WineError, match="apt install wine") as caught:
        Wine(tmp_path / "prefix")
    assert str(caught.value) == HINT
    assert list(tmp_path.iterdir()) == []


def test_the_lock_is_read_as_windows_reads_it() -> None:
    lines = list(for_windows(LOCK.read_text(encoding="utf-8")))
    names = {line.partition("==")[0] for line in lines}
    assert {"pyinstaller", "pefile", "pywin32-ctypes", "colorama", "msgspec", "pytest"} <= names
    assert names & {"macholib", "pyright", "ruff"} == set()
    assert all(re.fullmatch(r"[\w.-]+==\S+( --hash=sha256:[0-9a-f]{64})+", line) for line in lines)


def test_a_lock_made_by_hand() -> None:
    lock = (
        "# made by uv\n"
        'a==1 ; sys_platform == "win32" \\\n    --hash=sha256:00 \\\n    --hash=sha256:01\n'
        "b[c]==2 \\\n    --hash=sha256:02\n"
        'd==3 ; python_full_version < "3.11" \\\n    --hash=sha256:03\n'
    )
    assert list(for_windows(lock)) == [
        "a==1 --hash=sha256:00 --hash=sha256:01",
        "b[c]==2 --hash=sha256:02",
    ]


def test_paths_in_wine() -> None:
    place = Path(PurePosixPath("/home/林/my project"))
    assert windows_path(place).replace("\\", "/") == "Z:/home/林/my project"
    assert program_path("onefile", Path("d"), ".exe") == Path("d", "one-file", "kode-sidecar.exe")
    assert program_path("folder", Path("d"), "") == Path("d", "kode-sidecar", "kode-sidecar")


def test_the_library_that_wine_lacks_forwards_its_one_function() -> None:
    data = forwarder_dll()
    begin = int.from_bytes(data[0x3C:0x40], "little")
    assert (data[:2], data[begin : begin + 4]) == (b"MZ", b"PE\0\0")
    table = data[0x200:]  # its one section: the export table, at address 0x1000

    def pointed(offset: int) -> bytes:
        place = int.from_bytes(table[offset : offset + 4], "little") - 0x1000
        return table[place : table.index(b"\0", place)]

    functions, names = (
        int.from_bytes(table[offset : offset + 4], "little") - 0x1000 for offset in (28, 32)
    )
    assert pointed(12) == LIBRARY.encode()
    assert pointed(names) == b"ProcessPrng"
    assert pointed(functions) == b"ADVAPI32.SystemFunction036"


def test_the_version_resource_has_the_version_in_words_and_numbers() -> None:
    class Called:
        def __init__(self, *arguments: object, **named: object) -> None:
            self.arguments, self.named = arguments, named

    names = ("VSVersionInfo", "FixedFileInfo", "StringFileInfo", "StringTable", "StringStruct")
    words = dict.fromkeys((*names, "VarFileInfo", "VarStruct"), Called)
    info = eval(version_resource(), words)  # as PyInstaller does
    fixed = info.named["ffi"].named
    numbers = ".".join(map(str, fixed["filevers"]))
    assert numbers == ".".join([*re.findall(r"\d+", __version__)[:3], "0"])
    (table,) = info.named["kids"][0].arguments[0]
    texts = dict(struct.arguments for struct in table.arguments[1])
    assert texts["FileVersion"] == texts["ProductVersion"] == __version__
