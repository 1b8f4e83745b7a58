"""A Windows console that knows no escape sequences: before Windows 10, in legacy mode, in Wine.

It is empty elsewhere than on Windows.
"""

import sys

from prompt_toolkit.formatted_text import ANSI
from prompt_toolkit.renderer import print_formatted_text
from prompt_toolkit.styles import Style

if sys.platform == "win32":
    from prompt_toolkit.input.win32 import ConsoleInputReader, Win32Input
    from prompt_toolkit.output.win32 import Win32Output

    class PlainConsoleInput(Win32Input):
        """Keys as records. Wine would promise sequences and send none."""

        def __init__(self) -> None:
            super().__init__()
            self._use_virtual_terminal_input = False
            self.console_input_reader = ConsoleInputReader()

    class PlainConsoleOutput(Win32Output):
        """Colours in what is printed become attributes of the console."""

        def write_raw(self, data: str) -> None:
            """Write text with styles as escape sequences."""
            print_formatted_text(self, ANSI(data), Style([]))
