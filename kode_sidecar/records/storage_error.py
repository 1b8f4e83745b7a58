"""What a failing disk means to the user. The state folder's own path is never named."""

import errno

from kode_sidecar.errors import KodeError

_WRITABLE = "make the state folder writable, or set KODE_HOME to a folder that is"
_FULL = "free some space on the disk of the state folder and try again"
_ADVICE: dict[int, str] = {
    errno.ENOSPC: _FULL,
    getattr(errno, "EDQUOT", errno.ENOSPC): _FULL,
    errno.EFBIG: _FULL,
    errno.EACCES: _WRITABLE,
    errno.EPERM: _WRITABLE,
    errno.EROFS: _WRITABLE,
    errno.EMFILE: "close some sessions or raise the limit of open files",
    errno.ENFILE: "close some sessions or raise the limit of open files",
    errno.EIO: "check the disk of the state folder; it reports errors",
    errno.ENOENT: "the state folder was moved or deleted; restart the sidecar",
}


def not_saved(name: str, error: OSError) -> KodeError:
    """A write or fsync of the file `name` failed."""
    return KodeError("Storage", f"not saved: {name}: {_reason(error)}")


def not_read(name: str, error: OSError) -> KodeError:
    """The file `name` could not be read."""
    return KodeError("Storage", f"not readable: {name}: {_reason(error)}")


def _reason(error: OSError) -> str:
    what = error.strerror or type(error).__name__
    advice = _ADVICE.get(error.errno or 0, "check the disk of the state folder and try again")
    return f"{what}; {advice}"
