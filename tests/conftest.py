"""What every test gets: a printed seed, a state folder of its own, a clean environment.

A test that hangs is ended by `faulthandler_timeout` (see pyproject.toml).
"""

import itertools
import os
import random
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import get_args

import hypothesis
import pytest
from hypothesis import core

from kode_sidecar.infrastructure.records.messages import StorageName
from tests.support.program import PROGRAM_FOLDERS

SEED_VARIABLE = "KODE_TEST_SEED"
FULL = os.environ.get("KODE_TEST_FULL") == "1"

# Settings and proxies of whoever runs the tests must not reach them, nor a real key.
FOREIGN_PREFIXES = (
    *("DEEPSEEK_", "DASHSCOPE_", "QWEN_", "ZHIPUAI_", "GLM_", "ZAI_", "OPENROUTER_", "GEMINI_"),
    *("GOOGLE_API_",),
    "KIMI_",
    "MOONSHOT_",
    "ANTHROPIC_",
    "OPENAI_",
    "KODE_",
    "AGENT_LOG_",
)
FOREIGN_NAMES = frozenset({"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"})

# Whoever runs the tests may ignore these, as `nohup` does; what they start must not inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
if sys.platform != "win32":
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

_numbers = itertools.count()

Played = Callable[[int, str], None]
"""`played(count, what)`: for the last lines of a full run. Once a test, at its end."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--update-golden` writes what it would compare; then read the change. Not with `-n`."""
    parser.addoption("--update-golden", action="store_true", help="record transcripts anew")


def pytest_configure(config: pytest.Config) -> None:
    """One seed for the run; workers inherit it by the environment."""
    seed = os.environ.setdefault(SEED_VARIABLE, str(random.SystemRandom().randrange(2**32)))
    # The same as the command line's --hypothesis-seed: it also turns the example database off.
    core.global_force_seed = int(seed)
    hypothesis.settings.register_profile(
        "kode",
        deadline=None,
        database=None,
        derandomize=False,  # with CI set it would be on, and the seed without effect
        max_examples=1_000 if FULL else 60,
        suppress_health_check=[hypothesis.HealthCheck.too_slow],
    )
    hypothesis.settings.load_profile("kode")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Before `-m` chooses."""
    for item in items:
        if item.path.parent.name in PROGRAM_FOLDERS:
            item.add_marker(pytest.mark.program)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """How much was played in full, added up over the parts, and how to repeat this run."""
    counts: Counter[str] = Counter()
    for report in terminalreporter.getreports("passed"):
        reported = report.user_properties  # measured figures are told there, too, as texts
        counts.update({what: count for what, count in reported if isinstance(count, int)})
    for what, count in sorted(counts.items() if FULL else ()):
        terminalreporter.write_line(f"played: {count:,} {what}")
    terminalreporter.write_line(f"{SEED_VARIABLE}={os.environ[SEED_VARIABLE]}")


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> random.Random:
    """Randomness of this test alone, the same whenever the seed is."""
    return random.Random(f"{os.environ[SEED_VARIABLE]}:{request.node.nodeid}")


@pytest.fixture
def played(record_property: Callable[[str, object], None]) -> Played:
    """Tells what this test covered."""
    return lambda count, what: record_property(what, count)


@pytest.fixture(params=get_args(StorageName))
def storage(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> StorageName:
    """Both ways to keep messages: whatever the test spawns uses it for new sessions."""
    monkeypatch.setenv("KODE_STORAGE", request.param)
    return request.param


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """`a_storage` is one way to keep messages, drawn by the seed for each test; in full, both."""
    if "a_storage" in metafunc.fixturenames:
        names = get_args(StorageName)
        drawn = random.Random(f"{os.environ[SEED_VARIABLE]}:{metafunc.definition.nodeid}")
        metafunc.parametrize("a_storage", names if FULL else [drawn.choice(names)], indirect=True)


@pytest.fixture
def a_storage(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> StorageName:
    """As `storage`, for tests that are about something else and spawn much."""
    monkeypatch.setenv("KODE_STORAGE", request.param)
    return request.param


@pytest.fixture(autouse=True)
def own_environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A `KODE_HOME` of its own, not yet made, and nothing of the developer's settings.

    The user's own folder is an empty one, so that no verb, skill or git setting of the
    developer's is read; caches of downloaded programs stay where they are.
    """
    caches = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    user = tmp_path_factory.getbasetemp() / "user"
    user.mkdir(exist_ok=True)
    home = tmp_path_factory.getbasetemp() / f"kode-home-{next(_numbers)}"
    with pytest.MonkeyPatch.context() as patch:
        for name in map(str.upper, list(os.environ)):
            foreign = name.startswith(FOREIGN_PREFIXES) and not name.startswith("KODE_TEST_")
            if foreign or name in FOREIGN_NAMES:
                patch.delenv(name, raising=False)
                patch.delenv(name.lower(), raising=False)
        patch.setenv("KODE_HOME", str(home))
        patch.setenv("HOME", str(user))
        patch.setenv("USERPROFILE", str(user))
        patch.setenv("XDG_CACHE_HOME", caches)
        for name in ("LC_ALL", "LC_MESSAGES"):
            patch.delenv(name, raising=False)
        patch.setenv("LANG", "C.UTF-8")  # tells no language: prompts are those of the default
        yield
