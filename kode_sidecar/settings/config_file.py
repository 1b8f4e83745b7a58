"""The user's `config.yaml`. A module of its own because PyYAML takes 10 ms to import."""

from collections.abc import Mapping
from pathlib import Path
from typing import cast

from kode_sidecar.errors import KodeError
from kode_sidecar.settings.env_file import read_user_text
from kode_sidecar.text.yaml_text import YamlProblem, read_yaml


def read_config_file(path: Path) -> Mapping[str, object]:
    """The settings of one YAML file, not yet checked; an empty file is no settings.

    Raises KodeError `ConfigInvalid` naming line and column.
    """
    text = read_user_text(path)
    try:
        loaded = read_yaml(text).value
    except YamlProblem as error:
        where = f", line {error.line}" if error.line else ""
        where += f", column {error.column}" if error.column else ""
        text = f"{path.name}{where}: not valid YAML: {error.problem}"
        raise KodeError("ConfigInvalid", text) from None
    if loaded is None:
        return {}
    if not isinstance(loaded, dict):
        raise KodeError("ConfigInvalid", f"{path.name}: expected lines such as `mode: review`")
    return {str(key): value for key, value in cast("dict[object, object]", loaded).items()}
