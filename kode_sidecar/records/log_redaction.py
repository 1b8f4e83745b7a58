"""What may stand in a log line: no keys, no control characters, prompts whole or hashed."""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from kode_sidecar.records.json_text import clean_text
from kode_sidecar.text.shown_text import without_controls

MASK = "***"

_SECRET_NAME = re.compile(
    r"(?i)^(?:.*[_-])?(?:authorization|api[_-]?key|cookie|password|secret|token)$"
)
_HEADER = re.compile(
    r"""(?i)(authorization["']?\s*[:=]\s*["']?)(?:(?:basic|bearer)\s+)?[^\s"',;]+"""
)
# Bearer tokens, and keys of the usual shape.
_TOKEN = re.compile(r"(?i)(?<=bearer )[\w.~+/=-]{8,}|\bsk-[\w-]{8,}")


class Redaction:
    """Makes values fit for the log.

    `secrets` are the keys in use; each is masked wherever it appears. `keep_chars` None keeps
    content whole, a number keeps that many characters of it and its SHA-256.
    """

    def __init__(self, secrets: Sequence[str] = (), keep_chars: int | None = None) -> None:
        # A secret also turns up inside JSON text, with its escapes.
        forms = {form for secret in secrets for form in (secret, json.dumps(secret)[1:-1])}
        found = sorted((form for form in forms if form), key=len, reverse=True)
        self._secrets = re.compile("|".join(map(re.escape, found))) if found else None
        self._keep_chars = keep_chars

    def text(self, text: str) -> str:
        """The text without keys and control characters."""
        text = without_controls(clean_text(text))
        if self._secrets is not None:
            text = self._secrets.sub(MASK, text)
        return _TOKEN.sub(MASK, _HEADER.sub(rf"\1{MASK}", text))

    def value(self, value: object) -> Any:
        """Any JSON-like value, cleaned all the way down; other objects become their `str`."""
        if value is None or isinstance(value, bool | int | float):
            return value
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            pairs = cast(Mapping[object, object], value).items()
            return {self.text(str(key)): self._named(str(key), item) for key, item in pairs}
        if isinstance(value, list | tuple | set | frozenset):
            return [self.value(item) for item in cast(Sequence[object], value)]
        return self.text(str(value))

    def content(self, text: str) -> Any:
        """A prompt, a reply or a tool's output, as the settings want it (A10)."""
        text = self.text(text)
        if self._keep_chars is None:
            return text
        digest = hashlib.sha256(text.encode()).hexdigest()
        return {"head": text[: self._keep_chars], "chars": len(text), "sha256": digest}

    def _named(self, name: str, value: object) -> Any:
        return MASK if value and _SECRET_NAME.match(name) else self.value(value)
