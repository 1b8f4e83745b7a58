"""A patch of several files as proposals: all of it fits, or nothing is proposed."""

from collections.abc import Sequence

from kode_sidecar.errors import KodeError
from kode_sidecar.kernel.contracts import ToolCall
from kode_sidecar.text.apply_patch import FileAdd, FileDelete, FilePatch, FileUpdate
from kode_sidecar.tools.contracts import FileProposals, Proposed
from kode_sidecar.tools.proposal_outcome import head, text_report
from kode_sidecar.tools.text_checks import check_omission, check_size, refusal
from kode_sidecar.tools.text_rewrites import PatchChunks
from kode_sidecar.workspace.contracts import SessionFiles


async def propose_patch(
    patch: Sequence[FilePatch], proposals: FileProposals, files: SessionFiles, call: ToolCall
) -> list[tuple[Proposed, str]]:
    """Each file's proposal and what the model is told of it.

    Everything is tried before anything is proposed. Raises KodeError; its message names what was
    proposed already, where the user or another edit came between.
    """
    for file in patch:
        _try(file, files)
    done: list[tuple[Proposed, str]] = []
    for file in patch:
        try:
            done.append(await _propose(file, proposals, call))
        except KodeError as error:
            if done:
                paths = ", ".join(proposed.path for proposed, _ in done)
                error.message += f" Already proposed: {paths}."
            raise
    return done


def _try(file: FilePatch, files: SessionFiles) -> None:
    """Raises the KodeError that proposing it would end with."""
    match file:
        case FileAdd(path, text):
            check_omission(text, "", f"{path}: ")
            check_size(text, path)
            try:
                files.document(path, purpose="edit")
            except KodeError as error:
                if error.code != "NotFound":
                    raise
            else:
                raise refusal("exists", f"{path} exists already; update it instead of adding it.")
        case FileDelete(path):
            files.document(path, purpose="edit")
        case FileUpdate(path, chunks, move_to):
            if move_to and chunks:
                raise refusal(
                    "conflict",
                    f"{path} is changed and moved at once. Send the changes as one patch, and move "
                    "the file by propose_file once they are decided.",
                )
            document = files.document(path, purpose="edit")
            if chunks:
                PatchChunks(path, chunks)(document, files.view(document).text_lf)


async def _propose(
    file: FilePatch, proposals: FileProposals, call: ToolCall
) -> tuple[Proposed, str]:
    match file:
        case FileAdd():
            proposed = await proposals.propose_create(file.path, file.text, call)
        case FileDelete():
            proposed = await proposals.propose_delete(file.path, call)
        case FileUpdate():
            if file.move_to is None:
                rewrite = PatchChunks(file.path, file.chunks)
                proposed = await proposals.propose(file.path, rewrite, call)
                return proposed, text_report(proposed, rewrite.notes, rewrite.tiers)
            proposed = await proposals.propose_move(file.path, file.move_to, call)
    return proposed, f"{proposed.message}\n{head(proposed)}"
