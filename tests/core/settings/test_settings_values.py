"""What a sound value is, and what is said about one that is not."""

from pathlib import Path
from typing import get_args

import pytest

from kode_sidecar.core.protocol import session as wire
from kode_sidecar.core.protocol.handshake import EDITOR_SETTINGS
from kode_sidecar.core.settings import LoadedSettings, describe, load_settings, values
from kode_sidecar.core.settings.values import EDITOR_NAMES, ENV_NAMES, NAMES

KEY = "sk-" + "a1" * 20


def load(home: Path, **environ: str) -> LoadedSettings:
    return load_settings({"KODE_HOME": str(home), **environ})


def test_the_handshake_and_the_settings_agree_on_an_editors_names() -> None:
    assert set(EDITOR_SETTINGS) == set(EDITOR_NAMES)


def test_the_wire_and_the_settings_agree_on_modes() -> None:
    assert get_args(wire.Mode) == get_args(values.Mode)


def test_every_variable_belongs_to_one_setting() -> None:
    variables = [variable for names in ENV_NAMES.values() for variable in names]
    assert len(variables) == len(set(variables))
    assert set(ENV_NAMES) == set(NAMES)


@pytest.mark.parametrize(
    "url",
    [
        "https://api.moonshot.ai/v1",
        "https://gateway.example:8443/kimi",
        "http://localhost:8080/v1",
        "http://127.0.0.1:1/v1",
        "http://127.8.9.10/v1",
        "http://[::1]:8080",
    ],
)
def test_urls_that_serve(tmp_path: Path, url: str) -> None:
    loaded = load(tmp_path, KIMI_BASE_URL=url + "/")
    assert (loaded.settings.base_url, loaded.problems) == (url, ())


# W9: plain http only to loopback; W14: no secret in an error
@pytest.mark.parametrize(
    "url",
    [
        "http://api.moonshot.cn/v1",
        "http://127.0.0.1.evil.example/v1",
        "http://localhost.evil.example",
        "http://localhost@evil.example",
        "http://evil.example#@localhost",
        "http://0.0.0.0/v1",
        "http://2130706433/",
        "http://[::ffff:1.2.3.4]/",
        "https://user:hunter2@api.moonshot.cn/v1",
        "https://api.moonshot.cn/v1?key=hunter2",
        "ftp://api.moonshot.cn",
        "api.moonshot.cn/v1",
        "https://",
        "https://host:port/",
        "https://host:99999/",
        "https://ho st/",
        "https://host/\x1b[0m",
        "[",
    ],
)
def test_urls_that_do_not(tmp_path: Path, url: str) -> None:
    loaded = load(tmp_path, KIMI_BASE_URL=url)
    (problem,) = loaded.problems
    assert problem.startswith("environment KIMI_BASE_URL: `base_url`: ")
    assert "hunter2" not in problem
    assert loaded.settings.base_url == "https://api.moonshot.cn/v1"


@pytest.mark.parametrize(
    ("variable", "text", "expected"),
    [
        ("KODE_WINDOW_MESSAGES", "many", "expected `int`, got `str`"),
        ("KODE_WINDOW_MESSAGES", "0", "expected `int` >= 1"),
        ("KODE_TEMPERATURE", "nan", "expected `float` >= 0.0"),
        ("KODE_HTTP_TIMEOUT_IDLE", "-1", "expected `float` > 0.0"),
        ("KODE_MODE", "yolo", "use one of review, ask, auto, keep, plan"),
        ("KODE_LOCALE", "de", "use one of zh, en"),
        ("KODE_FILE_ENCODING", "klingon", "is no known encoding: use a name such as gbk"),
        ("KODE_FILE_ENCODING", "base64", "is no known encoding: use a name such as gbk"),
        ("KODE_PROXY", "socks5://proxy", "expected a URL such as http://proxy.example:3128"),
        ("AGENT_LOG_REDACT_CONTENT", "perhaps", "expected `bool`, got `str`"),
        ("KODE_LOG_DIR", "logs", "expected an absolute path"),
        ("KODE_HOME", "state", "expected an absolute path"),
        ("KIMI_API_KEY", "sk-你好", "copy it again"),
        ("KIMI_API_KEY", "sk-1\nsk-2", "copy it again"),
    ],
)
def test_a_wrong_value_is_left_out_and_named(
    tmp_path: Path, variable: str, text: str, expected: str
) -> None:
    loaded = load(tmp_path, **{variable: text})
    (problem,) = loaded.problems
    assert problem.startswith(f"environment {variable}: ")
    assert expected in problem


def test_text_becomes_numbers_and_switches(tmp_path: Path) -> None:
    settings = load(
        tmp_path,
        KODE_WINDOW_MESSAGES="40",
        KODE_MAX_TOKENS="2000",
        KODE_TEMPERATURE="1",
        AGENT_LOG_REDACT_CONTENT="TRUE",
        KODE_HTTP_TIMEOUT_FIRST_BYTE="2.5",
        KODE_FILE_ENCODING="GBK",
        KODE_PROXY="http://user:hunter2@proxy.example:3128",
    ).settings
    assert (settings.window_messages, settings.max_tokens, settings.temperature) == (40, 2000, 1)
    assert (settings.log_redact_content, settings.http_timeout_first_byte) == (True, 2.5)
    assert (settings.file_encoding, settings.proxy) == (
        "GBK",
        "http://user:hunter2@proxy.example:3128",
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("colour: red", "config.yaml: `colour` is no setting; use one of api_key, base_url,"),
        ("trusted: true", "config.yaml: `trusted` is no setting"),
        ("temperature: hot", "config.yaml: `temperature`: expected `float`, got `str`"),
        ("window_messages: '20'", "config.yaml: `window_messages`: expected `int`, got `str`"),
        ("model: [a]", "config.yaml: `model`: expected `str`, got `array`"),
        ("model: ''", "config.yaml: `model`: expected `str` of length >= 1"),
        ("log_redact_content: 1", "config.yaml: `log_redact_content`: expected `bool`"),
        ("- model", "config.yaml: expected lines such as `mode: review`"),
        ("model: {", "config.yaml, line 2, column 1: not valid YAML"),
        ("model: !!python/object:os.system x", "config.yaml, line 1, column 8: not valid YAML"),
        ("model: \x07", "config.yaml, line 1: not valid YAML"),
        ("mode: ask\nmode: plan", "config.yaml, line 2, column 1: not valid YAML: the key `mode`"),
        ("1: a", "config.yaml: `1` is no setting"),
    ],
)
def test_the_config_file_is_strict(tmp_path: Path, text: str, expected: str) -> None:
    (tmp_path / "config.yaml").write_text(f"{text}\n", encoding="utf-8")
    (problem,) = load(tmp_path).problems
    assert problem.startswith(expected)


@pytest.mark.parametrize("name", ["config.yaml", ".env"])
def test_a_file_that_is_no_text_is_a_problem(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes("mode: 审查".encode("gbk"))
    assert load(tmp_path).problems == (f"{name} is not UTF-8: save it as UTF-8",)
    (tmp_path / name).write_bytes(b"#" * 1_000_001)
    assert load(tmp_path).problems == (f"{name} is larger than 1000000 bytes",)
    (tmp_path / name).unlink()
    (tmp_path / name).mkdir()
    (problem,) = load(tmp_path).problems
    assert problem.startswith(f"{name} cannot be read: ")
    assert str(tmp_path) not in problem


def test_an_empty_config_file_is_no_settings(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("# nothing yet\n", encoding="utf-8")
    loaded = load(tmp_path)
    assert (loaded.problems, list(loaded.sources)) == ((), ["storage_root"])


# A11: doctor shows each value and where it came from, keys masked; W14
def test_describe_shows_everything_but_secrets(tmp_path: Path) -> None:
    proxy = "http://user:hunter2@proxy.example:3128"
    loaded = load(tmp_path, KIMI_API_KEY=KEY, KODE_PROXY=proxy)
    rows = {name: (value, source) for name, value, source in describe(loaded)}
    assert set(rows) == {*NAMES, "trusted"}
    assert rows["api_key"] == ("set, ends in a1a1", "environment KIMI_API_KEY")
    assert rows["proxy"] == ("http://***@proxy.example:3128", "environment KODE_PROXY")
    assert rows["storage_root"] == (str(tmp_path), "environment KODE_HOME")
    assert rows["mode"] == ("review", "default")
    everything = repr(describe(loaded)) + repr(loaded) + str(loaded.settings)
    assert KEY not in everything
    assert "hunter2" not in everything


def test_a_short_key_is_not_shown_in_part(tmp_path: Path) -> None:
    rows = {name: value for name, value, _ in describe(load(tmp_path, KIMI_API_KEY="sk-short"))}
    assert rows["api_key"] == "set"
    rows = {name: value for name, value, _ in describe(load(tmp_path))}
    assert rows["api_key"] == "not set"
