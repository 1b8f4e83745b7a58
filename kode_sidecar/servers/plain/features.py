"""The requests of standard LSP that only clients without a plugin send, as features of pygls.

Imported by the loader with pygls itself; everything else here knows neither it nor lsprotocol.
"""

from typing import Any, cast

import msgspec
from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.protocol import default_converter

from kode_sidecar.core.protocol.handshake import CODE_ACTION_KINDS
from kode_sidecar.servers.plain.actions import ActionContext, CodeActions, Json, Place
from kode_sidecar.servers.plain.chats import Chats
from kode_sidecar.servers.plain.commands import Verbs


def register(server: LanguageServer, actions: CodeActions, chats: Chats, verbs: Verbs) -> None:
    """Register code actions and code lenses."""
    converter = default_converter()
    # The kinds are an open set: one of our own is no member of the enumeration.
    options = types.CodeActionOptions(code_action_kinds=cast(Any, list(CODE_ACTION_KINDS)))

    async def code_action(params: types.CodeActionParams) -> list[Json]:
        if not actions.verbs:
            actions.verbs = await verbs()
        plain: dict[str, Any] = converter.unstructure(params)
        context = msgspec.convert(plain["context"], ActionContext)
        place = msgspec.convert({"uri": params.text_document.uri, "range": plain["range"]}, Place)
        return actions.at(place, context, chats.state_at(place.uri))

    def code_lens(params: types.CodeLensParams) -> list[Json]:
        uri = params.text_document.uri
        return actions.lenses(uri, chats.state_at(uri))

    server.feature(types.TEXT_DOCUMENT_CODE_ACTION, options)(code_action)
    server.feature(types.TEXT_DOCUMENT_CODE_LENS)(code_lens)
