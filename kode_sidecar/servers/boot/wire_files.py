"""Reads the files of the wire contract that came with this installation.

`python3 dev.py protocol` generates them from the wire types. A frozen program stores them
compressed: they are large and seldom asked for.
"""

import sys
import zlib
from pathlib import Path

from kode_sidecar.errors import KodeError

SCHEMA_FILE = "schema.json"
WIRE_FILES = (SCHEMA_FILE, "kode.d.ts", "kode.lua", "methods.md")
ACP_SCHEMA = "acp.schema.json"
ACP_FILES = (ACP_SCHEMA, "acp.NOTICE.md")
"""The published schema of the Agent Client Protocol, and where it comes from."""

COMPRESSED = ".z"
"""The suffix of the compressed files in a frozen program."""


def wire_file(name: str) -> bytes:
    """Return one of these files. Raises KodeError `InternalError` where it is missing."""
    package = Path(__file__).resolve().parents[2]
    # PyInstaller unpacks data files below `sys._MEIPASS`.
    unpacked: str | None = getattr(sys, "_MEIPASS", None)
    try:
        if unpacked is not None:
            packed = Path(unpacked, "protocol", name + COMPRESSED).read_bytes()
            return zlib.decompress(packed)
        shipped = package / "_protocol"
        folder = shipped if shipped.is_dir() else package.parent / "protocol"
        return (folder / name).read_bytes()
    except (OSError, zlib.error):
        text = f"{name} is missing from this installation; install kode-sidecar again."
        raise KodeError("InternalError", text) from None
