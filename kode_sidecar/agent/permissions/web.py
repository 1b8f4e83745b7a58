"""Decide if an address of the web may be read: by workspace trust, the user's hosts, and the user.

An address is all that leaves the machine. One that holds a secret, or text of the project that the
user did not write, is asked about each time, with that text shown: no earlier answer covers it.
"""

import asyncio
import base64
import binascii
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import unquote_plus

from kode_sidecar.agent.permissions.gate import PermissionGate
from kode_sidecar.agent.tools.web_fetch import host_of
from kode_sidecar.core.domain.event_parts import PermissionOption
from kode_sidecar.core.domain.message import Message, ToolResultBlock, texts_of
from kode_sidecar.core.domain.permission import ALLOW_ONCE, ALLOW_SESSION, REJECT
from kode_sidecar.core.kernel.contracts import ToolCall
from kode_sidecar.core.text.secret_text import find_secret
from kode_sidecar.core.text.shown_text import cut_line, without_controls
from kode_sidecar.errors import KodeError

_LEAST_CHARS = 12
"""Shorter pieces of an address are words that any project has."""
_PIECES = re.compile(r"[/?&=#]+")
_SHOWN_CHARS = 200


@dataclass
class UserWeb:
    """What the user has decided about the web, for all sessions of the process.

    `trusted` reads whether the user trusts the workspace; `write` adds a host to the user's
    settings, which blocks, and raises KodeError.
    """

    mode: Literal["ask", "list"]
    trusted: Callable[[], bool]
    write: Callable[[str], None]
    hosts: set[str] = field(default_factory=set[str])

    async def allow(self, host: str) -> None:
        """Allow a host for good, which holds here even if KodeError says it was not written."""
        self.hosts.add(host)
        await asyncio.to_thread(self.write, host)


class WebPermission:
    """Checks the addresses of one session, before each request, also behind a redirect.

    `shown` are the messages that the model has; `warn` reports an answer that was not saved.
    """

    def __init__(
        self,
        web: UserWeb,
        gate: PermissionGate,
        shown: Callable[[], Sequence[Message]],
        warn: Callable[[KodeError], object],
    ) -> None:
        self._web = web
        self._gate = gate
        self._shown = shown
        self._warn = warn

    async def __call__(self, url: str, call: ToolCall) -> None:
        """Return if the address may be read. Raises KodeError `Denied`."""
        host = host_of(url)
        if not self._web.trusted():
            raise _denied(host, "the user has not said that this workspace is trusted")
        found = held_text(url, self._shown())
        if host in self._web.hosts and not found:
            return
        if self._web.mode == "list" and not found:
            raise _denied(host, "it is not among the hosts that the user's settings list")
        held = f" It holds: {cut_line(without_controls(found), _SHOWN_CHARS)}" if found else ""
        address = without_controls(url)
        answer = await self._gate.choose(
            call,
            f"Fetch {cut_line(address, _SHOWN_CHARS)}",
            address if found else host,
            diff=lambda: address if len(address) > _SHOWN_CHARS else "",
            reason=f"{host} learns this address.{held}",
            options=_options(host, asked_again=bool(found)),
            by_rules=not found,
        )
        if answer is None:
            raise _denied(host, "the user does not allow it")
        if answer.kind == "allow_always":
            try:
                await self._web.allow(host)
            except KodeError as error:
                self._warn(error)


def held_text(url: str, shown: Iterable[Message]) -> str:
    """Return the secret or the text of the project in an address; "" if there is none.

    What the user wrote, and an address that stands somewhere as a whole, gives nothing away.
    """
    plain = unquote_plus(url)
    users, projects = _texts(shown)
    secret = find_secret(plain)
    if secret and plain not in users:
        return secret
    if any(one in users or one in projects for one in (url, plain)):
        return ""
    low_users, low_projects = users.lower(), projects.lower()
    for piece in _pieces(url, plain):
        low = piece.lower()
        if low in low_projects and low not in low_users:
            return piece
    return ""


def _texts(shown: Iterable[Message]) -> tuple[str, str]:
    """Return what the user wrote or pages said, and what came from the project."""
    users: list[str] = []
    projects: list[str] = []
    web: set[str] = set()
    for message in shown:
        if message.is_prompt:
            users += texts_of(message.content)
        web |= {one.tool_use_id for one in message.calls if one.runs == "web_fetch"}
        for block in message.content:
            if isinstance(block, ToolResultBlock):
                found = users if block.tool_use_id in web else projects
                found += texts_of(block.content)
    return "\n".join(users), "\n".join(projects)


def _pieces(url: str, plain: str) -> Iterator[str]:
    """Yield the parts of an address that could hold text, also packed as base64 or hex."""
    for piece in (*_PIECES.split(plain), *host_of(url).split(".")):
        for text in (piece, *_unpacked(piece)):
            if len(text.strip()) >= _LEAST_CHARS:
                yield text.strip()


def _unpacked(piece: str) -> Iterator[str]:
    with suppress(ValueError):
        yield bytes.fromhex(piece).decode()
    padded = piece + "=" * (-len(piece) % 4)
    with suppress(binascii.Error, ValueError):
        yield base64.b64decode(padded, altchars=b"-_", validate=True).decode()
    with suppress(binascii.Error, ValueError):
        yield base64.b64decode(padded, validate=True).decode()


def _options(host: str, *, asked_again: bool) -> Sequence[PermissionOption]:
    if asked_again:
        return (ALLOW_ONCE, REJECT)
    name = f"Always allow {host}"
    always = PermissionOption(option_id="allow-always", kind="allow_always", name=name)
    return (ALLOW_ONCE, ALLOW_SESSION, always, REJECT)


def _denied(host: str, reason: str) -> KodeError:
    text = f"{without_controls(host) or 'The address'} was not asked: {reason}. Go on without it."
    return KodeError("Denied", text)
