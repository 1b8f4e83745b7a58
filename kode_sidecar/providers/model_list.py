"""What a host says it serves: `GET /models`. Sans-IO."""

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


class _ModelList(Struct):
    data: list[OfferedModel]


def read_models(body: bytes, host: str) -> list[OfferedModel]:
    """The models in the host's order. Raises KodeError `Provider`."""
    try:
        return msgspec.json.decode(body, type=_ModelList).data
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        text = f"{host} did not answer with a list of models: check KIMI_BASE_URL."
        raise KodeError("Provider", text, retryable=False) from None
