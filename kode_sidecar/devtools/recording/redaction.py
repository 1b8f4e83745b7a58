"""What a recording holds of a machine: no key, no credential, no text that a model may not read.

A star stands for each of their characters, so that positions in texts stay true.
"""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, cast
from urllib.parse import unquote

import msgspec

from kode_sidecar.core.settings import LoadedSettings, Settings
from kode_sidecar.core.text.secret_text import SecretMask, find_secret
from kode_sidecar.devtools.recording.lanes import as_object, read_frame
from kode_sidecar.devtools.recording.recorded_lines import RecordingHead
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.commands.programs import is_secret_name
from kode_sidecar.infrastructure.workspace.credentials import is_secret_path
from kode_sidecar.servers.boot.provider_setup import set_up_providers

# Stands where a key was; it opens nothing.
NO_KEY = "recorded-without-its-key"
_NAME = re.compile(r"\w+")
_DEFAULT_KEY = "KIMI_API_KEY"
_NOT_RECORDED = ("api_key", "memory_key", "proxy", "storage_root", "log_dir")
# Names folders of this machine; what is in them is in no recording.
_NOT_PLAYED = ("skill_folders", "trusted_folders")
# A shorter value of a variable is an ordinary word, and in every line.
_SHORTEST_VALUE = 8


_TEXTS = {"text", "newText", "content", "value", "selectedText"}
# A member that brings a text piece by piece, behind any escapes, and what says of which text.
_PIECE = re.compile(
    r'(\\*)"(?:(?P<of>blockId|uri|agent)|text|content|reasoning_content|thinking|arguments'
    r'|partial_json|delta|add)\1"\s?:\s?\1"(?P<value>.*?)(?<!\\)\1"'
)
_EVENTS = re.compile(r"(?:data|event|id|retry)?:")
_BEGUN = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?!.*-----END [A-Z0-9 ]{0,40}-----)")
# What is looked at again with the next piece: the last word, and some before it.
_LAST_WORD, _LONGEST_WORD, _LONGEST_KEY = 200, 5_000, 40_000
_MOST_TEXTS, _DONE = 64, -1


class HiddenTexts:
    """Takes the text of open files that a model may not read out of the client's messages."""

    def __init__(self) -> None:
        self._uris: set[str] = set()

    def without(self, body: bytes) -> bytes:
        """Return a message with a star for each character of such a text."""
        if b'"uri"' not in body:
            return body
        frame = read_frame(body)
        document = as_object(as_object(frame.get("params")).get("textDocument"))
        uri = str(document.get("uri"))
        if find_secret(str(document.get("text", ""))) is not None:
            self._uris.add(uri)
        hidden = self._hide(frame, False)
        if frame.get("method") == "textDocument/didClose":
            self._uris.discard(uri)
        return body if hidden == frame else msgspec.json.encode(hidden)

    def _hide(self, value: Any, hidden: bool) -> Any:
        if isinstance(value, list):
            return [self._hide(one, hidden) for one in cast(list[Any], value)]
        if not isinstance(value, dict):
            return value
        members = cast(dict[str, Any], value)
        uri = members.get("uri", as_object(members.get("textDocument")).get("uri"))
        if isinstance(uri, str):
            hidden = uri in self._uris or is_secret_path(unquote(uri).split("/"))
        return {
            name: _starred(one)
            if hidden and name in _TEXTS and isinstance(one, str)
            else self._hide(one, hidden)
            for name, one in members.items()
        }


def _starred(text: str) -> str:
    """Return as many columns in as many lines."""
    return re.sub(r"[^\r\n]", lambda found: "*" if found[0] < "\U00010000" else "**", text)


class PieceMask:
    """Finds credentials that come in pieces: deltas, and what a user types.

    A piece is written as it comes, for a recording loses nothing when its process is killed; it is
    written over with stars as soon as the pieces behind it make a credential of it.
    """

    def __init__(self, mask: SecretMask) -> None:
        self._mask = mask
        self._tails: dict[str, tuple[str, list[int]]] = {}

    def stars(self, line: str, start: int) -> list[int]:
        """Return where stars belong: offsets in the file, where `line` begins at `start`.

        It has a byte a character, and is not masked by itself: half a key may begin in it.
        """
        found, of, lane = list[int](), "", line.partition(",")[0]
        for names, value, at in _pieces(line, start):
            if names:
                of = value
                continue
            known, places = self._tails.pop(lane + of, ("", list[int]()))
            text = known
            if known:
                head = value[:_LONGEST_KEY]
                places += range(at, at + len(head))
                text = known + head
                masked = self._mask.stars(text, json_line=True)
                for n, char in enumerate(masked):
                    if char == "*" and places[n] >= 0:
                        found.append(places[n])
                        places[n] = _DONE
            if not known or len(value) > _LONGEST_KEY:
                text = value[-_LONGEST_KEY:]
                places = [*range(at + len(value) - len(text), at + len(value))]
            keep = _looked_at_again(text)
            self._tails[lane + of] = text[keep:], places[keep:]
            if len(self._tails) > _MOST_TEXTS:
                del self._tails[next(iter(self._tails))]
        return found


def _pieces(text: str, start: int) -> Iterator[tuple[bool, str, int]]:
    """Yield whether it names a text, each piece, and its place; those of a stream's events."""
    for match in _PIECE.finditer(text):
        value, at = match["value"], start + match.start("value")
        if _EVENTS.match(value):
            yield from _pieces(value, at)
        else:
            yield bool(match["of"]), value, at


def _looked_at_again(text: str) -> int:
    """Return where what the next piece may go on with begins."""
    begun = _BEGUN.search(text, max(0, len(text) - _LONGEST_KEY))
    if begun:
        return begun.start()
    word = text.rfind(" ", max(0, len(text) - _LONGEST_WORD), max(0, len(text) - _LAST_WORD))
    return max(word, 0 if len(text) <= _LONGEST_WORD else len(text) - _LONGEST_WORD)


def unfinished(data: bytes) -> int:
    """Return where the last line of `data` begins that has no end yet, else its length.

    Half a key may be in it, the other half in the bytes that follow. Nobody reads an event of a
    stream before its line ends.
    """
    return data.rfind(b"\n") + 1


def keys_in(loaded: LoadedSettings) -> dict[str, str]:
    """Return every key in use, by the variable that holds it."""
    providers = set_up_providers(loaded).registry.providers.values()
    names = {name for config in providers for name in config.profile.api_key_env}
    keys = {name: key for name in sorted(names) if (key := loaded.variables.get(name, "").strip())}
    if loaded.settings.api_key:
        keys.setdefault(_DEFAULT_KEY, loaded.settings.api_key)
    return keys


def other_secrets(loaded: LoadedSettings) -> list[str]:
    """Return what else must not be recorded: the key of memories, secrets that servers get."""
    named = (loaded.variables[name].strip() for name in borrowed(loaded) if is_secret_name(name))
    found = [loaded.settings.memory_key, *named]
    return [text for text in found if len(text) >= _SHORTEST_VALUE]


def borrowed(loaded: LoadedSettings) -> Sequence[str]:
    """Return which variables that MCP servers ask for are set."""
    text = json.dumps(loaded.settings.mcp, default=str)
    return sorted(name for name in {*_NAME.findall(text)} if name in loaded.variables)


def settings_to_record(loaded: LoadedSettings) -> dict[str, Any]:
    """Return the settings as plain data, without keys and without folders of this machine."""
    data: dict[str, Any] = msgspec.to_builtins(loaded.settings, enc_hook=str)
    return {
        name: _without_headers(value) for name, value in data.items() if name not in _NOT_RECORDED
    }


def _without_headers(value: Any) -> Any:
    """Empty the headers of providers and servers: they may hold a password under any name."""
    if not isinstance(value, dict):
        return value
    kept: dict[str, Any] = {}
    for name, one in cast(dict[str, Any], value).items():
        if name == "headers" and isinstance(one, dict):
            one = dict.fromkeys(cast(dict[str, Any], one), "")
        kept[name] = _without_headers(one)
    return kept


def recorded_settings(head: RecordingHead, here: LoadedSettings) -> LoadedSettings:
    """Return the settings of a recording, with the folders of this process.

    Raises KodeError `Storage` when this program does not accept them.
    """
    own: dict[str, Any] = {
        "storage_root": here.settings.storage_root,
        "log_dir": here.settings.log_dir,
        **dict.fromkeys(_NOT_PLAYED, ()),
    }
    key = {"api_key": NO_KEY} if head.keyed else {}
    try:
        settings = msgspec.convert({**head.settings, **own, **key}, Settings)
    except msgspec.ValidationError as error:
        text = f"The recorded settings are none of this program: {error}"
        raise KodeError("Storage", text) from None
    return LoadedSettings(
        settings=settings,
        sources=dict.fromkeys({*head.settings, *key} - set(head.defaults), "recording"),
        problems=head.problems,
        variables=dict.fromkeys((*head.keyed, *head.borrowed), NO_KEY),
    )
