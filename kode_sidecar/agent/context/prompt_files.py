"""Read the texts for the model from `prompts/{zh,en}/{name}.md`, which users may edit (A16)."""

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from string import Template

from kode_sidecar.core.domain.event_parts import Locale
from kode_sidecar.errors import KodeError


def find_prompts() -> Path:
    """Return the prompts folder of this installation: exe, wheel or checkout.

    Raises KodeError `ConfigInvalid` if there is none.
    """
    package = Path(__file__).resolve().parents[2]
    # PyInstaller unpacks data files below `sys._MEIPASS`.
    unpacked: str | None = getattr(sys, "_MEIPASS", None)
    places = [Path(unpacked) / "prompts"] if unpacked else []
    places += [package / "_prompts", package.parent / "prompts"]
    for place in places:
        if (place / "en").is_dir():
            return place
    text = "The prompt files are missing from this installation; install kode-sidecar again."
    raise KodeError("ConfigInvalid", text)


class PromptFiles:
    """Prompts in one language, read on demand: an edited file takes effect without a restart.

    A file of the user's own folder, `{own}/{locale}/{name}.md`, replaces ours. An unchanged
    file (by time and size) is not read again, nor filled again with the same values.
    """

    def __init__(self, folder: Path, locale: Locale, own: Path | None = None) -> None:
        self._parent = folder
        self._own = own
        self._folders = [str(one / locale) for one in (own, folder) if one is not None]
        self._locale = locale
        self._known: dict[str, tuple[tuple[str, int, int], str]] = {}
        self._newest: dict[str, tuple[str, dict[str, str], str]] = {}

    def speak(self, locale: Locale) -> None:
        """Switch to the texts of this language."""
        if locale != self._locale:
            self.__init__(self._parent, locale, self._own)

    def in_locale(self, locale: Locale) -> "PromptFiles":
        """Return these prompts in a language."""
        return self if locale == self._locale else PromptFiles(self._parent, locale, self._own)

    def names(self, folder: str) -> Sequence[str]:
        """Return the names of the prompts in a folder of these, sorted; `read` takes them."""
        names = os.listdir(f"{self._folders[-1]}{os.sep}{folder}")
        return sorted(name.removesuffix(".md") for name in names if name.endswith(".md"))

    def read(self, name: str, values: Mapping[str, str] | None = None) -> str:
        """Return the text of `{name}.md`, without outer blank lines.

        With `values` each `$name` in it is replaced; `$$` is a dollar sign.
        Raises KodeError `ConfigInvalid`.
        """
        label = f"prompts/{self._locale}/{name}.md"
        try:
            text = self._text(name)
        except FileNotFoundError:
            hint = f"The prompt file {label} is missing; restore it or install kode-sidecar again."
            raise KodeError("ConfigInvalid", hint) from None
        except (OSError, UnicodeDecodeError):
            hint = f"The prompt file {label} is not readable as UTF-8; fix it."
            raise KodeError("ConfigInvalid", hint) from None
        if values is None:
            return text
        try:
            return self._filled(name, text, values)
        except KeyError as error:
            hint = f"{label} uses ${error.args[0]}, which has no value; known: {', '.join(values)}."
            raise KodeError("ConfigInvalid", hint) from None
        except ValueError:
            hint = f"{label} holds a lone $; write $$ for a dollar sign."
            raise KodeError("ConfigInvalid", hint) from None

    def _text(self, name: str) -> str:
        path, status = self._place(name)
        state = (path, status.st_mtime_ns, status.st_size)
        known = self._known.get(name)
        if known is None or known[0] != state:
            text = Path(path).read_text(encoding="utf-8-sig").strip()
            known = self._known[name] = (state, text)
        return known[1]

    def _place(self, name: str) -> tuple[str, os.stat_result]:
        """Return the file of a prompt, the user's own first. Raises OSError."""
        *own, path = (f"{folder}{os.sep}{name}.md" for folder in self._folders)
        for one in own:
            try:
                return one, os.stat(one)
            except (FileNotFoundError, NotADirectoryError):
                pass
        return path, os.stat(path)

    def _filled(self, name: str, text: str, values: Mapping[str, str]) -> str:
        newest = self._newest.get(name)
        if newest is None or newest[0] is not text or newest[1] != values:
            newest = (text, dict(values), Template(text).substitute(values))
            self._newest[name] = newest
        return newest[2]
