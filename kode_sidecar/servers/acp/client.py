"""The abilities that the client announced in `initialize`, as far as we use them."""

from collections.abc import Mapping

from kode_sidecar.core.protocol.handshake import as_object

# Clients whose `fs/*` is known to read and write the text that the user sees, saved or not.
_SERVES_BUFFERS = frozenset({"zed"})


class ClientAbilities:
    """What the client can do: `reads_files` and `writes_files` by its `fs/*`, `runs_programs` by
    its `terminal/*`. `trusted`: it says that the project is trusted.
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
