"""Keys and colours of a Windows console, with or without escape sequences.

Consoles before Windows 10, in legacy mode and in Wine have none. The classes exist on Windows only.
"""

import sys
from collections.abc import Sequence

from prompt_toolkit.formatted_text import ANSI
from prompt_toolkit.key_binding.key_processor import KeyPress
from prompt_toolkit.keys import Keys
from prompt_toolkit.renderer import print_formatted_text
from prompt_toolkit.styles import Style

_ENTER = (Keys.ControlM, Keys.ControlJ)


def as_paste(keys: Sequence[KeyPress]) -> Sequence[KeyPress]:
    """Return keys that arrived together as one paste, if they are text with an Enter inside.

    Not every console marks a paste (bracketed paste); otherwise each line would become a prompt.
    """
    text = [key for key in keys if not isinstance(key.key, Keys)]
    plain = [*_ENTER, Keys.ControlI]
    if not text or any(isinstance(key.key, Keys) and key.key not in plain for key in keys):
        return keys
    if all(key.key not in _ENTER for key in keys[:-1]):
        return keys
    return [KeyPress(Keys.BracketedPaste, "".join(key.data for key in keys))]


if sys.platform == "win32":
    from prompt_toolkit.input.win32 import ConsoleInputReader, Win32Input
    from prompt_toolkit.output.win32 import Win32Output

    class ConsoleInput(Win32Input):
        """Reads keys as escape sequences, if the console has them, and detects pastes."""

        def read_keys(self) -> list[KeyPress]:
            """Return the keys typed since the last call."""
            return list(as_paste(super().read_keys()))

    class PlainConsoleInput(ConsoleInput):
        """Reads keys as records: Wine promises escape sequences but sends none."""

        def __init__(self) -> None:
            super().__init__()
            self._use_virtual_terminal_input = False
            self.console_input_reader = ConsoleInputReader(recognize_paste=False)

    class PlainConsoleOutput(Win32Output):
        """Turns the colours of printed text into console attributes."""

        def write_raw(self, data: str) -> None:
            """Write text with styles as escape sequences."""
            print_formatted_text(self, ANSI(data), Style([]))
