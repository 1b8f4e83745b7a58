"""Edits as `workspace/applyEdit`, in the terms that every client understands (LSP 3.17).

One document per request. A new file is created with `overwrite: false` and `ignoreIfExists: true`,
because without options some editors empty a file that is there; its text replaces the range
(0,0)-(1,0), because an insertion at (0,0) leaves an empty line behind in some.
"""

from typing import Any, Protocol

from kode_sidecar.event_log.editor_port import DocumentEdit, FileEdit

_ANNOTATION = "kode"


class EditClient(Protocol):
    """What a client can do with edits."""

    @property
    def document_changes(self) -> bool: ...
    @property
    def change_annotations(self) -> bool: ...


def apply_edit_params(edit: DocumentEdit | FileEdit, client: EditClient) -> dict[str, Any]:
    """Params of `workspace/applyEdit`. A file edit needs a client with `document_changes`."""
    if isinstance(edit, FileEdit):
        return {"label": edit.label, "edit": _file_edit(edit, client)}
    edits = [{"range": item.range, "newText": item.new_text} for item in edit.edits]
    if not client.document_changes:
        return {"label": edit.label, "edit": {"changes": {edit.uri: edits}}}
    change = _text_change(edit.uri, edit.version, edits)
    return {"label": edit.label, "edit": {"documentChanges": [change]}}


def _file_edit(edit: FileEdit, client: EditClient) -> dict[str, Any]:
    match edit.kind:
        case "create":
            options = {"overwrite": False, "ignoreIfExists": True}
            changes = [{"kind": "create", "uri": edit.uri, "options": options}]
            if edit.text:
                first_line = _range(0, 1)
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


def _text_change(uri: str, version: int | None, edits: list[dict[str, Any]]) -> dict[str, Any]:
    return {"textDocument": {"uri": uri, "version": version}, "edits": edits}


def _range(first_line: int, last_line: int) -> dict[str, Any]:
    return {
        "start": {"line": first_line, "character": 0},
        "end": {"line": last_line, "character": 0},
    }
