"""Handles pastes and mentions: long pasted texts become one word, files become attachments."""

import base64
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kode_sidecar.core.text.shown_text import without_controls
from kode_sidecar.core.text.uris import path_to_uri
from kode_sidecar.terminal.chat.words import Words

IMAGES = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
}
MOST_IMAGE_BYTES = 10_000_000
_LONG = 800
_MANY_LINES = 8
_MENTION = re.compile(r"(?<!\S)@(?:\"([^\"\n]+)\"|(\S+))")


@dataclass
class Pastes:
    """Replaces long pasted texts in the line by a word, such as `[pasted 1: 400 lines]`."""

    words: Words
    _texts: dict[str, str] = field(default_factory=dict[str, str])

    def taken(self, data: str) -> str:
        """Return what the line shows for pasted data; a dropped image becomes a mention."""
        text = without_controls(data.replace("\r\n", "\n").replace("\r", "\n"))
        if (image := _image_path(text)) is not None:
            return mention(str(image)) + " "
        lines = text.count("\n") + 1
        if len(text) <= _LONG and lines <= _MANY_LINES:
            return text
        word = self.words.pasted.format(number=len(self._texts) + 1, lines=f"{lines:,}")
        self._texts[word] = text
        return word

    def contracted(self, text: str) -> str:
        """Return a text with its pasted parts replaced by their words again."""
        for word, pasted in self._texts.items():
            text = text.replace(pasted, word)
        return text

    def expanded(self, line: str) -> str:
        """Return the line with its words replaced by the pasted texts."""
        for word, text in self._texts.items():
            line = line.replace(word, text)
        return line


def mention(path: str) -> str:
    """Return the mention of a file in a prompt."""
    return f'@"{path}"' if re.search(r"\s", path) else f"@{path}"


def prompt_blocks(text: str, root: Path) -> tuple[list[dict[str, Any]], list[str]]:
    """Return a prompt as content blocks, and the images that could not be read.

    A mentioned image is sent with its data, any other file by its URI: the model reads it as the
    editor shows it, under the model's own rules.
    """
    blocks: list[dict[str, Any]] = [{"type": "text", "text": text}]
    unread: list[str] = []
    for path in _mentioned(text, root):
        kind = IMAGES.get(path.suffix.lower())
        try:
            if kind is None:
                blocks.append({"type": "resource", "uri": path_to_uri(path)})
            elif path.stat().st_size <= MOST_IMAGE_BYTES:
                data = base64.b64encode(path.read_bytes()).decode()
                blocks.append({"type": "image", "mediaType": kind, "data": data})
            else:
                unread.append(str(path))
        except OSError:
            unread.append(str(path))
    return blocks, unread


def _mentioned(text: str, root: Path) -> Sequence[Path]:
    found: dict[Path, None] = {}
    for quoted, plain in _MENTION.findall(text):
        for name in (quoted or plain, (quoted or plain).rstrip(".,;:!?)]，。；：！？）")):
            path = (root / name).absolute()
            try:
                is_file = path.is_file()
            except (OSError, ValueError):
                continue
            if is_file:
                found[path] = None
                break
    return list(found)


def _image_path(text: str) -> Path | None:
    """Return the image that a terminal names when a file is dropped on it."""
    name = text.strip().strip("'\"").replace("\\ ", " ").removeprefix("file://")
    if "\n" in name or len(name) > 4_000:
        return None
    path = Path(name)
    try:
        known = path.suffix.lower() in IMAGES and path.is_absolute() and path.is_file()
    except (OSError, ValueError):
        return None
    return path if known else None
