"""File URIs (RFC 8089) to paths and back, with both spellings of a Windows drive."""

import os
import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

_DRIVE = re.compile(r"/[A-Za-z]:")


def uri_of(path: str | os.PathLike[str]) -> str:
    """The file URI of a path. Relative paths start at the working directory."""
    return Path(path).absolute().as_uri()


def path_of(uri: str) -> Path:
    """The path of a file URI. Raises ValueError for another scheme."""
    parts = urlsplit(uri)
    if parts.scheme != "file":
        raise ValueError(f"{uri} is no file URI")
    path = unquote(parts.path)
    if parts.netloc and parts.netloc != "localhost":
        path = f"//{parts.netloc}{path}"
    elif _DRIVE.match(path):
        path = path[1:]
    return Path(path)


def uri_key(uri: str) -> str:
    """Equal for two spellings of one document: escapes resolved, the drive letter small."""
    parts = urlsplit(uri)
    path = unquote(parts.path)
    if _DRIVE.match(path):
        path = path[:2].lower() + path[2:]
    return f"{parts.scheme}://{parts.netloc}{path}"
