"""What a user may choose as model, for `kode/models/list`."""

from collections.abc import Collection, Mapping, Sequence

from kode_sidecar.errors import INTERNAL_ERROR, KodeError
from kode_sidecar.protocol import models
from kode_sidecar.providers.model_list import OfferedModel


def models_report(
    host: str,
    default: str,
    offered: Sequence[OfferedModel],
    logical: Mapping[str, Sequence[str]],
    retired: Collection[str],
) -> models.ModelsListResult:
    """`offered` in the host's order, the ids behind logical names in the order they are tried."""
    ids = {model.id for model in offered}
    return models.ModelsListResult(
        host=host,
        default=default,
        logical=tuple(
            models.LogicalModel(
                name=name,
                candidates=tuple(
                    models.ModelCandidate(id=one, retired=one in retired, offered=one in ids)
                    for one in candidates
                ),
            )
            for name, candidates in logical.items()
        ),
        models=tuple(
            models.OfferedModel(
                id=model.id,
                context_window=model.context_length,
                images=model.supports_image_in,
                reasoning=model.supports_reasoning,
            )
            for model in offered
        ),
    )


def answerable(error: KodeError) -> KodeError:
    """The error as the answer to a request: without a code of its own it counts as `Provider`."""
    if error.rpc_code != INTERNAL_ERROR:
        return error
    return KodeError(
        "Provider",
        error.message,
        http_status=error.http_status,
        retry_after_ms=error.retry_after_ms,
        retryable=error.retryable,
        details={"reason": error.code},
    )
