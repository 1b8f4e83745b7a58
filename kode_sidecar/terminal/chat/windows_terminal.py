"""Keys and colours of a Windows console, with escape sequences or without them.

Without: before Windows 10, in legacy mode, in Wine. The classes are there on Windows alone.
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
    """Return keys that came at once as one paste, if they are text with an Enter before its end.

    Not every console marks a paste (bracketed paste), and each line would be a prompt.
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
        """Keys as sequences where there are some, and pastes as such."""

        def read_keys(self) -> list[KeyPress]:
            """Return what was typed since."""
            return list(as_paste(super().read_keys()))

    class PlainConsoleInput(ConsoleInput):
        """Keys as records. Wine would promise sequences and send none."""

        def __init__(self) -> None:
            super().__init__()
            self._use_virtual_terminal_input = False
            self.console_input_reader = ConsoleInputReader(recognize_paste=False)

    class PlainConsoleOutput(Win32Output):
        """Colours in what is printed become attributes of the console."""

        def write_raw(self, data: str) -> None:
            """Write text with styles as escape sequences."""
            print_formatted_text(self, ANSI(data), Style([]))
