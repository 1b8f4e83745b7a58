"""What an editor under test said and heard, recorded by its sidecar and judged by `grade`."""

import re
from collections.abc import Sequence
from pathlib import Path

from kode_sidecar.core.text.uris import path_to_uri
from kode_sidecar.devtools.grading.rules import verdicts
from kode_sidecar.devtools.grading.talk import Talk
from kode_sidecar.devtools.recording import read_recording
from tests.support.program import SERVE
from tests.support.transcripts import PLACE, tidy

TALKS = Path(__file__).parent / "talks"


def recorded(folder: Path, *, greased: bool = True) -> list[str]:
    """The command line of a sidecar that records into `folder`, and says what no server says.

    What is not `greased` can be played.
    """
    folder.mkdir(parents=True, exist_ok=True)
    return [*SERVE, "--record", str(folder / "talk.jsonl"), *(["--grease"] if greased else [])]


def keep(editor: str, tape: Path, project: Path) -> None:
    """Keep a recording of an editor in `talks`, without its place and its times.

    Neovim writes URIs in its own way: small letters in escapes, escaped slashes.
    """
    reported, place = tidy(tape, project), f"file://{PLACE}"
    uri = re.sub("%..", lambda escape: escape[0].lower(), path_to_uri(project))
    reported = reported.replace(uri, place).replace(
        uri.replace("/", r"\/"), place.replace("/", r"\/")
    )
    (TALKS / f"{editor}.jsonl").write_text(reported, encoding="utf-8", newline="\n")


def faults(folder: Path) -> Sequence[str]:
    """What `kode-sidecar grade` has to say; a process that was killed has no end to be judged.

    One that was killed as it began has not even a first line.
    """
    said: list[str] = []
    for file in sorted(file for file in folder.glob("*.jsonl") if b"\n" in file.read_bytes()):
        talk = read_recording(file)
        for verdict in verdicts(Talk(talk)) if talk.whole else ():
            said += [f"{file}:{one.line} {verdict.rule}: {one.text}" for one in verdict.faults]
    return said
