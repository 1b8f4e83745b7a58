"""Editors as they were measured: how each takes an edit, and what it says about it.

Source: Neovim 0.7 to 0.12, VS Code with languageclient 9 and 11, Emacs 30 with eglot, Helix 25.07,
driven and observed. `plain` is how the protocol means it.
"""

from dataclasses import dataclass
from typing import Literal

from kode_sidecar.agent.event_log.editor_port import ApplyAnswer
from kode_sidecar.core.text.text_lines import PositionEncoding
from tests.support.edit_buffer import Buffer, ChangeStyle


@dataclass(frozen=True)
class Manners:
    """`stale` is what it says to an edit of another version: `yes` is a lie, `no` the truth.

    `first_version` is that of a document just opened; with 0 the version of an edit is not looked
    at. `syncs_lf`: it tells texts with LF whatever the file has.
    """

    encoding: PositionEncoding
    first_version: int
    style: ChangeStyle
    stale: Literal["yes", "no", "reason", "error"]
    ignores_zero: bool = False
    syncs_lf: bool = False


EDITORS: dict[str, Manners] = {
    "plain": Manners("utf-16", 1, "minimal", "reason"),
    "neovim": Manners("utf-16", 0, "minimal", "yes", ignores_zero=True),
    "neovim-0.12": Manners("utf-8", 0, "one_span", "yes", ignores_zero=True),
    "vscode-9": Manners("utf-16", 1, "descending", "no"),
    "vscode-11": Manners("utf-16", 1, "whole", "no"),
    "eglot": Manners("utf-32", 0, "minimal", "error", syncs_lf=True),
    "helix": Manners("utf-8", 0, "descending", "reason"),
}

_ANSWERS = {
    "yes": ApplyAnswer(True),
    "no": ApplyAnswer(False),
    "reason": ApplyAnswer(False, "the document has changed"),
    "error": ApplyAnswer(False, "jsonrpc-error: wrong version"),
}


def is_stale(manners: Manners, buffer: Buffer, version: int | None) -> bool:
    """Return whether the editor refuses an edit for that version."""
    if version is None or version == buffer.version:
        return False
    return not (manners.ignores_zero and version == 0)


def answer_to_stale(manners: Manners) -> ApplyAnswer:
    """Return what the editor says to an edit that it did not do."""
    return _ANSWERS[manners.stale]
