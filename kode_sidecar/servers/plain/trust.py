"""Whether the open folders are trusted: a plain client cannot say it, so its user does."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from kode_sidecar.agent.context.project_notes import NOTE_FILES
from kode_sidecar.errors import KodeError
from kode_sidecar.servers.plain.editor import PlainEditor
from kode_sidecar.servers.plain.texts import Texts

_MATTERS = (*NOTE_FILES, ".agents", ".kode")
"""What is read from a trusted folder only; without any of it there is nothing to ask."""


class TrustedFolders(NamedTuple):
    """The open folders, whether the user trusts them, and how to say that they do."""

    roots: Callable[[], Sequence[Path]]
    trusted: Callable[[], bool]
    trust: Callable[[bool], None]


class TrustQuestion:
    """Asks once, before the first prompt, where the answer makes a difference."""

    def __init__(
        self,
        folders: TrustedFolders,
        editor: PlainEditor,
        texts: Texts,
    ) -> None:
        self._folders = folders
        self._editor = editor
        self._texts = texts
        self._asked = False

    async def ask_once(self) -> None:
        """Ask, unless the settings name the folders or nothing in them needs trust."""
        roots = [
            root
            for root in self._folders.roots()
            if any(os.path.exists(root / name) for name in _MATTERS)
        ]
        if self._asked or self._folders.trusted() or not roots:
            return
        self._asked = True
        yes = self._texts("trust_yes")
        question = self._texts("trust", folder=", ".join(map(str, roots)))
        try:
            answer = await self._editor.choose(question, (self._texts("trust_no"), yes))
        except KodeError:
            return
        if answer == yes:
            self._folders.trust(True)
