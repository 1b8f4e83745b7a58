"""All settings of the process, and the source of each one."""

from kode_sidecar.core.settings.checks import api_key as checked_key
from kode_sidecar.core.settings.load import (
    LiveSettings,
    client_agent,
    load_settings,
    state_folder,
    with_editor,
)
from kode_sidecar.core.settings.values import (
    PROJECT_HOOK_FILES,
    PROJECT_SERVER_FILES,
    BudgetSettings,
    CommandSettings,
    LoadedSettings,
    Settings,
    WebSettings,
    describe,
)

__all__ = [
    "PROJECT_HOOK_FILES",
    "PROJECT_SERVER_FILES",
    "BudgetSettings",
    "CommandSettings",
    "LiveSettings",
    "LoadedSettings",
    "Settings",
    "WebSettings",
    "checked_key",
    "client_agent",
    "describe",
    "load_settings",
    "state_folder",
    "with_editor",
]
