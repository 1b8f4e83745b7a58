"""A configuration's fingerprint, and the configuration as it is recorded (B3, B5). Sans-IO."""

import hashlib
import json
import re
from typing import Any

import msgspec

from kode_sidecar.headless_run.run_config import RunConfig

_USER_INFO = re.compile(r"(?<=://)[^/@\s]*@")
MASK = "***"


def config_fingerprint(config: RunConfig) -> str:
    """SHA-256 in hex of the resolved configuration: equal for all that mean the same.

    Key order, spelt-out defaults and what the command line repeats make no difference; neither
    does the place of the file.
    """
    text = json.dumps(msgspec.to_builtins(config), sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def recorded_config(config: RunConfig) -> dict[str, Any]:
    """All of it as plain data, names and passwords in addresses masked.

    Keys themselves are never in a configuration: it names variables of the environment.
    """
    data: dict[str, Any] = msgspec.to_builtins(config)
    external: dict[str, Any] | None = data["memory"]["external"]
    if external is not None:
        external["url"] = _USER_INFO.sub(f"{MASK}@", external["url"])
    return data
