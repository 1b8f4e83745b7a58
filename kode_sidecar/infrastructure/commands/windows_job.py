"""Job objects of Windows, which end processes together with all their descendants.

The processes in a job end when its last handle is closed, which happens at the latest when the
process that made the job is gone. Source: Win32, "Job Objects".
"""

import sys

from kode_sidecar.errors import KodeError

if sys.platform == "win32":
    import ctypes
    from ctypes import wintypes

    _EXTENDED_LIMIT_INFORMATION = 9
    _KILL_ON_JOB_CLOSE = 0x2000
    # PROCESS_TERMINATE, PROCESS_SET_QUOTA, PROCESS_SUSPEND_RESUME
    _RIGHTS = 0x0001 | 0x0100 | 0x0800

    class _BasicLimits(ctypes.Structure):
        _fields_ = (
            ("per_process_user_time_limit", ctypes.c_int64),
            ("per_job_user_time_limit", ctypes.c_int64),
            ("limit_flags", wintypes.DWORD),
            ("minimum_working_set_size", ctypes.c_size_t),
            ("maximum_working_set_size", ctypes.c_size_t),
            ("active_process_limit", wintypes.DWORD),
            ("affinity", ctypes.c_size_t),
            ("priority_class", wintypes.DWORD),
            ("scheduling_class", wintypes.DWORD),
        )

    class _ExtendedLimits(ctypes.Structure):
        _fields_ = (
            ("basic", _BasicLimits),
            ("io_counters", ctypes.c_uint64 * 6),
            ("process_memory_limit", ctypes.c_size_t),
            ("job_memory_limit", ctypes.c_size_t),
            ("peak_process_memory_used", ctypes.c_size_t),
            ("peak_job_memory_used", ctypes.c_size_t),
        )

    def _kernel() -> ctypes.WinDLL:
        kernel = ctypes.WinDLL("kernel32", use_last_error=True)
        kernel.CreateJobObjectW.restype = wintypes.HANDLE
        kernel.CreateJobObjectW.argtypes = (ctypes.c_void_p, wintypes.LPCWSTR)
        kernel.SetInformationJobObject.argtypes = (
            wintypes.HANDLE,
            ctypes.c_int,
            ctypes.c_void_p,
            wintypes.DWORD,
        )
        kernel.GetCurrentProcess.restype = wintypes.HANDLE
        kernel.OpenProcess.restype = wintypes.HANDLE
        kernel.OpenProcess.argtypes = (wintypes.DWORD, wintypes.BOOL, wintypes.DWORD)
        kernel.AssignProcessToJobObject.argtypes = (wintypes.HANDLE, wintypes.HANDLE)
        kernel.TerminateJobObject.argtypes = (wintypes.HANDLE, wintypes.UINT)
        kernel.TerminateProcess.argtypes = (wintypes.HANDLE, wintypes.UINT)
        kernel.CloseHandle.argtypes = (wintypes.HANDLE,)
        return kernel

    def _new_job(kernel: ctypes.WinDLL) -> int | None:
        """Make a job that ends its processes when it is closed; None if Windows refuses."""
        job: int | None = kernel.CreateJobObjectW(None, None)
        limits = _ExtendedLimits()
        limits.basic.limit_flags = _KILL_ON_JOB_CLOSE
        size = ctypes.sizeof(limits)
        if job and not kernel.SetInformationJobObject(
            job, _EXTENDED_LIMIT_INFORMATION, ctypes.byref(limits), size
        ):
            kernel.CloseHandle(job)
            return None
        return job


def tie_children() -> None:
    """Make every process started from now on end with this one; best effort.

    Does nothing on systems other than Windows: there children end with their pipes.
    """
    if sys.platform == "win32":
        kernel = _kernel()
        if job := _new_job(kernel):  # never closed: the system does it when this process ends
            kernel.AssignProcessToJobObject(job, kernel.GetCurrentProcess())


class WindowsJob:
    """The job of one process, which was started suspended so that it has no child yet.

    Creating the job resumes the process. Raises KodeError `ToolFailed` after killing the process.
    """

    def __init__(self, process_id: int) -> None:
        if sys.platform == "win32":
            self._kernel = _kernel()
            self._job = _new_job(self._kernel)
            process = self._kernel.OpenProcess(_RIGHTS, False, process_id)
            try:
                if not self._take_in(process):
                    self._kernel.TerminateProcess(process, 1)
                    self.kill()
                    raise KodeError("ToolFailed", "Windows gave no job object for the command.")
            finally:
                self._kernel.CloseHandle(process)

    def kill(self) -> None:
        """End all processes of the job, at once."""
        if sys.platform == "win32" and self._job:
            self._kernel.TerminateJobObject(self._job, 1)
            self._kernel.CloseHandle(self._job)
            self._job = None

    if sys.platform == "win32":

        def _take_in(self, process: int) -> bool:
            resume = ctypes.WinDLL("ntdll").NtResumeProcess
            resume.argtypes = (wintypes.HANDLE,)
            return bool(
                self._job
                and process
                and self._kernel.AssignProcessToJobObject(self._job, process)
                and resume(process) == 0
            )
