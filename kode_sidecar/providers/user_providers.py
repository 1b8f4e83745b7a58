"""Providers and models of the user's `config.yaml`, laid over the built-in ones. Sans-IO.

    providers:
      acme:
        base_url: https://llm.acme.example/v1
        api_key_env: ACME_API_KEY
        models:
          - id: acme-large
            context_window: 200000
            price: {input: 1, cached: 0.1, output: 4, currency: CNY}
    logical_models:
      ide-chat: [acme/acme-large, kimi/kimi-k2.6]

The fields are those of `ProviderProfile` and `ModelProfile`. An entry with the name of a built-in
provider changes only what it names, its models by id.
"""

from collections.abc import Mapping
from typing import Any, cast

import msgspec

from kode_sidecar.errors import KodeError
from kode_sidecar.providers.profiles import ProviderProfile
from kode_sidecar.providers.provider_config import host_of


def read_providers(
    raw: Mapping[str, Any], builtin: Mapping[str, ProviderProfile]
) -> dict[str, ProviderProfile]:
    """All providers by name, the built-in ones first.

    Raises KodeError `ConfigInvalid` naming the path of the field that is wrong.
    """
    found = dict(builtin)
    for name, entry in raw.items():
        found[name] = _read(name, entry, builtin.get(name))
    return found


def read_logical_models(
    raw: Mapping[str, Any], builtin: Mapping[str, tuple[str, ...]]
) -> dict[str, tuple[str, ...]]:
    """All logical names, each with the models to try. Raises KodeError `ConfigInvalid`."""
    try:
        own = msgspec.convert(raw, dict[str, tuple[str, ...]])
    except msgspec.ValidationError as error:
        raise _invalid("logical_models", error) from None
    if empty := [name for name, models in own.items() if not models]:
        text = f"`logical_models.{empty[0]}`: name at least one model"
        raise KodeError("ConfigInvalid", text)
    return {**builtin, **own}


def _read(name: str, entry: object, base: ProviderProfile | None) -> ProviderProfile:
    path = f"providers.{name}"
    if not isinstance(entry, dict):
        text = f"`{path}`: expected fields such as base_url"
        raise KodeError("ConfigInvalid", text)
    fields = cast(dict[str, Any], entry)
    for secret in ("api_key", "key", "token"):
        if secret in fields:
            text = (
                f"`{path}.{secret}`: keys are not kept in this file: name a variable, api_key_env"
            )
            raise KodeError("ConfigInvalid", text)
    if base is None and "base_url" not in fields:
        raise KodeError("ConfigInvalid", f"`{path}.base_url` is missing")
    try:
        profile = msgspec.convert(_merged(name, fields, base), ProviderProfile)
    except msgspec.ValidationError as error:
        raise _invalid(path, error) from None
    host_of(profile.base_url, f"`{path}.base_url`")
    return profile


def _merged(name: str, fields: Mapping[str, Any], base: ProviderProfile | None) -> dict[str, Any]:
    """The entry laid over `base`, with what its models share filled in."""
    start: dict[str, Any] = {} if base is None else msgspec.to_builtins(base)
    merged = {**start, **fields, "name": name}
    merged.setdefault("dialect", "openai_chat")
    if isinstance(variable := merged.get("api_key_env"), str):
        merged["api_key_env"] = [variable] if variable else []
    models = fields.get("models", ())
    if isinstance(models, list):
        shared = {key: merged[key] for key in ("dialect", "names") if key in merged}
        known: dict[str, dict[str, Any]] = {m["id"]: m for m in start.get("models", ())}
        own = [_model(one, known, shared) for one in cast(list[Any], models)]
        changed = [one.get("id") for one in own]
        merged["models"] = [*own, *(known[key] for key in known if key not in changed)]
    return merged


def _model(
    entry: Any, known: Mapping[str, dict[str, Any]], shared: Mapping[str, Any]
) -> dict[str, Any]:
    """An entry over the built-in model of its id; a mere text is an id."""
    fields = cast(dict[str, Any], entry) if isinstance(entry, dict) else {"id": entry}
    model_id = fields.get("id")
    base = known.get(model_id) if isinstance(model_id, str) else None
    return {**(base or shared), **fields}


def _invalid(path: str, error: msgspec.ValidationError) -> KodeError:
    """msgspec ends its message with the place: "... - at `$.models[0].price`"."""
    problem, _, place = str(error).partition(" - at ")
    where = path + place.strip("`").removeprefix("$")
    return KodeError("ConfigInvalid", f"`{where}`: {problem[:1].lower()}{problem[1:]}")
