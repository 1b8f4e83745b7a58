"""The guard over paths: hostile strings, links, devices, names of Windows. W11"""

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.workspace.disk import read_regular
from kode_sidecar.infrastructure.workspace.paths import Location, Root, locate, make_roots
from tests.support.files import link, write


@pytest.fixture
def project(tmp_path: Path) -> Path:
    write(
        tmp_path,
        {
            "app/src/main.py": "main\n",
            "app/.hidden": "h\n",
            "app/中文.txt": "z\n",
            "app/[id].tsx": "t\n",
            "outside.txt": "secret\n",
            "app-evil/a.txt": "secret\n",
        },
    )
    return tmp_path / "app"


def find(path: str, *roots: Path) -> Location:
    return locate(path, make_roots(roots), lambda place: place.exists())


def refusal(path: str, *roots: Path) -> str:
    with pytest.raises(KodeError) as caught:
        read_regular(find(path, *roots))
    assert "secret" not in caught.value.message
    return caught.value.code


@pytest.mark.parametrize(
    ("path", "display"),
    [
        ("src/main.py", "src/main.py"),
        ("src\\main.py", "src/main.py"),
        ("./src//./main.py", "src/main.py"),
        (".hidden", ".hidden"),
        ("中文.txt", "中文.txt"),
        ("[id].tsx", "[id].tsx"),
    ],
)
def test_plain_names_are_read(project: Path, path: str, display: str) -> None:
    location = find(path, project)
    assert location.display == display
    assert read_regular(location).endswith(b"\n")
    assert find(str(project / display), project).display == display


HOSTILE = [
    # climbing and absolute
    "..", "../outside.txt", "src/../../outside.txt", "src/../src/main.py", "src\\..\\..\\out.txt",
    "/etc/passwd", "/", "\\", "/..", "//", "~root/../../etc/passwd/..",
    # UNC and device paths
    "//server/share/a", "\\\\server\\share\\a", "/\\server\\share", "\\\\?\\C:\\a", "//?/C:/a",
    "\\\\.\\pipe\\x", "//./NUL", "\\\\?\\UNC\\server\\share\\a", "\\\\?\\GLOBALROOT\\Device\\x",
    "//server@SSL@443/DavWWWRoot/a", "\\\\127.0.0.1\\C$\\a", "\\??\\C:\\a",
    # drives
    "C:", "C:a.txt", "C:\\Windows\\win.ini", "c:/windows/win.ini", "C:..\\a",
    # device names
    "CON", "con.txt", "src/NUL", "nul .txt", "AUX", "PRN.log", "COM1", "com9.py", "LPT¹", "CONIN$",
    "conout$", "clock$", "CON/x", "NUL:", "nul.tar.gz",
    # alternate streams
    "src/main.py:stream", "src/main.py::$DATA", "src::$INDEX_ALLOCATION/main.py",
    # trailing dots and spaces
    "src/main.py.", "src/main.py ", "src./main.py", "src /main.py", "...", "src/...", " ",
    # short names
    "PROGRA~1/x", "GIT~1/config", "SRC~1", "MAIN~12.PY",
    # control characters, length
    "src/main.py\x00.txt", "src/ma\nin.py", "\x1b[2J", "a" * 256, "a/" * 3000,
]  # fmt: skip


@pytest.mark.parametrize("path", HOSTILE)
def test_hostile_strings_are_refused_before_any_system_call(
    project: Path, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    roots = make_roots([project])

    def touched(*arguments: object, **options: object) -> str:
        raise AssertionError("the file system was asked")

    for name in ("realpath", "lexists", "exists", "samefile"):
        monkeypatch.setattr(os.path, name, touched)
    with pytest.raises(KodeError) as caught:
        locate(path, roots, lambda place: bool(touched()))
    assert caught.value.code == "PathOutsideRoots"
    assert str(project.parent) not in caught.value.message


def absolute_elsewhere(project: Path) -> str:
    return str(project.parent / "outside.txt")


def sibling_with_the_same_beginning(project: Path) -> str:
    return str(project.parent / "app-evil" / "a.txt")


def climbing_absolute(project: Path) -> str:
    return f"{project}/../outside.txt"


def link_to_a_file_outside(project: Path) -> str:
    link(project / "link.txt", "../outside.txt")
    return "link.txt"


def link_to_a_folder_outside(project: Path) -> str:
    link(project / "folder", "..")
    return "folder/outside.txt"


def link_to_a_link_outside(project: Path) -> str:
    link(project / "one", "two")
    link(project / "two", project.parent / "outside.txt")
    return "one"


def link_to_a_sibling(project: Path) -> str:
    link(project / "evil", project.parent / "app-evil")
    return "evil/a.txt"


ESCAPES = [
    absolute_elsewhere,
    sibling_with_the_same_beginning,
    climbing_absolute,
    link_to_a_file_outside,
    link_to_a_folder_outside,
    link_to_a_link_outside,
    link_to_a_sibling,
]


@pytest.mark.parametrize("make", ESCAPES)
def test_escapes_are_refused(project: Path, make: Callable[[Path], str]) -> None:
    assert refusal(make(project), project) == "PathOutsideRoots"


def hard_link(project: Path) -> str:
    os.link(project.parent / "outside.txt", project / "hard.txt")
    return "hard.txt"


def endless_link(project: Path) -> str:
    link(project / "loop", "loop")
    return "loop"


def named_pipe(project: Path) -> str:
    if not hasattr(os, "mkfifo"):
        pytest.skip("no named pipes here")
    os.mkfifo(project / "pipe")
    return "pipe"


def local_socket(project: Path) -> str:
    if not hasattr(socket, "AF_UNIX"):
        pytest.skip("no local sockets here")
    with socket.socket(socket.AF_UNIX) as listener:
        os.chdir(project)
        listener.bind("socket")
    return "socket"


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (hard_link, "Denied"),
        (endless_link, "NotEditable"),
        (named_pipe, "NotEditable"),
        (local_socket, "NotEditable"),
        (lambda project: "src", "NotEditable"),
        (lambda project: "missing.py", "NotFound"),
        (lambda project: "src/main.py/x", "NotFound"),
    ],
)
def test_only_regular_files_with_one_name_are_read(
    project: Path, make: Callable[[Path], str], code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(Path.cwd())
    assert refusal(make(project), project) == code


def test_links_inside_the_root_lead_to_one_place(project: Path) -> None:
    link(project / "alias.py", "src/main.py")
    link(project / "sources", "src")
    expected = find("src/main.py", project)
    for name in ("alias.py", "sources/main.py"):
        location = find(name, project)
        assert (location.path, location.display) == (expected.path, expected.display)
        assert location.named == tuple(name.split("/"))
        assert read_regular(location) == b"main\n"


def test_a_root_that_is_a_link_keeps_its_spelling(project: Path) -> None:
    link(project.parent / "opened", "app")
    opened = project.parent / "opened"
    for path in ("src/main.py", str(opened / "src/main.py"), str(project / "src/main.py")):
        assert find(path, opened).path == opened / "src" / "main.py"


def test_a_folder_swapped_for_a_link_after_the_check_is_not_entered(project: Path) -> None:
    location = find("src/main.py", project)
    (project / "src").rename(project / "moved")
    write(project.parent, {"elsewhere/main.py": "secret\n"})
    link(project / "src", project.parent / "elsewhere")
    with pytest.raises(KodeError):
        read_regular(location)


def test_a_file_swapped_for_a_link_after_the_check_is_not_opened(project: Path) -> None:
    location = find("src/main.py", project)
    (project / "src/main.py").unlink()
    link(project / "src/main.py", project.parent / "outside.txt")
    with pytest.raises(KodeError):
        read_regular(location)


def test_size_is_capped_before_reading(project: Path) -> None:
    # W16
    with open(project / "huge.bin", "wb") as file:
        file.truncate(500_000_000)
    with pytest.raises(KodeError) as caught:
        read_regular(find("huge.bin", project))
    assert caught.value.code == "TooLarge"
    assert "10,000,000" in caught.value.message
    assert "search_code" in caught.value.message


def windows_root(path: str) -> Root:
    """A root as it is on Windows; only spellings are compared with it."""
    return Root("proj", Path(path), Path(path), case_sensitive=False)


@pytest.mark.parametrize(
    ("root", "path", "below"),
    [
        ("C:\\Proj", "c:\\proj\\Src\\a.py", ("Src", "a.py")),
        ("C:\\Proj", "C:/PROJ/a.py", ("a.py",)),
        ("C:\\Proj", "C:\\Project\\a.py", None),
        ("C:\\Proj", "D:\\Proj\\a.py", None),
        ("C:\\Proj", "C:Proj\\a.py", None),
        ("C:\\Proj", "\\Proj\\a.py", None),
        ("C:\\Proj", "\\\\?\\C:\\Proj\\a.py", None),
        ("C:\\", "c:\\a.py", ("a.py",)),
        ("C:\\Users\\RUNNER~1\\p", "C:\\Users\\RUNNER~1\\p\\a.py", ("a.py",)),
        ("\\\\Server\\share\\p", "//server/SHARE/p/a.py", ("a.py",)),
        ("\\\\server\\share\\p", "\\\\server\\other\\p\\a.py", None),
        ("\\\\server\\share\\p", "/server/share/p/a.py", None),
    ],
)
def test_roots_of_windows(root: str, path: str, below: tuple[str, ...] | None) -> None:
    assert windows_root(root).parts_of(path) == below


def test_case_is_folded_only_where_the_volume_folds_it(project: Path) -> None:
    (root,) = make_roots([project])
    upper = str(project).upper() + "/src/main.py"
    if root.case_sensitive:
        assert refusal(upper, project) == "PathOutsideRoots"
    else:
        assert read_regular(find(upper, project)) == b"main\n"
    # Where the root claims to fold, another folder of a similar name is still not it.
    claimed = Root("app", project, project, case_sensitive=False)
    twin = project.parent / "APP"
    if not twin.exists():
        assert not claimed.contains(twin / "a.txt")


def test_several_roots(tmp_path: Path) -> None:
    write(tmp_path, {"app/lib/a.py": "app", "lib/a.py": "lib", "app/b.py": "b", "lib/c.py": "c"})
    write(tmp_path, {"other/lib/a.py": "second"})
    roots = [tmp_path / "app", tmp_path / "lib", tmp_path / "other" / "lib"]
    assert [root.name for root in make_roots(roots)] == ["app", "lib", "lib-2"]
    for path, content in {
        "lib/a.py": b"lib",
        "app/lib/a.py": b"app",
        "lib-2/a.py": b"second",
        "a.py": b"lib",
        "b.py": b"b",
        "c.py": b"c",
    }.items():
        location = find(path, *roots)
        assert read_regular(location) == content
        assert read_regular(find(location.display, *roots)) == content
    assert find("new.py", *roots).display == "app/new.py"
    assert find("lib-2/new.py", *roots).display == "lib-2/new.py"


def test_without_a_root_there_is_nothing() -> None:
    with pytest.raises(KodeError, match="No folder is open"):
        find("a.py")
