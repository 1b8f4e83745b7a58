"""No key gets into a recording. A star for each character, so that places in texts stay true."""

import json
import re
from collections.abc import Iterable, Sequence

from kode_sidecar.workspace.credentials import with_stars

# Bearer tokens, keys of the usual shape, and members of that name.
_TOKEN = re.compile(r"(?i)(?<=bearer )[\w.~+/=-]{8,}|\bsk-[\w-]{8,}")
_MEMBER = re.compile(
    r'(?i)("[\w-]*(?:authorization|api[_-]?key|cookie|password|secret)"\s*:\s*")((?:[^"\\]|\\.)*)(?=")'
)
# A piece of a key that is shorter than this is no secret, and may be anything.
_TELLING = 10


class SecretMask:
    """Makes lines fit for a recording; `secrets` are the keys in use."""

    def __init__(self, secrets: Sequence[str]) -> None:
        self._forms = {form for secret in secrets for form in (secret, json.dumps(secret)[1:-1])}
        self._known = [secret.encode() for secret in secrets if len(secret) > _TELLING]

    def line(self, line: bytes) -> bytes:
        """One line of JSON."""
        text = _without_keys(line.decode("utf-8", "surrogatepass"), self._forms)
        text = _TOKEN.sub(_stars, with_stars(text))
        text = _MEMBER.sub(lambda found: found[1] + "*" * len(found[2]), text)
        return text.encode("utf-8", "surrogatepass")

    def split(self, data: bytes) -> int:
        """Where `data` ends but for what may be the beginning of a key that goes on elsewhere.

        Events of a stream end with a line feed, so that is hardly ever before the end.
        """
        if any(data.endswith(key) for key in self._known):
            return len(data)
        for key in self._known:
            for length in range(min(len(key) - 1, len(data)), 0, -1):
                if data.endswith(key[:length]):
                    return len(data) - length
        return len(data)


def masked_bytes(data: bytes, secrets: Sequence[str]) -> bytes:
    """A file's bytes in whatever encoding, without the keys and what else looks like one."""
    text = _without_keys(data.decode("latin-1"), secrets)
    return _TOKEN.sub(_stars, with_stars(text)).encode("latin-1")


def _without_keys(text: str, keys: Iterable[str]) -> str:
    """Keys that are known, and what is left of them where a text was cut off."""
    for key in keys:
        if len(key) <= _TELLING:
            text = text.replace(key, "*" * len(key)) if key else text
            continue
        for end in range(len(key), _TELLING - 1, -1):
            if key[:_TELLING] not in text:
                break
            text = text.replace(key[:end], "*" * end)
        for start in range(1, len(key) - _TELLING + 1):
            if key[-_TELLING:] not in text:
                break
            text = text.replace(key[start:], "*" * (len(key) - start))
    return text


def _stars(found: "re.Match[str]") -> str:
    return "*" * len(found[0])
