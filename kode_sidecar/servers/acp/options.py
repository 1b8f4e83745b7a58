"""The modes and models to choose from; ACP shows modes both as modes and as config options."""

from collections.abc import Sequence

from kode_sidecar.core.protocol.session import Mode, SessionUpdateParams
from kode_sidecar.errors import KodeError
from kode_sidecar.servers.acp.tool_cards import Json
from kode_sidecar.servers.acp.updates import shown_mode

MODES: Sequence[tuple[Mode, str, str]] = (
    ("ask", "Ask", "Every edit is shown and asked for before it is applied"),
    ("auto", "Apply edits", "Edits are applied at once; what is sensitive is asked for"),
    ("keep", "Keep or undo", "Edits are applied and saved at once; keep or undo them afterwards"),
    ("plan", "Plan", "Reads only, and proposes no edits"),
)


def mode_state(mode: str) -> Json:
    """Return the modes, for clients that show modes."""
    modes = [{"id": key, "name": name, "description": about} for key, name, about in MODES]
    return {"currentModeId": shown_mode(mode), "availableModes": modes}


def config_options(mode: str, model: str, models: Sequence[str]) -> list[Json]:
    """Return mode and model, for clients that show config options."""
    return [
        _select("mode", "Mode", shown_mode(mode), [(key, name) for key, name, _ in MODES]),
        _select("model", "Model", model, [(one, one) for one in dict.fromkeys((model, *models))]),
    ]


def _select(key: str, name: str, current: str, values: Sequence[tuple[str, str]]) -> Json:
    options = [{"value": value, "name": shown} for value, shown in values]
    head = {"id": key, "name": name, "category": key, "type": "select"}
    return {**head, "currentValue": current, "options": options}


def chosen_option(session_id: str, config_id: str, value: object) -> SessionUpdateParams:
    """Return the session update that a chosen option means. Raises KodeError `InvalidParams`."""
    if config_id == "mode":
        return SessionUpdateParams(session_id=session_id, mode=known_mode(value))
    if config_id == "model" and isinstance(value, str) and value:
        return SessionUpdateParams(session_id=session_id, model=value)
    text = f"There is no option {config_id!r} with the value {value!r}; use those of configOptions."
    raise KodeError("InvalidParams", text, details={"path": "$.configId"})


def known_mode(value: object) -> Mode:
    """Return `value` if it is a mode. Raises KodeError `InvalidParams`."""
    for mode, _, _ in MODES:
        if mode == value:
            return mode
    known = ", ".join(mode for mode, _, _ in MODES)
    raise KodeError("InvalidParams", f"There is no mode {value!r}; use one of {known}.")
