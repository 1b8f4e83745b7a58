"""Reads the user's settings of providers. Light to import, and without HTTP.

Providers and models of `config.yaml` override the built-in ones:

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

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from ipaddress import ip_address
from typing import Any, cast
from urllib.parse import urlsplit

import msgspec

from kode_sidecar.core.domain.error_info import ErrorInfo, error_info, failure
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.http.request import HttpTimeouts
from kode_sidecar.infrastructure.providers.known_providers import KIMI, KNOWN_HOSTS
from kode_sidecar.infrastructure.providers.profiles import Efforts, ProviderProfile
from kode_sidecar.infrastructure.providers.provider_errors import ProviderErrors

# The fields of a request that only we write.
_OURS = frozenset({"model", "messages", "system", "tools", "stream", "input", "instructions"})
_LOOPBACK = re.compile(r"localhost|127(\.\d{1,3}){3}|::1")


@dataclass(frozen=True)
class ProviderConfig:
    """One provider as the user set it up: `base_url` may differ from its profile's."""

    base_url: str
    api_key: str = field(repr=False)
    proxy: str | None = field(default=None, repr=False)
    timeouts: HttpTimeouts = field(default_factory=HttpTimeouts)
    profile: ProviderProfile = KIMI

    @property
    def name(self) -> str:
        """The provider's name, as in `name/model`."""
        return self.profile.name

    @property
    def url_name(self) -> str:
        """The name of the setting for the provider's address."""
        return self.profile.base_url_env or f"providers.{self.name}.base_url"

    @property
    def moved(self) -> bool:
        """True if the user set another address than the provider's own."""
        return self.base_url != self.profile.base_url

    def host(self) -> str:
        """Return the host of `base_url`. Raises KodeError `ConfigInvalid`."""
        return host_of(self.base_url, self.url_name, plain_http=self.profile.plain_http)

    def errors(self) -> ProviderErrors:
        """Return the reader of this provider's errors. Raises KodeError `ConfigInvalid`."""
        host = self.host()
        own = None if self.moved else self.profile
        known = KNOWN_HOSTS.get(host, own)
        return ProviderErrors(
            host,
            self.api_key,
            key_name=(self.profile.api_key_env or (f"providers.{self.name}.api_key_env",))[0],
            url_name=self.url_name,
            console=known.console if known else "",
            sibling=known.sibling if known else "",
        )

    def headers(self, dialect: dict[str, str]) -> dict[str, str]:
        """Return the headers of the dialect with this provider's own, and its form of the key."""
        headers = {**dialect, **{k.lower(): v for k, v in self.profile.headers.items()}}
        auth = self.profile.auth
        if auth is None and self.api_key:
            return headers
        for name in ("authorization", "x-api-key"):
            headers.pop(name, None)
        if auth is not None and self.api_key:
            headers[auth.header.lower()] = auth.prefix + self.api_key
        return headers

    def missing(self) -> ErrorInfo | None:
        """Return the error that prevents every request (no key, or a bad address), or None."""
        try:
            self.host()
        except KodeError as error:
            return error_info(error)
        names = self.profile.api_key_env
        if self.api_key or not names:
            return None
        errors = self.errors()
        source = f" Keys are made at {errors.console}." if errors.console else ""
        others = f" (or {', '.join(names[1:])})" if names[1:] else ""
        return failure(
            "AuthRequired",
            f"There is no API key for {errors.host}: run `kode-sidecar setup` in a terminal, or "
            f"set {names[0]}{others} in the environment or in the .env file of the state folder, "
            f"and restart.{source}",
        )


@lru_cache(64)
def host_of(base_url: str, setting: str = "KIMI_BASE_URL", *, plain_http: bool = False) -> str:
    """Return the host of a base URL, with its port if the URL names one.

    Raises KodeError `ConfigInvalid` for anything but https, http to this machine, or http to a
    private address that the user allowed by `plain_http`.
    """
    try:
        url = urlsplit(base_url)
        host, port = url.hostname, url.port
    except ValueError:
        url, host, port = urlsplit(""), None, None
    if not host or url.scheme not in ("http", "https") or url.username is not None:
        text = f"{setting} is no web address: set it to one such as https://api.moonshot.cn/v1"
        raise KodeError("ConfigInvalid", text)
    if url.scheme == "http" and not _LOOPBACK.fullmatch(host):
        if plain_http and is_private(host):
            return host if port is None else f"{host}:{port}"
        text = f"Plain http goes to this machine only: use https for {host} in {setting}."
        if is_private(host):
            text += " For a host of your own network say `plain_http: true` beside its base_url."
        raise KodeError("ConfigInvalid", text)
    return host if port is None else f"{host}:{port}"


def is_private(host: str) -> bool:
    """Return whether an address, or all addresses of a name, cannot be on the public internet."""
    try:
        address = ip_address(host)
    except ValueError:
        return "." not in host or host.endswith((".local", ".lan", ".internal", ".home.arpa"))
    return address.is_private and not address.is_unspecified


def read_providers(
    raw: Mapping[str, Any], builtin: Mapping[str, ProviderProfile]
) -> dict[str, ProviderProfile]:
    """Return all providers by name, the built-in ones first.

    Raises KodeError `ConfigInvalid` naming the path of the field that is wrong.
    """
    found = dict(builtin)
    for name, entry in raw.items():
        found[name] = _read(name, entry, builtin.get(name))
    return found


def read_logical_models(
    raw: Mapping[str, Any], builtin: Mapping[str, tuple[str, ...]]
) -> dict[str, tuple[str, ...]]:
    """Return all logical names, each with the models to try. Raises KodeError `ConfigInvalid`."""
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
    entry = {} if entry is None and base is not None else entry  # a built-in one needs only a name
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
    host_of(profile.base_url, f"`{path}.base_url`", plain_http=profile.plain_http)
    bodies = [("body", profile.body), *_named_bodies("", profile.efforts)]
    for model in profile.models:
        bodies += [(f"body` of `{model.id}", model.body), *_named_bodies(model.id, model.efforts)]
    for where, body in bodies:
        if ours := sorted(_OURS & body.keys()):
            text = f"`{path}.{where}`: {ours[0]} is not yours to set: leave it out"
            raise KodeError("ConfigInvalid", text)
    return profile


def _named_bodies(model_id: str, efforts: Efforts) -> list[tuple[str, Mapping[str, Any]]]:
    of_model = f"` of `{model_id}" if model_id else ""
    return [(f"efforts.{effort}{of_model}", body) for effort, body in efforts.items()]


def _merged(name: str, fields: Mapping[str, Any], base: ProviderProfile | None) -> dict[str, Any]:
    """Return the entry merged over `base`, with the fields that its models share filled in."""
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
    """Return an entry merged over the built-in model of its id; a plain text is an id."""
    fields = cast(dict[str, Any], entry) if isinstance(entry, dict) else {"id": entry}
    model_id = fields.get("id")
    base = known.get(model_id) if isinstance(model_id, str) else None
    return {**(base or shared), **fields}


def _invalid(path: str, error: msgspec.ValidationError) -> KodeError:
    """Name the path of msgspec's error, which ends with "... - at `$.models[0].price`"."""
    problem, _, place = str(error).partition(" - at ")
    where = path + place.strip("`").removeprefix("$")
    return KodeError("ConfigInvalid", f"`{where}`: {problem[:1].lower()}{problem[1:]}")
