"""Put on PYTHONPATH, this lets any process of the user attach to a Python process.

Linux with Yama (`ptrace_scope` 1) otherwise wants root for a profiler; see prctl(2).
"""

import ctypes
import sys

_PR_SET_PTRACER = 0x59616D61
_PR_SET_PTRACER_ANY = ctypes.c_ulong(-1)

if sys.platform == "linux":
    ctypes.CDLL(None).prctl(_PR_SET_PTRACER, _PR_SET_PTRACER_ANY, 0, 0, 0)
