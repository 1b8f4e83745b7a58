"""All settings of the process, and where each one came from."""

from kode_sidecar.settings.load import load_settings, with_editor
from kode_sidecar.settings.values import LoadedSettings, Settings, describe

__all__ = ["LoadedSettings", "Settings", "describe", "load_settings", "with_editor"]
