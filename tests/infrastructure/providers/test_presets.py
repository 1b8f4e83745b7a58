"""Providers by one word, and plain http by an explicit one."""

from pathlib import Path

import pytest

from kode_sidecar.core.domain.message import Cost, Usage
from kode_sidecar.core.settings import LoadedSettings, load_settings
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.providers.known_providers import BUILTIN_PROVIDERS, PRESETS
from kode_sidecar.infrastructure.providers.model_names import newest_fitting
from kode_sidecar.infrastructure.providers.model_table import CHECKED, MODELS
from kode_sidecar.infrastructure.providers.profiles import TokenPrice, usage_event
from kode_sidecar.servers.boot.provider_setup import set_up_providers, usable_model
from tests.infrastructure.providers.streams import presets


def loaded(home: Path, config: str = "", **environ: str) -> LoadedSettings:
    home.mkdir(exist_ok=True)
    (home / "config.yaml").write_text(config, encoding="utf-8")
    return load_settings({"KODE_HOME": str(home), **environ})


@pytest.mark.parametrize("word", PRESETS)
def test_one_word_is_enough(word: str, tmp_path: Path) -> None:
    keys = dict.fromkeys(PRESETS[word].api_key_env[:1], "sk-test")
    configs = [(f"providers:\n  {word}:\n", f"{word}/some-model"), ("", f"{word}/some-model")]
    if PRESETS[word].models:  # the others serve whatever the user has loaded
        configs.append(("", word))
    for config, model in configs:
        setup = set_up_providers(loaded(tmp_path / "home", config, KODE_MODEL=model, **keys))
        assert setup.problems == []
        assert setup.missing(model) is None
        assert setup.registry.targets(model)[0].config.name == word


def test_each_word_has_an_answer_of_its_host() -> None:
    """What these mean, wherever they are cut: `test_streams`."""
    assert presets.STREAMS.keys() == PRESETS.keys()


def test_nobody_who_did_not_ask_for_one_has_it(tmp_path: Path) -> None:
    registry = set_up_providers(loaded(tmp_path / "home")).registry
    assert not registry.providers.keys() & PRESETS.keys()


def test_whatever_is_ready_answers_where_the_default_has_no_key(tmp_path: Path) -> None:
    home = tmp_path / "home"
    assert usable_model(loaded(home, DEEPSEEK_API_KEY="sk-1"), None) == "deepseek/deepseek-v4-pro"
    assert usable_model(loaded(home, KIMI_API_KEY="sk-1", DEEPSEEK_API_KEY="sk-1"), None) is None
    assert usable_model(loaded(home), None) is None
    with pytest.raises(KodeError, match="There is no provider nope"):
        usable_model(loaded(home), "nope/x")


@pytest.mark.parametrize(
    ("host", "allowed"),
    [
        *(("192.168.1.7", True), ("10.0.0.2:8000", True), ("[fd00::1]", True), ("box.lan", True)),
        *(("gpu", True), ("8.8.8.8", False), ("example.com", False), ("0.0.0.0", False)),
    ],
)
def test_plain_http_needs_a_word_and_a_private_address(
    host: str, allowed: bool, tmp_path: Path
) -> None:
    config = f"providers:\n  box:\n    base_url: http://{host}/v1\n"
    silent = set_up_providers(loaded(tmp_path / "home", config))
    assert len(silent.problems) == 1
    assert ("plain_http: true" in silent.problems[0]) == allowed
    reported = set_up_providers(loaded(tmp_path / "home", config + "    plain_http: true\n"))
    assert (reported.problems == []) == allowed


@pytest.mark.parametrize(
    ("offered", "like", "best"),
    [
        (["kimi-k4", "kimi-k3.5", "moonshot-v2"], ["kimi-k2.6"], "kimi-k4"),
        (["kimi-k5-flash", "kimi-k4"], ["kimi-k3"], "kimi-k4"),
        (["text-embedding-9", "whisper-2", "gpt-7"], ["gpt-6"], "gpt-7"),
        (["deepseek-v5-pro", "deepseek-v4-pro"], ["deepseek-chat"], "deepseek-v5-pro"),
        (["text-embedding-9"], ["gpt-6"], ""),
        ([], ["gpt-6"], ""),
    ],
)
def test_the_newest_fitting_model_stands_in(offered: list[str], like: list[str], best: str) -> None:
    assert newest_fitting(offered, like) == best


def test_no_known_model_is_past_its_day_and_each_has_a_source() -> None:
    for rows in MODELS.values():
        for row in rows:
            assert row.source
            assert not row.retires or row.retires > CHECKED


def test_every_model_of_a_provider_is_a_row_of_the_table() -> None:
    for profile in (*BUILTIN_PROVIDERS.values(), *PRESETS.values()):
        rows = MODELS.get(profile.name.removesuffix("-intl"), ())
        assert [model.id for model in profile.models] == [row.profile.id for row in rows]


def test_reasoning_that_only_the_total_has_is_billed() -> None:
    """Gemini's and xAI's dialects count it beside the answer's tokens."""
    price = TokenPrice(1.0, 0.1, 10.0)
    apart = Usage(input_tokens=100, output_tokens=20, total_tokens=420)
    inside = Usage(input_tokens=100, output_tokens=320, total_tokens=420, reasoning_tokens=300)
    assert usage_event(apart, price).cost == usage_event(inside, price).cost
    assert usage_event(Usage(input_tokens=100, output_tokens=20), price).cost == Cost(0.0003, "USD")
