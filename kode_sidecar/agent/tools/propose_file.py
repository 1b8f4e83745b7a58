"""`propose_file`: propose to create, overwrite, move or delete whole files."""

import logging
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from kode_sidecar.agent.tools.proposals import (
    Proposals,
    Proposed,
    apart,
    head,
    outcome,
    text_report,
)
from kode_sidecar.agent.tools.text_rewrites import (
    Overwrite,
    check_encodable,
    check_omission,
    check_size,
)
from kode_sidecar.core.kernel.contracts import CallCard, CallPlace, Tool, ToolCall, ToolOutcome
from kode_sidecar.core.text.line_diff import split_lines
from kode_sidecar.core.text.tool_arguments import fitted
from kode_sidecar.errors import KodeError
from kode_sidecar.infrastructure.workspace.contracts import SessionFileView
from kode_sidecar.infrastructure.workspace.document import Document
from kode_sidecar.infrastructure.workspace.freshness import Freshness

_log = logging.getLogger(__name__)


class ProposeFileParams(Struct, forbid_unknown_fields=True):
    """Propose to create, overwrite, move or delete one file.

    `create` and `move` need a path where there is no file. `overwrite` is for a file that you have
    read to its end and that changes almost everywhere. Write `content` out in full.
    """

    action: Literal["create", "overwrite", "move", "delete"]
    path: str
    content: Annotated[str, Meta(description="For create and overwrite")] | None = None
    to: Annotated[str, Meta(description="New path, for move")] | None = None
    confirm: Annotated[bool, Meta(description="You mean it, after a refusal as incomplete")] = False


@dataclass(frozen=True)
class FileCall:
    """A parsed call, with the repairs of its arguments."""

    params: ProposeFileParams
    repairs: tuple[str, ...] = ()


def propose_file_tool(proposals: Proposals, files: SessionFileView, shown: Freshness) -> Tool:
    """Make the tool of one session. It remembers which files it refused as incomplete."""
    refused: set[str] = set()

    async def run(given: FileCall, call: ToolCall) -> ToolOutcome:
        if given.repairs:
            _log.info("arguments of propose_file were fixed: %s", "; ".join(given.repairs))
        params = given.params
        confirmed = params.confirm and params.path in refused
        try:
            proposed, content = await _propose(params, confirmed, call)
        except KodeError as error:
            if (error.details or {}).get("reason") == "placeholder":
                refused.add(params.path)
            raise
        return outcome([proposed], content, given.repairs)

    async def _propose(
        params: ProposeFileParams, confirmed: bool, call: ToolCall
    ) -> tuple[Proposed, str]:
        path, text = params.path, params.content
        match params.action:
            case "create":
                text = _needed(text, "content")
                _check_new(path, text, confirmed)
                proposed = await proposals.propose_create(path, text, call)
                _note_known(path)
            case "overwrite":
                rewrite = Overwrite(path, _needed(text, "content"), shown, confirmed=confirmed)
                proposed = await proposals.propose(path, rewrite, call)
                size = len(proposed.after)
                return proposed, await apart(size, lambda: text_report(proposed))
            case "move":
                proposed = await proposals.propose_move(path, _needed(params.to, "to"), call)
            case "delete":
                proposed = await proposals.propose_delete(path, call)
        return proposed, f"{proposed.message}\n{head(proposed)}"

    def _note_known(path: str) -> None:
        """Note that the model knows the file it wrote, unless the user rejected it."""
        with suppress(KodeError):
            document = files.document(path, purpose="read")
            text = files.view(document).text_lf
            shown.note(document, text, 1, len(split_lines(text)))

    return Tool("propose_file", ProposeFileParams, run, accept=_accept, kind="edit", card=_card)


def _card(given: FileCall) -> CallCard:
    params = given.params
    title = f"{params.action.capitalize()} {params.path}"
    if params.action != "move" or params.to is None:
        return CallCard(title, (CallPlace(params.path),))
    return CallCard(f"{title} to {params.to}", (CallPlace(params.path), CallPlace(params.to)))


def _accept(arguments: Mapping[str, Any]) -> FileCall:
    given, repairs = fitted(arguments, ProposeFileParams)
    return FileCall(msgspec.convert(given, ProposeFileParams, strict=False), repairs)


def _needed(value: str | None, name: str) -> str:
    if value is None:
        raise KodeError("InvalidArguments", f"`{name}` is missing. Send the call again with it.")
    return value


def _check_new(path: str, text: str, confirmed: bool) -> None:
    if not confirmed:
        check_omission(text, "", "", confirm=True)
    check_encodable(text, Document("untitled:new", ""), path)
    check_size(text, path)
