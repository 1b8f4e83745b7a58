"""The program under test: the source, or the built one that `KODE_TEST_EXE` names.

Tests over it carry the mark `program`; `dev.py exe --test` runs those on the built one.
"""

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

BUILT = os.environ.get("KODE_TEST_EXE")
"""The path of the built program, if that is to be tested."""

PROGRAM = [BUILT] if BUILT else [sys.executable, "-m", "kode_sidecar"]
SERVE = [*PROGRAM, "serve"]
