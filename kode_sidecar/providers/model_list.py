"""What a host says it serves: `GET /models`. Sans-IO."""

from typing import Any, cast

import msgspec
from msgspec import Struct

from kode_sidecar.errors import KodeError

MODELS_PATH = "/models"
MAX_MODELS_BYTES = 4 * 1024 * 1024


class OfferedModel(Struct, frozen=True):
    """A model on offer. The fields after `id` are Moonshot's; other hosts leave them out."""

    id: str
    context_length: int | None = None
    supports_image_in: bool | None = None
    supports_reasoning: bool | None = None


def read_models(body: bytes, host: str, url_name: str = "KIMI_BASE_URL") -> list[OfferedModel]:
    """The models in the host's order; an entry that cannot be read is left out.

    A field of another type than expected counts as absent. Raises KodeError `Provider`.
    """
    try:
        answer = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        answer = None
    fields = cast(dict[str, Any], answer) if isinstance(answer, dict) else {}
    entries: object = fields.get("data", fields.get("models", answer))
    if not isinstance(entries, list):
        text = f"{host} did not answer with a list of models: check {url_name}."
        raise KodeError("Provider", text, retryable=False)
    return [model for entry in cast(list[Any], entries) if (model := _model(entry)) is not None]


def _model(entry: Any) -> OfferedModel | None:
    if not isinstance(entry, dict):
        return None
    fields = cast(dict[str, Any], entry)
    model_id = fields.get("id") or fields.get("name")
    if not isinstance(model_id, str):
        return None
    window = fields.get("context_length")
    return OfferedModel(
        model_id,
        window if isinstance(window, int) and window > 0 else None,
        _flag(fields.get("supports_image_in")),
        _flag(fields.get("supports_reasoning")),
    )


def _flag(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None
