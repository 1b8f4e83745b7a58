"""`dev.py`: what it decides before it installs anything (E7)."""

import importlib.util
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parents[2] / "dev.py"


@pytest.fixture
def dev(tmp_path: Path) -> ModuleType:
    """`dev.py` at home in an empty project, in a folder with a space and Chinese in its name."""
    root = tmp_path / "my 项目"
    (root / "requirements").mkdir(parents=True)
    for name in ("pyproject.toml", "requirements/runtime.txt", "requirements/dev.txt"):
        (root / name).write_text("", encoding="utf-8")
    spec = importlib.util.spec_from_file_location("dev_copy", shutil.copy(SCRIPT, root))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_an_unfinished_environment_is_made_again(dev: ModuleType) -> None:
    assert not dev.environment_works()
    venv.create(dev.VENV)
    assert dev.environment_works()
    dev.UNFINISHED.touch()
    assert not dev.environment_works()


@pytest.mark.parametrize(
    "config",
    ["", "home = /no/such/folder\nversion = 3.11.7\n", "home = {home}\nversion = 3.10.1\n"],
)
def test_an_environment_whose_python_is_gone_or_old_is_made_again(
    dev: ModuleType, config: str
) -> None:
    venv.create(dev.VENV)
    text = config.format(home=Path(sys.executable).parent)
    (dev.VENV / "pyvenv.cfg").write_text(text, encoding="utf-8")
    assert not dev.environment_works()


def test_each_level_is_installed_once_until_the_lock_changes(dev: ModuleType) -> None:
    venv.create(dev.VENV)
    calls = install_recording_pip(dev)
    dev.prepare("runtime")
    dev.prepare("runtime")
    assert calls() == ["runtime.txt", dev.ROOT.name]
    dev.prepare("dev")
    dev.prepare("dev")
    assert calls() == ["dev.txt"]
    (dev.ROOT / "requirements/dev.txt").write_text("x==1", encoding="utf-8")
    dev.prepare("runtime")
    assert calls() == []
    dev.prepare("dev")
    assert calls() == ["dev.txt"]
    dev.INSTALLED.write_text('{"runtime": ', encoding="utf-8")
    dev.prepare("runtime")
    assert calls() == ["runtime.txt", dev.ROOT.name]


def test_two_at_once_set_up_one_after_the_other(dev: ModuleType) -> None:
    venv.create(dev.VENV)
    calls = install_recording_pip(dev)
    other = "import sys; sys.path.insert(0, sys.argv[1]); import dev; dev.prepare('runtime')"
    with dev.one_at_a_time():
        second = subprocess.Popen(
            [sys.executable, "-c", other, str(dev.ROOT)], stdout=subprocess.PIPE, encoding="utf-8"
        )
        assert second.stdout is not None
        assert "waiting for another dev.py" in second.stdout.readline()
        assert calls() == []
    second.communicate(timeout=60)
    assert second.returncode == 0
    assert calls() == ["runtime.txt", dev.ROOT.name]


def install_recording_pip(dev: ModuleType) -> Callable[[], list[str]]:
    """A pip without network; the answer tells what it was asked for since the last time."""
    ask = [str(dev.PYTHON), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    found = subprocess.run(ask, capture_output=True, encoding="utf-8", check=True).stdout
    package = Path(found.strip()) / "pip"
    package.mkdir()
    record = package / "asked.txt"
    script = (
        "import pathlib, sys\n"
        "given = sys.argv\n"
        "wanted = given[given.index('--no-input') - 3]\n"
        f"with open({str(record)!r}, 'a', encoding='utf-8') as file:\n"
        "    file.write(pathlib.Path(wanted).name + '\\n')\n"
    )
    (package / "__main__.py").write_text(script, encoding="utf-8")

    def calls() -> list[str]:
        asked = record.read_text(encoding="utf-8").splitlines() if record.exists() else []
        record.unlink(missing_ok=True)
        return asked

    return calls


def test_a_failing_pip_is_told_with_its_log(dev: ModuleType) -> None:
    venv.create(dev.VENV)  # without pip
    with pytest.raises(dev.SetUpError) as caught:
        dev.pip("install", "x")
    assert "No module named pip" in str(caught.value)
    assert str(dev.PIP_LOG) in str(caught.value)


def test_stages_run_on_behind_one_that_failed(
    dev: ModuleType, capfd: pytest.CaptureFixture[str]
) -> None:
    venv.create(dev.VENV)
    (dev.ROOT / "broken.py").write_text("print('一\\n1 failed in 0.1s')\n1 / 0", encoding="utf-8")
    (dev.ROOT / "fine.py").write_text("print('\\x1b[32m2 passed\\x1b[0m\\n')", encoding="utf-8")
    outcomes = dev.run_stages([dev.Stage("a", ["broken"]), dev.Stage("b", ["fine"])])
    assert [(o.stage, o.ok) for o in outcomes] == [("a", False), ("b", True)]
    assert outcomes[0].last_line == "ZeroDivisionError: division by zero"
    assert outcomes[1].last_line == "2 passed"
    assert dev.summary(outcomes) == "FAILED: a"
    assert dev.summary(outcomes[1:]) == "ok: b"
    assert "\n1 failed in 0.1s\n" in capfd.readouterr().out


def test_what_was_built_is_tested_and_nothing_else(
    dev: ModuleType, capfd: pytest.CaptureFixture[str]
) -> None:
    venv.create(dev.VENV)
    kinds = ["folder", "onefile"]
    assert [(o.stage, o.ok) for o in dev.build_and_test(kinds)] == [("build", False)]
    asked = "import sys\nprint('asked for', *sys.argv[1:])\n"
    (dev.ROOT / "freeze.py").write_text(asked, encoding="utf-8")
    over_it = "import os, sys\nprint(sys.argv[-1], os.environ['KODE_TEST_EXE'])\n"
    (dev.ROOT / "pytest.py").write_text(over_it, encoding="utf-8")
    outcomes = dev.build_and_test(kinds)
    assert [(o.stage, o.ok) for o in outcomes] == [
        ("build", True),
        ("folder tests", True),
        ("onefile tests", True),
    ]
    tested = [o.last_line for o in outcomes[1:]]
    assert tested == [f"program {dev.BUILT[kind]}" for kind in kinds]
    assert "asked for folder onefile" in capfd.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ([], 0, "dev.py test [--exe] [--full] [pytest arguments]"),
        (["--help"], 0, "dev.py demo"),
        (["lint", "--help"], 0, "dev.py lint [--fix]"),
        (["tset"], 2, "dev.py has no command `tset`; it has demo"),
    ],
)
def test_help_needs_no_environment(
    tmp_path: Path, arguments: list[str], code: int, said: str
) -> None:
    shutil.copy(SCRIPT, tmp_path)
    command = [sys.executable, str(tmp_path / "dev.py"), *arguments]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == code
    assert said in done.stdout + done.stderr
    assert not (tmp_path / ".venv").exists()
