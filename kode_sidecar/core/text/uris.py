"""URIs of documents: one canonical key per document, and the way to a path and back.

Editors spell one file in many ways: `file:///c%3A/a.py`, `file:///C:/a.py` and
`file:///c:/a.py` are one document on every platform. Source: RFC 3986, RFC 8089.
"""

import os
import re
from collections.abc import Collection
from functools import lru_cache
from pathlib import Path
from urllib.parse import SplitResult, quote, unquote, urlsplit

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")
_DRIVE = re.compile(r"/[A-Za-z][:|](?=[/\\]|$)")
_RESOURCE = re.compile(r"(?<!\S)@([\w.-]+):(\S+)")
_AFTER_WORDS = ".,;:!?)]，。；：！？）"
_SAFE = "/:!$&'()*+,;=@"
# No blanks, control characters, look-alike letters, or backslashes, which browsers turn into `/`.
_WEB = re.compile(r"https?://[!-\[\]-~]{1,8000}", re.IGNORECASE)


@lru_cache(1024)  # asked for at every event of a document
def canonical_key(uri: str) -> str:
    """Return the one spelling under which a document is known; a key is its own key.

    Only `file` URIs are touched: scheme and host in lower case, drive letter in lower case,
    percent-encoding only where it is needed. `untitled:` and all others stay verbatim.
    """
    parts = _file_parts(uri)
    if parts is None:
        return uri
    authority, path = parts
    if _DRIVE.match(path):
        path = path[:2].lower() + ":" + path[3:]
    return f"file://{authority}{quote(path, _SAFE, errors='surrogateescape')}"


def folder_key(uri: str) -> str:
    """Return the canonical key of a folder, with or without a slash at its end."""
    return canonical_key(uri).rstrip("/")


def uri_to_path(uri: str) -> Path | None:
    """The path of a `file` URI; None for other schemes, and for a host where none can be named."""
    name = file_name(uri, windows=os.name == "nt")
    return None if name is None else Path(name)


def file_path(uri: str) -> Path:
    """Return the path of a `file` URI. Raises ValueError for any other."""
    path = uri_to_path(uri)
    if path is None:
        raise ValueError(f"{uri} is no URI of a file here")
    return path


def web_address(url: str) -> SplitResult | None:
    """Return the parts of a web address, None if it is none, or if a user's name hides its host."""
    try:
        parts = urlsplit(url)
        valid = bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        return None
    return parts if valid and parts.username is None and _WEB.fullmatch(url) else None


def path_to_uri(path: str | os.PathLike[str]) -> str:
    """Return the `file` URI of an absolute path."""
    name = os.fspath(path)
    drive = re.match(r"[A-Za-z]:(?=[/\\]|$)", name)
    if drive or name.startswith("\\\\"):
        name = name.replace("\\", "/")
    prefix = "file:///" if drive else "file:" if name.startswith("//") else "file://"
    return prefix + quote(name, _SAFE, errors="surrogateescape")


def named_resources(text: str, servers: Collection[str]) -> list[tuple[str, str]]:
    """Return server and URI of each `@server:uri` in a prompt, of servers that are known."""
    found = ((name, uri.rstrip(_AFTER_WORDS)) for name, uri in _RESOURCE.findall(text))
    return [one for one in dict.fromkeys(found) if one[0] in servers and one[1]]


def file_name(uri: str, *, windows: bool) -> str | None:
    """Return the file name of a `file` URI in the spelling of Windows or POSIX."""
    parts = _file_parts(uri)
    if parts is None:
        return None
    authority, path = parts
    if not windows:
        return path if not authority else None
    if authority:
        return f"//{authority}{path}".replace("/", "\\")
    if _DRIVE.match(path):
        path = f"{path[1]}:{path[3:] or '/'}"
    return path.replace("/", "\\")


@lru_cache(1024)
def _file_parts(uri: str) -> tuple[str, str] | None:
    """Host and decoded path of a `file` URI. `#` and `?` are part of the name."""
    scheme = _SCHEME.match(uri)
    if scheme is None or scheme[1].lower() != "file":
        return None
    rest = uri[scheme.end() :]
    authority = ""
    if rest.startswith("//"):
        authority, slash, tail = rest[2:].partition("/")
        rest = slash + tail
    authority = unquote(authority).lower()
    path = unquote(rest, errors="surrogateescape") or "/"
    path = path if path.startswith("/") else "/" + path
    if _DRIVE.match(path) or authority:
        path = path.replace("\\", "/")
    return ("" if authority == "localhost" else authority), path
