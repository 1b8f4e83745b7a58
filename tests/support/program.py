"""The program under test: the source, or the built one that `KODE_TEST_EXE` names.

Tests over it carry the mark `program`, all of `PROGRAM_FOLDERS` by themselves; `dev.py exe --test`
runs those on the built one.
"""

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

_named = os.environ.get("KODE_TEST_EXE")
BUILT = os.path.abspath(_named) if _named else None
"""The built program, if that is to be tested."""

ONE_FILE = BUILT is not None and not os.path.isdir(
    os.path.join(os.path.dirname(BUILT), "_internal")
)
"""Is that program a single file, which unpacks itself and starts a second process?"""

PROGRAM = [BUILT] if BUILT else [sys.executable, "-m", "kode_sidecar"]
SERVE = [*PROGRAM, "serve"]

PROGRAM_FOLDERS = frozenset({"process", "exe", "editors", "transcripts"})
"""Folders below `tests` where every test is over the program."""
