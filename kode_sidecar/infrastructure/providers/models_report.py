"""Lists the models that a user may choose, for `kode/models/list`."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress

import msgspec

from kode_sidecar.core.domain.error_info import error_info
from kode_sidecar.core.domain.event_parts import EFFORTS
from kode_sidecar.core.domain.host_facts import OfferedModel
from kode_sidecar.core.protocol import process as wire
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.providers.chat_client import ChatClient
from kode_sidecar.infrastructure.providers.endpoint import NOT_THERE
from kode_sidecar.infrastructure.providers.provider_config import ProviderConfig
from kode_sidecar.infrastructure.providers.registry import RetiredModels


async def models_report(
    client: ChatClient, retired: RetiredModels, default: str
) -> wire.ModelsListResult:
    """Merge the built-in table with each host's own list; hosts without a key are not asked.

    The host's list takes precedence. A host that fails still has its row, with the reason.
    """
    configs = list(client.registry.providers.values())
    rows = await asyncio.gather(*(_provider(client, config, retired) for config in configs))
    offered = {model.name: model for row in rows for model in row.models}
    return wire.ModelsListResult(
        default=default,
        logical=tuple(
            wire.LogicalModel(
                name=name,
                candidates=tuple(
                    _candidate(target.config, target.model.id, offered)
                    for target in client.registry.listed(name)
                ),
            )
            for name in client.registry.logical_models
        ),
        providers=tuple(rows),
    )


def _candidate(
    config: ProviderConfig, model_id: str, known: dict[str, wire.ModelView]
) -> wire.ModelCandidate:
    name = f"{config.name}/{model_id}"
    model = known.get(name)
    return wire.ModelCandidate(
        name=name,
        retired=model is not None and model.retired,
        offered=model is not None and model.offered,
    )


async def _provider(
    client: ChatClient, config: ProviderConfig, retired: RetiredModels
) -> wire.ProviderView:
    error = config.missing()
    offered: Sequence[OfferedModel] = ()
    host = config.base_url
    gone: frozenset[str] = frozenset()
    try:
        host = config.host()
        gone = retired.ids(host)
        if error is None:
            offered = await client.endpoint(config).list_models()
    except KodeError as failed:
        error = error_info(failed)
    lists = error is None
    if error is not None and error.http_status in NOT_THERE:
        with suppress(KodeError):
            error = None if await client.endpoint(config).has_chat_api() else error
    served = {model.id for model in offered}
    listed = [model.id for model in config.profile.models if model.id not in served]
    return wire.ProviderView(
        name=config.name,
        host=host,
        error=error,
        lists=lists,
        models=tuple(
            _model(client, config, model_id, offered=model_id in served, retired=model_id in gone)
            for model_id in [*(model.id for model in offered), *listed]
        ),
    )


def _model(
    client: ChatClient, config: ProviderConfig, model_id: str, *, offered: bool, retired: bool
) -> wire.ModelView:
    known = config.profile.listed(model_id) is not None
    model = config.profile.model(model_id)
    if offered:
        model = client.endpoint(config).described(model)
    return wire.ModelView(
        name=f"{config.name}/{model_id}",
        offered=offered,
        retired=retired,
        context_window=model.context_window,
        max_output=model.max_output,
        images=model.images if known or offered else None,
        reasoning=model.thinking != "never" if known or offered else None,
        efforts=tuple(effort for effort in EFFORTS if effort in model.efforts),
        price=model.price and msgspec.convert(model.price, wire.Price, from_attributes=True),
    )
