"""The user's `config.yaml`. A module of its own because PyYAML takes 10 ms to import."""

from collections.abc import Mapping
from pathlib import Path
from typing import cast

from kode_sidecar.errors import KodeError
from kode_sidecar.settings.env_file import read_user_text
from kode_sidecar.yaml_text import parse_yaml


def read_config_file(path: Path) -> Mapping[str, object]:
    """The settings of one YAML file, not yet checked; an empty file is no settings.

    Raises KodeError `ConfigInvalid` naming line and column.
    """
    value = parse_yaml(read_user_text(path), path.name).value
    if not isinstance(value, dict):
        raise KodeError("ConfigInvalid", f"{path.name}: expected lines such as `mode: review`")
    return cast("dict[str, object]", value)
