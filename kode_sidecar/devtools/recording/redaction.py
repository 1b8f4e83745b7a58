"""What a recording holds of a machine, without its keys.

A key is replaced by a star for each of its characters, so that positions in texts stay true.
"""

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any, cast

import msgspec

from kode_sidecar.core.settings import LoadedSettings, Settings
from kode_sidecar.core.text.secret_text import with_stars
from kode_sidecar.devtools.recording.transcript import Head
from kode_sidecar.errors import KodeError
from kode_sidecar.servers.boot.provider_setup import set_up_providers

# Bearer tokens, keys of the usual shape, and JSON members of such a name.
_TOKEN = re.compile(r"(?i)(?<=bearer )[\w.~+/=-]{8,}|\bsk-[\w-]{8,}")
_MEMBER = re.compile(
    r'(?i)("[\w-]*(?:authorization|api[_-]?key|cookie|password|secret)"\s*:\s*")((?:[^"\\]|\\.)*)(?=")'
)
# A shorter piece of a key tells nothing, and may be an ordinary word.
_SHORTEST_PIECE = 10
# Stands where a key was; it opens nothing.
_NO_KEY = "recorded-without-its-key"
_DEFAULT_KEY = "KIMI_API_KEY"
_NOT_RECORDED = ("api_key", "proxy", "storage_root", "log_dir")


class SecretMask:
    """Takes the keys out of lines before they are written; `secrets` are the keys in use."""

    def __init__(self, secrets: Sequence[str]) -> None:
        self._forms = {form for secret in secrets for form in (secret, json.dumps(secret)[1:-1])}
        self._known = [secret.encode() for secret in secrets if len(secret) > _SHORTEST_PIECE]

    def line(self, line: bytes) -> bytes:
        """Return a line of JSON without keys."""
        text = _without_keys(line.decode("utf-8", "surrogatepass"), self._forms)
        text = _TOKEN.sub(_stars, with_stars(text))
        text = _MEMBER.sub(lambda found: found[1] + "*" * len(found[2]), text)
        return text.encode("utf-8", "surrogatepass")

    def split(self, data: bytes) -> int:
        """Return where the first half of a key may begin at the end of `data`, else its length.

        The other half may be in the bytes that follow. Events of a stream end with a line feed, so
        this is nearly always the length.
        """
        if any(data.endswith(key) for key in self._known):
            return len(data)
        for key in self._known:
            for length in range(min(len(key) - 1, len(data)), 0, -1):
                if data.endswith(key[:length]):
                    return len(data) - length
        return len(data)


def masked_bytes(data: bytes, secrets: Sequence[str]) -> bytes:
    """Return a file's bytes, of any encoding, without the keys and what looks like one."""
    text = _without_keys(data.decode("latin-1"), secrets)
    return _TOKEN.sub(_stars, with_stars(text)).encode("latin-1")


def _without_keys(text: str, keys: Iterable[str]) -> str:
    """Mask the known keys, and the piece of one that is left where a text was cut off."""
    for key in keys:
        if len(key) <= _SHORTEST_PIECE:
            text = text.replace(key, "*" * len(key)) if key else text
            continue
        for end in range(len(key), _SHORTEST_PIECE - 1, -1):
            if key[:_SHORTEST_PIECE] not in text:
                break
            text = text.replace(key[:end], "*" * end)
        for start in range(1, len(key) - _SHORTEST_PIECE + 1):
            if key[-_SHORTEST_PIECE:] not in text:
                break
            text = text.replace(key[start:], "*" * (len(key) - start))
    return text


def _stars(found: "re.Match[str]") -> str:
    return "*" * len(found[0])


def keys_in(loaded: LoadedSettings) -> dict[str, str]:
    """Return every key in use, by the variable that holds it."""
    providers = set_up_providers(loaded).registry.providers.values()
    names = {name for config in providers for name in config.profile.api_key_env}
    keys = {name: key for name in sorted(names) if (key := loaded.variables.get(name, "").strip())}
    if loaded.settings.api_key:
        keys.setdefault(_DEFAULT_KEY, loaded.settings.api_key)
    return keys


def settings_to_record(loaded: LoadedSettings) -> dict[str, Any]:
    """Return the settings as plain data, without keys and without folders of this machine."""
    data: dict[str, Any] = msgspec.to_builtins(loaded.settings, enc_hook=str)
    return {
        name: _without_headers(value) for name, value in data.items() if name not in _NOT_RECORDED
    }


def _without_headers(value: Any) -> Any:
    """Empty the headers of providers: they may hold a password under any name."""
    if not isinstance(value, dict):
        return value
    kept: dict[str, Any] = {}
    for name, one in cast(dict[str, Any], value).items():
        kept[name] = {} if name == "headers" else _without_headers(one)
    return kept


def recorded_settings(head: Head, here: LoadedSettings) -> LoadedSettings:
    """Return the settings of a recording, with the folders of this process.

    Raises KodeError `Storage` when this program does not accept them.
    """
    own = {"storage_root": here.settings.storage_root, "log_dir": here.settings.log_dir}
    key = {"api_key": _NO_KEY} if head.keyed else {}
    try:
        settings = msgspec.convert({**head.settings, **own, **key}, Settings)
    except msgspec.ValidationError as error:
        text = f"The recorded settings are none of this program: {error}"
        raise KodeError("Storage", text) from None
    return LoadedSettings(
        settings=settings,
        sources=dict.fromkeys({*head.settings, *key} - set(head.defaults), "recording"),
        problems=head.problems,
        variables=dict.fromkeys(head.keyed, _NO_KEY),
    )
