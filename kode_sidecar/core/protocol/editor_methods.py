"""The methods that the sidecar sends to the editor."""

from functools import partial

from kode_sidecar.core.protocol import change_set, documents, events, language, process, questions
from kode_sidecar.core.protocol.method import Method

_to_editor = partial(Method, direction="server_to_client")

EDITOR_METHODS: tuple[Method, ...] = (
    _to_editor("kode/event", "Durable events of one session.", events.EventParams),
    _to_editor("kode/delta", "Growth of open blocks.", events.DeltaParams),
    _to_editor(
        "kode/changeSet/moved",
        "Hunks that wait are elsewhere, after the user's changes in their files. Only sent to"
        " clients with the capability `movedHunks`.",
        change_set.MovedHunksParams,
        since="1.0",
    ),
    _to_editor(
        "kode/mcp/changed",
        "An MCP server started, failed, or offers other tools: ask `kode/mcp/list` again. Only sent"
        " once the client has asked for that list.",
        process.Empty,
        since="1.0",
    ),
    _to_editor(
        "kode/sessions/changed",
        "A session was created, changed, deleted, or its turn ended, in this process: ask"
        " `kode/session/list` again. Only sent once the client has asked for that list.",
        process.Empty,
        since="1.0",
    ),
    _to_editor(
        "kode/permission/request",
        "Ask the user to allow a tool call.",
        questions.PermissionRequestParams,
        questions.PermissionRequestResult,
    ),
    _to_editor(
        "kode/openDocument",
        "Open a file whose encoding only the editor knows; its `didOpen` brings the text. Only sent"
        " to clients with the capability `openDocument`.",
        documents.OpenDocumentParams,
        documents.OpenDocumentResult,
    ),
    _to_editor(
        "kode/saveDocuments",
        "Save documents: what was saved before an accepted edit is saved after it. Only sent to"
        " clients with the capability `saveDocuments`; answer once the files are written.",
        documents.SaveDocumentsParams,
        documents.SaveDocumentsResult,
        since="1.0",
    ),
    _to_editor(
        "kode/ask",
        "Put a choice to the user for the model.",
        questions.AskParams,
        questions.AskResult,
    ),
    _to_editor(
        "kode/editor/diagnostics",
        "The diagnostics of the editor's language servers. This and the next five are only sent to"
        " clients that announced them under the capability `editor`.",
        language.EditorDiagnosticsParams,
        language.EditorDiagnosticsResult,
        since="1.0",
    ),
    _to_editor(
        "kode/editor/definition",
        "Where the symbol at a place is defined.",
        language.EditorPlaceParams,
        language.EditorLocationsResult,
        since="1.0",
    ),
    _to_editor(
        "kode/editor/references",
        "Where the symbol at a place is used.",
        language.EditorPlaceParams,
        language.EditorLocationsResult,
        since="1.0",
    ),
    _to_editor(
        "kode/editor/symbols",
        "The symbols of a file, or those of the workspace that match.",
        language.EditorSymbolsParams,
        language.EditorSymbolsResult,
        since="1.0",
    ),
    _to_editor(
        "kode/editor/hover",
        "What the editor would show for a place.",
        language.EditorPlaceParams,
        language.EditorHoverResult,
        since="1.0",
    ),
    _to_editor(
        "kode/editor/rename",
        "What renaming a symbol would change. The changes become hunks; nothing is applied now.",
        language.EditorRenameParams,
        language.EditorRenameResult,
        since="1.0",
    ),
)
