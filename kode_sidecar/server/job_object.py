"""On Windows: no child outlives us, however we end.

A job object with "kill on close" holds this process and so everything it starts; the system closes
our handle of it with the process. Elsewhere children end with their pipes. Source: Microsoft, Job
Objects; processes may be in several since Windows 8.
"""

import sys

if sys.platform == "win32":
    import ctypes

    _EXTENDED_LIMITS = 9  # JobObjectExtendedLimitInformation
    _KILL_ON_CLOSE = 0x2000

    class _Limits(ctypes.Structure):
        """JOBOBJECT_EXTENDED_LIMIT_INFORMATION; all but the flags stays zero."""

        _fields_ = (
            ("times", ctypes.c_int64 * 2),
            ("flags", ctypes.c_uint32),
            ("working_set", ctypes.c_size_t * 2),
            ("processes", ctypes.c_uint32),
            ("affinity", ctypes.c_size_t),
            ("priorities", ctypes.c_uint32 * 2),
            ("io_counters", ctypes.c_uint64 * 6),
            ("memory", ctypes.c_size_t * 4),
        )

    def tie_children() -> None:
        """Have all processes started from now on end with this one; best effort."""
        kernel = ctypes.WinDLL("kernel32")
        kernel.CreateJobObjectW.restype = ctypes.c_void_p
        kernel.GetCurrentProcess.restype = ctypes.c_void_p
        job = ctypes.c_void_p(kernel.CreateJobObjectW(None, None))
        limits = _Limits(flags=_KILL_ON_CLOSE)
        size = ctypes.sizeof(limits)
        if kernel.SetInformationJobObject(job, _EXTENDED_LIMITS, ctypes.byref(limits), size):
            kernel.AssignProcessToJobObject(job, ctypes.c_void_p(kernel.GetCurrentProcess()))
else:

    def tie_children() -> None:
        """Nothing: the pipes of a child end with this process."""
