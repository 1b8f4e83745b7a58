"""What the client announced in `initialize`, as far as it matters here."""

from collections.abc import Mapping
from typing import Any, cast

# Those whose `fs/*` is known to read and write the text that the user sees, saved or not.
_SERVES_BUFFERS = frozenset({"zed"})


class ClientAbilities:
    """`reads_files` and `writes_files` are its `fs/*`; `trusted` is its word on the project.

    `runs_programs` is its `terminal/*`.
    """

    def __init__(self, params: Mapping[str, object]) -> None:
        abilities = _mapping(params.get("clientCapabilities"))
        files, session = _mapping(abilities.get("fs")), _mapping(abilities.get("session"))
        info = _mapping(params.get("clientInfo"))
        kode = _mapping(_mapping(params.get("_meta")).get("kode"))
        self.name = str(info.get("title") or info.get("name") or "")
        self.reads_files = files.get("readTextFile") is True
        self.writes_files = files.get("writeTextFile") is True
        self.runs_programs = abilities.get("terminal") is True
        self.serves_buffers = str(info.get("name")) in _SERVES_BUFFERS
        self.shows_notices = isinstance(session.get("notices"), dict)
        self.shows_compaction = isinstance(session.get("compaction"), dict)
        elicitation = _mapping(abilities.get("elicitation"))
        self.shows_forms = isinstance(elicitation.get("form"), dict)
        self.opens_addresses = isinstance(elicitation.get("url"), dict)
        self.trusted = kode.get("trusted") is True


def _mapping(value: object) -> dict[str, Any]:
    return cast(dict[str, Any], value) if isinstance(value, dict) else {}
