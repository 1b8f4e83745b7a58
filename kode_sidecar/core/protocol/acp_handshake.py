"""The Agent Client Protocol's answer to `initialize`.

Plain data and the standard library only, like `protocol.handshake` and for the same reason.
"""

from kode_sidecar.core.protocol.handshake import Object, as_object
from kode_sidecar.errors import KodeError

VERSION = 1
"""The protocol version in use, whatever the client asks for."""

SETUP = "setup"
SETTINGS = "settings"
"""Ids of the ways to sign in: run a command in the terminal, or read the settings again."""


def initialize_result(params: Object, version: str) -> Object:
    """Answer `initialize`. Raises KodeError `InvalidParams`."""
    wanted = params.get("protocolVersion")
    if not isinstance(wanted, int) or isinstance(wanted, bool):
        text = "Expected an integer at `$.protocolVersion`"
        raise KodeError("InvalidParams", text, details={"path": "$.protocolVersion"})
    capabilities = as_object(params.get("clientCapabilities"))
    return {
        "protocolVersion": VERSION,
        "agentInfo": {"name": "kode-sidecar", "title": "Kode", "version": version},
        "agentCapabilities": {
            "loadSession": True,
            "promptCapabilities": {"image": True, "embeddedContext": True},
            "mcpCapabilities": {"http": True},
            "sessionCapabilities": {
                **{name: {} for name in ("list", "delete", "resume", "close", "fork")},
                "additionalDirectories": {},
            },
            "auth": {"logout": {}},
            "_meta": {"kode": {"parentId": True, "forkAtMessage": True}},
        },
        "authMethods": _auth_methods(as_object(capabilities.get("auth"))),
    }


def _auth_methods(auth: Object) -> list[Object]:
    """Return the ways to sign in; that of the terminal only for clients that can run it."""
    settings: Object = {
        "id": SETTINGS,
        "name": "Key from your settings",
        "description": "Set KIMI_API_KEY, or run `kode-sidecar setup` in a terminal; then go on.",
    }
    if auth.get("terminal") is not True:
        return [settings]
    setup: Object = {
        "type": "terminal",
        "id": SETUP,
        "name": "Set up in the terminal",
        "description": "Asks for the key of your model service and keeps it.",
        "args": ["setup"],
    }
    return [setup, settings]
