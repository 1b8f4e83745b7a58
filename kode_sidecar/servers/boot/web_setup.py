"""Sets up the web in sessions from the user's settings. Not loaded if it is switched off."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from kode_sidecar.agent.permissions import UserWeb
from kode_sidecar.agent.turns.toolset import WebSetup
from kode_sidecar.core.settings import LiveSettings, WebSettings
from kode_sidecar.core.settings.writing import add_to_config

if TYPE_CHECKING:
    from kode_sidecar.infrastructure.providers.endpoint import Host


def session_web(
    live: LiveSettings, config: Path, open_http: "Callable[[WebSettings], Host]"
) -> WebSetup | None:
    """Return what sessions read the web with; None if the user has switched it off."""
    settings = live.loaded.settings.web
    if settings.mode == "off":
        return None
    opened: list[Host] = []

    async def host() -> "Host":
        if not opened:  # two at once open two, which hold nothing
            opened.append(await asyncio.to_thread(open_http, settings))
        return opened[0]

    web = UserWeb(
        settings.mode,
        live.trusted,
        lambda name: add_to_config(config, ("web", "allow"), name),
        {name.lower() for name in settings.allow},
    )
    return WebSetup(web, host)
