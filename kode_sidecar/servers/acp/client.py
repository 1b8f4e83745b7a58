"""What the client announced in `initialize`, as far as it matters here."""

from collections.abc import Mapping

from kode_sidecar.core.protocol.handshake import as_object

# Those whose `fs/*` is known to read and write the text that the user sees, saved or not.
_SERVES_BUFFERS = frozenset({"zed"})


class ClientAbilities:
    """`reads_files` and `writes_files` are its `fs/*`; `trusted` is its word on the project.

    `runs_programs` is its `terminal/*`.
    """

    def __init__(self, params: Mapping[str, object]) -> None:
        abilities = as_object(params.get("clientCapabilities"))
        files, session = as_object(abilities.get("fs")), as_object(abilities.get("session"))
        info = as_object(params.get("clientInfo"))
        kode = as_object(as_object(params.get("_meta")).get("kode"))
        self.name = str(info.get("title") or info.get("name") or "")
        self.reads_files = files.get("readTextFile") is True
        self.writes_files = files.get("writeTextFile") is True
        self.runs_programs = abilities.get("terminal") is True
        self.serves_buffers = str(info.get("name")) in _SERVES_BUFFERS
        self.shows_notices = isinstance(session.get("notices"), dict)
        self.shows_compaction = isinstance(session.get("compaction"), dict)
        elicitation = as_object(abilities.get("elicitation"))
        self.shows_forms = isinstance(elicitation.get("form"), dict)
        self.opens_addresses = isinstance(elicitation.get("url"), dict)
        self.trusted = kode.get("trusted") is True
