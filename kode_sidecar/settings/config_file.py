"""The user's `config.yaml`. A module of its own because PyYAML takes 10 ms to import."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import yaml

from kode_sidecar.errors import KodeError
from kode_sidecar.settings.env_file import read_user_text


def read_config_file(path: Path) -> Mapping[str, object]:
    """The settings of one YAML file, not yet checked; an empty file is no settings.

    Raises KodeError `ConfigInvalid` naming line and column.
    """
    text = read_user_text(path)
    try:
        loaded: Any = yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = "" if mark is None else f", line {mark.line + 1}, column {mark.column + 1}"
        problem = error.problem or "broken"
        raise KodeError("ConfigInvalid", f"{path.name}{where}: not valid YAML: {problem}") from None
    except (yaml.YAMLError, ValueError, RecursionError):
        raise KodeError("ConfigInvalid", f"{path.name} is not valid YAML") from None
    if loaded is None:
        return {}
    if not isinstance(loaded, dict):
        raise KodeError("ConfigInvalid", f"{path.name}: expected lines such as `mode: review`")
    return {str(key): value for key, value in cast("dict[object, object]", loaded).items()}
