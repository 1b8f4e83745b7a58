"""Where settings come from and which source wins (A11)."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from kode_sidecar.core.settings import LoadedSettings, load_settings, with_editor
from kode_sidecar.errors import KodeError

KEY = "sk-" + "a1" * 20


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "状态 home"
    folder.mkdir()
    return folder


def load(home: Path, environ: Mapping[str, str] | None = None) -> LoadedSettings:
    return load_settings({"KODE_HOME": str(home), **(environ or {})})


def test_defaults_need_nothing(home: Path) -> None:
    loaded = load(home)
    settings = loaded.settings
    assert loaded.problems == ()
    assert settings.base_url == "https://api.moonshot.cn/v1"  # A3
    assert (settings.model, settings.agent, settings.mode) == ("ide-chat", "ide-helper", "review")
    assert (settings.temperature, settings.top_p, settings.max_tokens) == (0.3, 0.95, None)  # A13
    assert (settings.window_messages, settings.locale) == (20, "zh")  # A5, A16
    assert (settings.proxy, settings.trusted, settings.api_key) == (None, False, "")
    assert (settings.storage_root, settings.log_dir) == (home, home / "logs")


# A11
def test_each_source_beats_the_weaker_ones(home: Path) -> None:
    environment = {"KODE_MODEL": "from-environment"}
    assert load(home).settings.model == "ide-chat"
    (home / "config.yaml").write_text("model: from-config\n", encoding="utf-8")
    assert load(home).settings.model == "from-config"
    assert load(home).sources["model"] == "config.yaml"
    (home / ".env").write_text("KODE_MODEL=from-env-file\n", encoding="utf-8")
    assert load(home).settings.model == "from-env-file"
    assert load(home).sources["model"] == ".env KODE_MODEL"
    loaded = load(home, environment)
    assert loaded.settings.model == "from-environment"
    assert loaded.sources["model"] == "environment KODE_MODEL"
    loaded = with_editor(loaded, {"model": "from-editor"})
    assert loaded.settings.model == "from-editor"
    assert loaded.sources["model"] == "editor"
    at_once = load_settings(
        {"KODE_HOME": str(home), **environment}, editor={"model": "from-editor"}
    )
    assert at_once == loaded


def test_a_weaker_source_still_fills_what_a_stronger_one_leaves_out(home: Path) -> None:
    (home / "config.yaml").write_text("agent: coder\nmode: plan\n", encoding="utf-8")
    (home / ".env").write_text(f"KIMI_API_KEY={KEY}\nKODE_MODE=ask\n", encoding="utf-8")
    settings = load(home, {"KODE_LOCALE": "en_US.UTF-8"}).settings
    assert (settings.agent, settings.mode, settings.locale) == ("coder", "ask", "en")
    assert settings.api_key == KEY


def test_a_named_env_file_stands_in_for_the_one_in_the_state_folder(
    home: Path, tmp_path: Path
) -> None:
    (home / ".env").write_text("KODE_MODEL=a\nKODE_AGENT=coder\n", encoding="utf-8")
    named = tmp_path / "work.env"
    named.write_text("KODE_MODEL=b\n", encoding="utf-8")
    loaded = load_settings({"KODE_HOME": str(home)}, env_file=named)
    assert (loaded.settings.model, loaded.settings.agent) == ("b", "ide-helper")
    assert loaded.sources["model"] == "work.env KODE_MODEL"


def test_what_the_user_names_must_exist(home: Path, tmp_path: Path) -> None:
    missing = str(tmp_path / "missing.yaml")
    assert load(home, {"KODE_CONFIG": missing}).problems == ("missing.yaml: there is no such file",)
    loaded = load_settings({"KODE_HOME": str(home)}, env_file=str(tmp_path / "missing.env"))
    assert loaded.problems == ("missing.env: there is no such file",)


def test_kode_config_names_another_file(home: Path, tmp_path: Path) -> None:
    (home / "config.yaml").write_text("model: a\n", encoding="utf-8")
    other = tmp_path / "other.yaml"
    other.write_bytes(b"\xef\xbb\xbfmodel: b\r\nwindow_messages: 7\r\n")
    loaded = load(home, {"KODE_CONFIG": str(other)})
    assert (loaded.settings.model, loaded.settings.window_messages) == ("b", 7)
    assert loaded.sources["model"] == "other.yaml"


# W12
def test_nothing_is_read_from_the_working_directory(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / ".env").write_text("KIMI_BASE_URL=https://evil.example\n", encoding="utf-8")
    (project / "config.yaml").write_text("base_url: https://evil.example\n", encoding="utf-8")
    monkeypatch.chdir(project)
    assert load(home).settings == load(home, {"KODE_CONFIG": ""}).settings
    assert load(home).sources == {"storage_root": "environment KODE_HOME"}
    # A relative path would mean the project's file, wherever the editor happens to start us.
    loaded = load(home, {"KODE_CONFIG": "config.yaml"})
    assert loaded.settings.base_url == "https://api.moonshot.cn/v1"
    assert "absolute path" in loaded.problems[0]


def test_the_alias_of_the_key_gives_way(home: Path) -> None:
    assert load(home, {"MOONSHOT_API_KEY": KEY}).settings.api_key == KEY
    both = load(home, {"MOONSHOT_API_KEY": "sk-other", "KIMI_API_KEY": KEY})
    assert both.settings.api_key == KEY
    assert both.sources["api_key"] == "environment KIMI_API_KEY"


def test_an_empty_variable_counts_as_unset(home: Path) -> None:
    (home / "config.yaml").write_text("model: a\n", encoding="utf-8")
    assert load(home, {"KODE_MODEL": " ", "KIMI_API_KEY": ""}).settings.model == "a"


def test_no_kode_home_means_the_users_data_folder(tmp_path: Path) -> None:
    script = (
        "import os; from kode_sidecar.core.settings import load_settings;"
        "print(load_settings(os.environ).settings.storage_root)"
    )
    foreign = ("KODE_", "XDG_")
    environ = {k: v for k, v in os.environ.items() if not k.startswith(foreign)}
    environ |= {"HOME": str(tmp_path), "LOCALAPPDATA": str(tmp_path)}
    output = subprocess.run(
        [sys.executable, "-X", "utf8", "-c", script],
        env=environ,
        cwd=Path(__file__).parents[3],
        capture_output=True,
        encoding="utf-8",
        check=True,
    ).stdout
    folder = Path(output.strip())
    assert folder.is_absolute()
    assert folder.name == "kode-sidecar"
    if sys.platform not in ("win32", "darwin"):
        assert folder == tmp_path / ".local/share/kode-sidecar"


def test_log_dir_follows_the_storage_root(home: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    (home / "config.yaml").write_text(f"storage_root: '{other}'\n", encoding="utf-8")
    settings = load_settings({"KODE_CONFIG": str(home / "config.yaml")}).settings
    assert (settings.storage_root, settings.log_dir) == (other, other / "logs")


def test_the_editor_tells_its_language_and_trust(home: Path) -> None:
    loaded = with_editor(load(home), {}, locale="en-US", trusted=True)
    assert (loaded.settings.locale, loaded.settings.trusted) == ("en", True)
    assert with_editor(load(home), {}, locale="zh-CN").settings.locale == "zh"
    assert with_editor(load(home), {}, locale="de").settings.locale == "en"
    assert with_editor(load(home), {"locale": "zh"}, locale="en").settings.locale == "zh"


# A11: never keys; W12: nor anything a project could send by way of the editor
@pytest.mark.parametrize(
    ("name", "variable"),
    [
        ("apiKey", "KIMI_API_KEY"),
        ("api_key", "KIMI_API_KEY"),
        ("baseUrl", "KIMI_BASE_URL"),
        ("baseURL", "KIMI_BASE_URL"),
        ("proxy", "KODE_PROXY"),
        ("storageRoot", "KODE_HOME"),
        ("logDir", "KODE_LOG_DIR"),
        ("logRedactContent", "AGENT_LOG_REDACT_CONTENT"),
    ],
)
def test_an_editor_cannot_set_what_is_the_users(home: Path, name: str, variable: str) -> None:
    with pytest.raises(KodeError) as caught:
        with_editor(load(home), {name: "x"})
    assert caught.value.rpc_code == -33020
    assert variable in caught.value.message


def test_an_editor_of_tomorrow_may_say_more(home: Path) -> None:
    assert with_editor(load(home), {"soundEffects": True}) == load(home)


def test_a_wrong_value_of_the_editor_is_a_problem(home: Path) -> None:
    loaded = with_editor(load(home), {"mode": "yolo"})
    assert loaded.problems == ("editor: `mode`: use one of review, ask, auto, keep, plan",)
    with pytest.raises(KodeError) as caught:
        loaded.require_valid()
    assert caught.value.code == "ConfigInvalid"


@pytest.mark.parametrize(
    ("reported", "expected", "source"),
    [
        ({"LANG": "en_US.UTF-8"}, "en", "system"),
        ({"LANG": "zh_CN.UTF-8"}, "zh", "system"),
        ({"LANG": "zh_CN.UTF-8", "LC_ALL": "de_DE"}, "en", "system"),
        ({"LANG": "C.UTF-8"}, "zh", "default"),
        ({"LANG": "en_US.UTF-8", "KODE_LOCALE": "zh"}, "zh", "environment KODE_LOCALE"),
    ],
)
def test_the_systems_language_is_used_where_none_is_told(
    tmp_path: Path, reported: dict[str, str], expected: str, source: str
) -> None:
    loaded = load_settings({"KODE_HOME": str(tmp_path), **reported})
    assert loaded.settings.locale == expected
    assert loaded.sources.get("locale", "default") == source
