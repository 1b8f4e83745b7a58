"""What the client announced in `initialize`, and edits in the form that it understands.

An edit is sent as `workspace/applyEdit` (LSP 3.17), one document per request. A new file is created
with `overwrite: false` and `ignoreIfExists: true`, because without options some editors empty an
existing file. Its text replaces the range (0,0)-(1,0), because in some editors an insertion at
(0,0) leaves an empty line at the end.
"""

from collections.abc import Sequence
from typing import Any

from kode_sidecar.agent.event_log.editor_port import DocumentEdit, FileEdit
from kode_sidecar.core.protocol.events import MAX_INLINE_BYTES, MIN_INLINE_BYTES
from kode_sidecar.core.protocol.handshake import Object, as_list, as_object


class ClientProfile:
    """What the client announced in `initialize`, as far as the sidecar uses it."""

    def __init__(self, params: dict[str, Any]) -> None:
        self._capabilities = as_object(params.get("capabilities"))
        kode = as_object(as_object(params.get("initializationOptions")).get("kode"))
        self._kode = as_object(kode.get("capabilities"))
        self._delivery = as_object(kode.get("delivery"))
        names = (
            as_object(one).get("name") for one in (params.get("clientInfo"), kode.get("client"))
        )
        self.name = next((name for name in names if isinstance(name, str) and name), "")

    @property
    def permission_requests(self) -> bool:
        """True if it answers `kode/permission/request`."""
        return self._kode.get("permission") is not None

    @property
    def asks(self) -> bool:
        """True if it answers `kode/ask`."""
        return self._kode.get("ask") is not None

    @property
    def shows_documents(self) -> bool:
        """True if it announced `window/showDocument`."""
        shown = as_object(as_object(self._capabilities.get("window")).get("showDocument"))
        return shown.get("support") is True

    @property
    def refreshes_lenses(self) -> bool:
        """True if it asks for code lenses again when it is asked to."""
        workspace = as_object(self._capabilities.get("workspace"))
        return as_object(workspace.get("codeLens")).get("refreshSupport") is True

    @property
    def work_done_progress(self) -> bool:
        """True if it shows progress that the server begins."""
        return as_object(self._capabilities.get("window")).get("workDoneProgress") is True

    @property
    def max_inline_bytes(self) -> int:
        """The size of a text in bytes above which only its head is sent."""
        wanted = self._delivery.get("maxInlineBytes")
        if not isinstance(wanted, int) or isinstance(wanted, bool):
            return MAX_INLINE_BYTES
        return max(wanted, MIN_INLINE_BYTES)

    @property
    def omits(self) -> frozenset[str]:
        """What it does not want to get: `kode/delta`, and types of events that are not stored."""
        return frozenset(map(str, as_list(self._delivery.get("omit"))))

    @property
    def document_changes(self) -> bool:
        """True if it supports versioned edits.

        Operations on files exist in versioned edits only: some editors announce just those.
        """
        announced = self._workspace_edit.get("documentChanges")
        if announced is None:
            return bool(as_list(self._workspace_edit.get("resourceOperations")))
        return bool(announced)

    @property
    def file_operations(self) -> frozenset[str]:
        """Those of `create`, `rename` and `delete` that it announced; need `documentChanges`."""
        announced = as_list(self._workspace_edit.get("resourceOperations"))
        return frozenset(map(str, announced)) if self.document_changes else frozenset()

    @property
    def change_annotations(self) -> bool:
        """True if it supports annotated changes; some clients fail on unannounced ones."""
        return isinstance(self._workspace_edit.get("changeAnnotationSupport"), dict)

    @property
    def opens_documents(self) -> bool:
        """True if it answers `kode/openDocument`."""
        return "openDocument" in self._kode

    @property
    def saves_documents(self) -> bool:
        """True if it answers `kode/saveDocuments`."""
        return self._kode.get("saveDocuments") is not None

    @property
    def moved_hunks(self) -> bool:
        """True if it follows `kode/changeSet/moved`."""
        return self._kode.get("movedHunks") is not None

    @property
    def editor_queries(self) -> frozenset[str]:
        """The requests `kode/editor/*` that it answers."""
        announced = as_object(self._kode.get("editor"))
        return frozenset(name for name, value in announced.items() if isinstance(value, dict))

    @property
    def _workspace_edit(self) -> Object:
        return as_object(as_object(self._capabilities.get("workspace")).get("workspaceEdit"))


_ANNOTATION = "kode"


def apply_edit_params(
    edits: Sequence[DocumentEdit | FileEdit], client: ClientProfile
) -> dict[str, Any]:
    """Return the params of `workspace/applyEdit`: one edit of a file, or those of some texts.

    Edits of a file need `client.document_changes`.
    """
    label = edits[0].label if edits else ""
    if len(edits) == 1 and isinstance(edits[0], FileEdit):
        return {"label": label, "edit": _file_edit(edits[0], client)}
    texts = [edit for edit in edits if isinstance(edit, DocumentEdit)]
    if not client.document_changes:
        return {"label": label, "edit": {"changes": {edit.uri: edit.edits for edit in texts}}}
    changes = [_text_change(edit.uri, edit.version, edit.edits) for edit in texts]
    return {"label": label, "edit": {"documentChanges": changes}}


def _file_edit(edit: FileEdit, client: ClientProfile) -> dict[str, Any]:
    match edit.kind:
        case "create":
            options = {"overwrite": False, "ignoreIfExists": True}
            changes = [{"kind": "create", "uri": edit.uri, "options": options}]
            if edit.text:
                first_line = {
                    "start": {"line": 0, "character": 0},
                    "end": {"line": 1, "character": 0},
                }
                text = {"range": first_line, "newText": edit.text}
                changes.append(_text_change(edit.uri, None, [text]))
        case "rename":
            changes = [
                {
                    "kind": "rename",
                    "oldUri": edit.uri,
                    "newUri": edit.new_uri,
                    "options": {"overwrite": False, "ignoreIfExists": False},
                }
            ]
        case "delete":
            options = {"recursive": False, "ignoreIfNotExists": True}
            changes = [{"kind": "delete", "uri": edit.uri, "options": options}]
    if not (edit.kind == "delete" and edit.ask and client.change_annotations):
        return {"documentChanges": changes}
    changes[0]["annotationId"] = _ANNOTATION
    annotation = {"label": edit.label, "needsConfirmation": True}
    return {"documentChanges": changes, "changeAnnotations": {_ANNOTATION: annotation}}


def _text_change(uri: str, version: int | None, edits: Sequence[object]) -> dict[str, Any]:
    return {"textDocument": {"uri": uri, "version": version}, "edits": edits}
