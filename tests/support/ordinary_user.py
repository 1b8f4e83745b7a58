"""A user without rights, for tests that root runs: some promises hold for one of the two only."""

import os
import shlex
import stat
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.support.foreign import require
from tests.support.program import ROOT

NOBODY = 65534


def as_nobody(folder: Path) -> Sequence[str]:
    """Return how a command line begins that root runs as a user without rights.

    That user sees our Python and the project even where they lie in a home that is closed to it;
    mounts of its own have those open, and nothing else of the home. `folder` is an empty one.
    """
    user = f"--reuid={NOBODY} --regid={NOBODY} --clear-groups"
    lines = ["set -e"]
    wanted = [Path(os.path.realpath(one)) for one in (sys.base_prefix, sys.prefix, ROOT)]
    closed = {place for place in map(_closed, wanted) if place is not None}
    shown = [one for one in dict.fromkeys(wanted) if _closed(one) in closed]
    for number, place in enumerate(shown):
        aside = folder / str(number)
        aside.mkdir(parents=True)
        lines.append(f"mount --bind {shlex.quote(str(place))} {aside}")
    lines += [f"mount -t tmpfs -o mode=755 none {shlex.quote(str(place))}" for place in closed]
    for number, place in enumerate(shown):
        quoted = shlex.quote(str(place))
        lines.append(f"mkdir -p {quoted} && mount --bind {folder / str(number)} {quoted}")
    lines.append(f'exec {require("setpriv")} {user} -- "$@"')
    return [require("unshare"), "-m", "/bin/sh", "-c", "\n".join(lines), "sh"]


def _closed(place: Path) -> Path | None:
    """Return the outermost folder on the way there that only some may enter."""
    for one in reversed((place, *place.parents)):
        if not os.stat(one).st_mode & stat.S_IXOTH:
            return one
    return None


def give_to_nobody(folder: Path) -> None:
    """Make all of it that user's."""
    for place, folders, files in os.walk(folder):
        for name in (".", *folders, *files):
            os.chown(os.path.join(place, name), NOBODY, NOBODY, follow_symlinks=False)
