"""Configurations that mean the same have one fingerprint, others have others (B3)."""

import json
import random
from typing import Any, cast

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kode_sidecar.core.text.yaml_text import read_yaml, write_yaml
from kode_sidecar.errors import KodeError
from kode_sidecar.jobs.run.run_config import (
    Overrides,
    RunConfig,
    config_fingerprint,
    parse_run_config,
    recorded_config,
)

NAMES = st.text("abcdefgh", min_size=1, max_size=6)
TEXTS = st.text("abc é语:#'\"-\n", min_size=1, max_size=20)
SETS = st.lists(NAMES, max_size=4)


@st.composite
def configs(draw: st.DrawFn) -> dict[str, Any]:
    """A configuration as plain data, with any of its parts left out."""
    parts: dict[str, Any] = {
        "model": {"name": draw(NAMES), "temperature": draw(st.sampled_from([0.3, 0.7, None]))},
        "skills": {"enabled": draw(SETS), "folders": draw(SETS)},
        "tools": {
            "offer": draw(st.none() | SETS),
            "permissions": [
                {"tool": name, "path": f"{name}/**", "effect": draw(EFFECTS)} for name in draw(SETS)
            ],
            "shell": {"enabled": draw(st.booleans()), "allow": [[n] for n in draw(SETS)]},
            "filesystem": {"delete": draw(st.booleans())},
        },
        "memory": {"write_mode": draw(st.sampled_from(["disabled", "candidate"]))},
        "workspace": {"import": draw(NAMES), "exclude": draw(SETS), "include": draw(SETS)},
        "deliverables": [
            {"path": f"deliverables/{name}.md", "required": draw(st.booleans())}
            for name in sorted(set(draw(SETS)))
        ],
        "runtime": {
            "stream": draw(st.booleans()),
            "max_steps": draw(st.integers(1, 9)),
            "timeout_seconds": draw(st.integers(1, 9)),
        },
    }
    kept = draw(st.sets(st.sampled_from(sorted(parts))))
    profile = {"id": "job", "role": draw(TEXTS), "rules": draw(st.lists(TEXTS, max_size=3))}
    return {
        "kgent": {"schema_version": 1},
        "profile": profile,
        **{name: parts[name] for name in sorted(kept)},
    }


EFFECTS = st.sampled_from(["allow", "deny"])
# Lists whose order says nothing.
UNORDERED = (
    "skills.enabled",
    "tools.offer",
    "tools.permissions",
    "tools.shell.allow",
    "workspace.include",
    "deliverables",
)


def shuffled(value: Any, rng: random.Random, path: str = "") -> Any:
    """The same in another order wherever order says nothing."""
    if isinstance(value, dict):
        items = list(cast(dict[str, Any], value).items())
        rng.shuffle(items)
        return {k: shuffled(v, rng, f"{path}.{k}".lstrip(".")) for k, v in items}
    if isinstance(value, list):
        items = [shuffled(item, rng, f"{path}[]") for item in cast(list[Any], value)]
        if path in UNORDERED:
            rng.shuffle(items)
            if path != "deliverables":
                items += items[:1]
        return items
    return value


def parsed(data: dict[str, Any], overrides: Overrides | None = None) -> RunConfig:
    return parse_run_config(json.dumps(data), "job.yaml", overrides)


@given(configs(), st.randoms(use_true_random=False))
def test_order_repetition_and_spelling_change_nothing(
    data: dict[str, Any], rng: random.Random
) -> None:
    config = parsed(data)
    fingerprint = config_fingerprint(config)
    assert config_fingerprint(parsed(shuffled(data, rng))) == fingerprint
    assert config_fingerprint(parse_run_config(write_yaml(data), "x.yml", None)) == fingerprint
    # Every default spelt out, and what the records keep is a configuration again.
    whole = recorded_config(config)
    assert config_fingerprint(parsed(whole)) == fingerprint
    assert parse_run_config(write_yaml(whole), "config.yaml") == config


@given(configs(), st.integers(1, 1_000), st.booleans())
def test_an_override_is_as_if_the_file_said_so(
    data: dict[str, Any], steps: int, stream: bool
) -> None:
    overrides = Overrides(max_steps=steps, stream=stream, model="other")
    said = {**data, "runtime": {**data.get("runtime", {}), "max_steps": steps, "stream": stream}}
    said["model"] = {**data.get("model", {}), "name": "other"}
    assert config_fingerprint(parsed(data, overrides)) == config_fingerprint(parsed(said))


@given(configs(), configs())
def test_what_differs_in_meaning_differs_in_fingerprint(
    one: dict[str, Any], other: dict[str, Any]
) -> None:
    first, second = parsed(one), parsed(other)
    assert (config_fingerprint(first) == config_fingerprint(second)) == (first == second)


def test_a_field_that_is_set_is_as_if_the_file_said_so() -> None:
    start = {"kgent": {"schema_version": 1}, "profile": {"id": "job", "role": "r"}}
    fields = {"model": "other", "tools.shell.enabled": True, "workspace.git": True}
    said = {**start, "model": {"name": "other"}, "tools": {"shell": {"enabled": True}}}
    said["workspace"] = {"git": True}
    found = parsed(start, Overrides(fields=fields))
    assert config_fingerprint(found) == config_fingerprint(parsed(said))
    for name, text in (("model.nonsense", "model.nonsense"), ("profile.id.x", "no fields")):
        with pytest.raises(KodeError, match=text) as caught:
            parsed(start, Overrides(fields={name: 1}))
        assert caught.value.code == "ConfigInvalid"


def leaves(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    if isinstance(value, dict):
        items = cast(dict[str, Any], value).items()
        return [leaf for key, item in items for leaf in leaves(item, (*path, key))]
    return [path]


CHANGED: dict[tuple[Any, ...], Any] = {
    ("goal",): {"command": ["make", "test"]},
    ("memory", "external"): {"url": "https://memory.example"},
    ("memory", "write_mode"): "disabled",
    ("profile", "language"): "zh",
    ("runtime", "budget"): "5 CNY",
    ("runtime", "engine"): "pydantic-ai",
    ("deliverables",): [{"path": "deliverables/a.md"}],
    ("tools", "offer"): ["read_file"],
    ("tools", "permissions"): [{"tool": "read_file", "effect": "deny"}],
    ("tools", "shell", "allow"): [["git"]],
    ("model", "max_tokens"): 5,
    ("model", "temperature"): None,
    ("model", "top_p"): 0.5,
}


def test_every_single_field_counts() -> None:
    start = {"kgent": {"schema_version": 1}, "profile": {"id": "job", "role": "r"}}
    with_commands = {**start, "tools": {"shell": {"enabled": True}}}  # a goal has one
    whole: dict[str, Any] = msgspec.to_builtins(parsed(with_commands))
    fingerprint = config_fingerprint(parsed(whole))
    unchangeable = {("kgent", "schema_version"), ("runtime", "script")}
    for path in set(leaves(whole)) - unchangeable:
        data = json.loads(json.dumps(whole))
        part = data
        for key in path[:-1]:
            part = part[key]
        part[path[-1]] = CHANGED.get(path, _other(part[path[-1]]))
        assert config_fingerprint(parsed(data)) != fingerprint, path


def _other(value: Any) -> Any:
    match value:
        case bool():
            return not value
        case int() | float():
            return value + 1_000 if value >= 1_000 else value + 1
        case str():
            return f"{value}x"
        case list():
            return ["AB"]
        case _:
            return "ab" if value is None else value


def test_a_password_in_an_address_is_not_recorded() -> None:
    external = {"url": "https://me:secret@memory.example/v1", "token_env": "MEMORY_TOKEN"}
    data = {"kgent": {"schema_version": 1}, "profile": {"id": "job", "role": "r"}}
    config = parsed({**data, "memory": {"write_mode": "external", "external": external}})
    text = write_yaml(recorded_config(config))
    assert "secret" not in text
    assert read_yaml(text).value["memory"]["external"]["url"] == "https://***@memory.example/v1"  # type: ignore[index]
