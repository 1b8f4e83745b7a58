"""Edits in the terms of the client at hand: what was not announced is never sent."""

from typing import Any

import pytest

from kode_sidecar.agent.event_log.editor_port import DocumentEdit, FileEdit
from kode_sidecar.core.domain.change_set import Position, Range
from kode_sidecar.core.protocol.language import EditorTextEdit
from kode_sidecar.servers.lsp.client_profile import ClientProfile, apply_edit_params

URI = "file:///w/a.py"
LINE = EditorTextEdit(range=Range(Position(0, 0), Position(1, 0)), new_text="x\n")
TEXT = DocumentEdit("kode: a.py", URI, 3, [LINE])
ALL = ["create", "rename", "delete"]


def profile(name: str = "", **workspace_edit: Any) -> ClientProfile:
    capabilities = {"workspace": {"workspaceEdit": workspace_edit}}
    return ClientProfile({"capabilities": capabilities, "clientInfo": {"name": name}})


VS_CODE = profile(
    "Visual Studio Code",
    documentChanges=True,
    resourceOperations=ALL,
    changeAnnotationSupport={"groupsOnLabel": True},
)
NEOVIM = profile("Neovim", resourceOperations=["rename", "create", "delete"])
EGLOT = profile("Emacs", documentChanges=True)
HELIX = profile("helix", documentChanges=True, resourceOperations=ALL)
ZED = profile("Zed", documentChanges=True, resourceOperations=ALL, normalizesLineEndings=True)
PLAIN = profile("plain", documentChanges=False, resourceOperations=ALL)


def sent(edit: DocumentEdit | FileEdit, client: ClientProfile) -> dict[str, Any]:
    return apply_edit_params([edit], client)["edit"]


@pytest.mark.parametrize("client", [VS_CODE, NEOVIM, EGLOT, HELIX, ZED])
def test_one_versioned_change_of_one_document(client: ClientProfile) -> None:  # R1, R5, R10
    (change,) = sent(TEXT, client)["documentChanges"]
    assert change["textDocument"] == {"uri": URI, "version": 3}
    assert "changes" not in sent(TEXT, client)


def test_a_client_without_versions_gets_plain_changes() -> None:  # R10
    assert list(sent(TEXT, PLAIN)) == ["changes"]
    assert list(sent(TEXT, PLAIN)["changes"]) == [URI]


def test_what_a_client_can_is_never_decided_by_its_name() -> None:
    unknown = profile("", resourceOperations=["rename", "create", "delete"])
    assert sent(TEXT, unknown) == sent(TEXT, NEOVIM)
    assert list(sent(TEXT, profile("Neovim"))) == ["changes"]


def test_only_announced_operations_exist() -> None:  # R10
    for client in (VS_CODE, NEOVIM, HELIX, ZED):
        assert client.file_operations == set(ALL)
    assert EGLOT.file_operations == set()
    assert PLAIN.file_operations == set(), "they need documentChanges"


def test_a_new_file_never_empties_one_that_is_there() -> None:  # R6
    create, insert = sent(FileEdit("kode", "create", URI, text="a\nb\n"), NEOVIM)["documentChanges"]
    assert create == {
        "kind": "create",
        "uri": URI,
        "options": {"overwrite": False, "ignoreIfExists": True},
    }
    assert insert["textDocument"] == {"uri": URI, "version": None}
    (edit,) = insert["edits"]
    assert edit["range"] == {
        "start": {"line": 0, "character": 0},
        "end": {"line": 1, "character": 0},
    }
    assert edit["newText"] == "a\nb\n"


@pytest.mark.parametrize("kind", ["rename", "delete"])
def test_a_rename_or_a_deletion_travels_alone(kind: Any) -> None:  # R7
    edit = FileEdit("kode", kind, URI, new_uri="file:///w/b.py")
    (change,) = sent(edit, HELIX)["documentChanges"]
    assert change["kind"] == kind
    assert change["options"].get("overwrite", False) is False


def test_annotations_only_where_announced_and_only_for_a_deletion_nobody_accepted() -> None:  # R8
    asked = FileEdit("kode: delete a.py", "delete", URI, ask=True)
    edit = sent(asked, VS_CODE)
    (key,) = edit["changeAnnotations"]
    assert edit["changeAnnotations"][key]["needsConfirmation"] is True
    assert edit["documentChanges"][0]["annotationId"] == key
    for quiet in (
        sent(asked, NEOVIM),
        sent(FileEdit("kode", "delete", URI), VS_CODE),
        sent(FileEdit("kode", "create", URI, text="x", ask=True), VS_CODE),
        sent(FileEdit("kode", "rename", URI, new_uri="file:///w/b", ask=True), VS_CODE),
        sent(TEXT, VS_CODE),
    ):
        assert "changeAnnotations" not in quiet
        assert "annotationId" not in str(quiet)


# Without LSP's `clientInfo` the handshake of kode says who it is.
@pytest.mark.parametrize(
    ("params", "name"),
    [
        ({"clientInfo": {"name": "Emacs"}}, "Emacs"),
        ({"initializationOptions": {"kode": {"client": {"name": "Emacs"}}}}, "Emacs"),
        (
            {
                "clientInfo": {"name": "A"},
                "initializationOptions": {"kode": {"client": {"name": "B"}}},
            },
            "A",
        ),
        ({"clientInfo": {"name": 5}, "initializationOptions": {}}, ""),
    ],
)
def test_the_clients_name_is_known_from_either_place(params: dict[str, Any], name: str) -> None:
    assert ClientProfile(params).name == name
