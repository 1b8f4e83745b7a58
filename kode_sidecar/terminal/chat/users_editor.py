"""Opens a text in the user's own editor."""

import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from prompt_toolkit.application import run_in_terminal

_USUAL = ("/usr/bin/editor", "/usr/bin/nano", "/usr/bin/pico", "/usr/bin/vi", "/usr/bin/emacs")
_SUFFIX = re.compile(r"\.[A-Za-z0-9_]{1,16}")
_BOM = "\ufeff"


def editor_commands(environ: Mapping[str, str], platform: str) -> list[list[str]]:
    """Return the commands that may start an editor, in the order to try them.

    A value of VISUAL or EDITOR is a program, or a command with arguments. On Windows a backslash
    is a plain character, and a path with blanks needs quotes.
    """
    windows = platform == "win32"
    commands: list[list[str]] = []
    for said in filter(
        None, (environ.get("VISUAL", "").strip(), environ.get("EDITOR", "").strip())
    ):
        if shutil.which(said):
            commands.append([said])
        elif windows:
            words = [word.strip('"') for word in shlex.split(said, posix=False)]
            # A script can be started only by its full name (`code.cmd`).
            commands.append([shutil.which(words[0]) or words[0], *words[1:]])
        else:
            commands.append(shlex.split(said))
    return [*commands, *([["notepad"]] if windows else [[program] for program in _USUAL])]


async def edit_text(text: str, suffix: str, environ: Mapping[str, str]) -> str | None:
    """Return a text after the user has edited it, without a final line end.

    None: no editor could be started, it ended with an error, or it wrote no valid text. `suffix`
    is that of the file, for the editor's colours. Await it while the input line is drawn.
    """
    commands = editor_commands(environ, sys.platform)
    with TemporaryDirectory(prefix="kode-", ignore_cleanup_errors=True) as folder:
        # The suffix may come from the model, and an editor may be a script.
        file = Path(folder, "text" + (suffix if _SUFFIX.fullmatch(suffix) else ""))
        file.write_bytes(_as_here(text).encode())
        if not await run_in_terminal(lambda: _edited(file, commands), in_executor=True):
            return None
        try:
            edited = file.read_bytes().decode()
        except (OSError, UnicodeDecodeError):
            return None
    if sys.platform == "win32":
        edited = edited.replace("\r\n", "\n")
    if not text.startswith(_BOM):  # added by Notepad
        edited = edited.removeprefix(_BOM)
    return edited.removesuffix("\n")


def _as_here(text: str) -> str:
    """Return the text with the system's line ends: Notepad before 2018 knows no others."""
    return text.replace("\n", "\r\n") if sys.platform == "win32" else text


def _edited(file: Path, commands: Sequence[Sequence[str]]) -> bool:
    for command in commands:
        try:
            return subprocess.call([*command, str(file)]) == 0
        except OSError:
            continue
    return False
