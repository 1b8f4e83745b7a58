"""The files under `protocol/`, and what the wire types make of the frames in them."""

import json
from pathlib import Path
from typing import Any

import msgspec

from kode_sidecar.core.domain.agent_event import Event
from kode_sidecar.core.domain.error_info import ErrorInfo
from kode_sidecar.core.protocol.events import EventParams
from kode_sidecar.core.protocol.initialize import (
    KodeInitializeOptions,
    KodeInitializeResult,
    UnsupportedVersionInfo,
)
from kode_sidecar.core.protocol.method import Method
from kode_sidecar.core.protocol.methods import METHODS
from kode_sidecar.errors import ERRORS

Json = dict[str, Any]
FOLDER = Path(__file__).resolve().parents[2] / "protocol"
EXAMPLES = FOLDER / "examples"

TABLE = {method.name: method for method in METHODS}
RUN_ERRORS = ("RunTimedOut", "RunDied", "DeliverableMissing")
"""What only `kode/run/get` tells, as the error of a run."""
EVENT_TYPES: tuple[str, ...] = tuple(str(member.__struct_config__.tag) for member in Event.__args__)


def example_names() -> dict[str, Method | str | None]:
    """Every example there must be: its method, the type of its event, or its error.

    An error of a run is in the result of the method that tells it.
    """
    names: dict[str, Method | str | None] = {
        "request.initialize": None,
        "response.initialize": None,
    }
    for method in METHODS:
        slug = method.name.replace("/", "_")
        names[f"{method.kind}.{slug}"] = method
        if method.result is not None:
            names[f"response.{slug}"] = method
    names |= {f"event.{kind.replace('.', '_')}": kind for kind in EVENT_TYPES}
    names |= {f"error.{code}": code for code in ERRORS}
    names |= {f"error.{code}": TABLE["kode/run/get"] for code in RUN_ERRORS}
    return names


def read_example(name: str) -> Json:
    return json.loads((EXAMPLES / f"{name}.json").read_bytes())


def recoded(frame: Json, result_type: Any = None) -> Json:
    """The frame after its params, result or error data went through the wire types.

    `result_type` is what a response holds. Raises msgspec's errors for what does not fit.
    """
    if "error" in frame:
        data = frame["error"]["data"]
        kind = UnsupportedVersionInfo if "supportedVersions" in data else ErrorInfo
        return frame | {"error": frame["error"] | {"data": through(data, kind)}}
    if "result" in frame:
        return frame | {"result": through(frame["result"], result_type)}
    return frame | {"params": through(frame["params"], TABLE[frame["method"]].params)}


def recoded_initialize(frame: Json) -> Json:
    """The same for the two frames of the handshake, of which the kode objects are ours."""
    copy: Json = json.loads(json.dumps(frame))
    if "params" in copy:
        options = copy["params"]["initializationOptions"]
        options["kode"] = through(options["kode"], KodeInitializeOptions)
    else:
        experimental = copy["result"]["capabilities"]["experimental"]
        experimental["kode"] = through(experimental["kode"], KodeInitializeResult)
    return copy


def through(value: Any, kind: Any) -> Any:
    """JSON → the type → JSON."""
    decoded = msgspec.json.decode(msgspec.json.encode(value), type=kind)
    return msgspec.json.decode(msgspec.json.encode(decoded))


def canonical(value: Any) -> bytes:
    """The one spelling of a JSON value: members sorted, no blanks."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def events_in(frame: Json) -> list[Json]:
    """The events of a frame, none when it is something else."""
    if frame.get("method") != "kode/event":
        return []
    return through(frame["params"], EventParams)["events"]
