"""The power fails for all threads at one instant: what was told is kept, and nothing more runs."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.program import ROOT

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs fork and /proc")

BUSY = """
import os, sys, threading
from pathlib import Path
from tests.support.disk_faults import DiskFaults

home, kind = Path(sys.argv[1]), sys.argv[2]
folder = home / "conversations"
FILES = 300  # an image of so many takes its time

def sync(path):
    fd = os.open(path, os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)

def write_on():
    fd = os.open(folder / "log", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    sync(folder)
    number = 0
    while True:
        number += 1
        os.write(fd, b"%d\\n" % number)
        os.fsync(fd)
        os.write(1, b"%d\\n" % number)

def make_folders():
    number = 0
    while True:
        number += 1
        (folder / f"new-{number}").mkdir(parents=True, exist_ok=True)

folder.mkdir(parents=True)
for number in range(FILES):
    (folder / str(number)).write_text("kept")
faults = DiskFaults(str(folder), 600, kind)
faults.install()
for work in (write_on, make_folders):
    threading.Thread(target=work, daemon=True).start()
while True:
    sync(folder / "1")
"""


@pytest.mark.parametrize("kind", ["cut", "cut-zeros"])
def test_nothing_goes_on_while_the_power_fails(tmp_path: Path, kind: str) -> None:
    home = tmp_path / "home"
    done = subprocess.run(
        [sys.executable, "-c", BUSY, str(home), kind],
        env={"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        check=False,
        timeout=60,
    )
    assert done.returncode == -9
    reported = done.stdout.split()
    survived = (home / "conversations" / "log").read_bytes().rstrip(b"\0").split()
    assert len(reported) > 10
    assert survived[: len(reported)] == reported, "what was told to be saved is gone"
    assert (home / "conversations" / "1").read_text() == "kept"
