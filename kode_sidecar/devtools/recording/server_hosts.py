"""MCP servers at addresses in a recording: what they say is noted, and played, as of model hosts.

A log-in is one line that says whether it let us in: no token is in a recording, and none is used
by a process that plays.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kode_sidecar.devtools.recording.model_hosts import AnswerLog, PlaybackHost, RecordingHost
from kode_sidecar.devtools.recording.redaction import NO_KEY

if TYPE_CHECKING:  # a package that only who has servers pays for
    from kode_sidecar.infrastructure.mcp.contracts import Access, Authorize

_LET_IN, _REFUSED = 200, 401


def recording_access(name: str, authorize: "Authorize | None", log: AnswerLog) -> "Access":
    """Return the way to a server by which what it says is noted in `log`."""

    async def noted(headers: Mapping[str, str]) -> Mapping[str, str] | None:
        assert authorize is not None
        agent = _log_in(name)
        ask = log.asked(agent, "LOGIN", "")
        return await log.opened(agent, ask, authorize(headers), _head)

    return lambda real: RecordingHost(real, log), noted if authorize is not None else None


def playback_access(name: str, host: PlaybackHost) -> "Access":
    """Return the way to a server that a recording answers for."""

    async def played(_headers: Mapping[str, str]) -> Mapping[str, str] | None:
        status = (await host.log_in(_log_in(name))).status
        return {"authorization": f"Bearer {NO_KEY}"} if status == _LET_IN else None

    return lambda _real: host, played


def _head(given: Mapping[str, str] | None) -> tuple[int, Mapping[str, str]]:
    return (_REFUSED if given is None else _LET_IN), {}


def _log_in(name: str) -> str:
    return f"mcp {name} log-in"
