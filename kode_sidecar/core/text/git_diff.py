"""Reads a patch of `git diff -z` file by file, and numbers its lines as the new text has them."""

import re
from collections.abc import Iterator, Sequence

_HUNK = re.compile(rb"@@ -\d+(?:,\d+)? \+(\d+)(?:,\d+)? @@")
_SECTION = re.compile(rb"^diff --git ", re.MULTILINE)


def patch_sections(patch: bytes) -> Iterator[tuple[str, Sequence[bytes]]]:
    """Yield the path of each file with changed lines, and the lines of its hunks."""
    starts = [found.start() for found in _SECTION.finditer(patch)]
    for start, end in zip(starts, [*starts[1:], len(patch)], strict=True):
        lines = patch[start:end].split(b"\n")
        begin = next((i for i, line in enumerate(lines) if line.startswith(b"@@ ")), None)
        if begin is None:
            continue
        names = {line[:4]: line[4:].removesuffix(b"\t") for line in lines[:begin]}
        new, old = names.get(b"+++ ", b""), names.get(b"--- ", b"")
        name = old if new == b"/dev/null" else new
        yield name[2:].decode("utf-8", "surrogateescape"), lines[begin:]


def numbered_hunks(lines: Sequence[bytes], encoding: str = "utf-8") -> str:
    """Return hunks with the numbers of the new lines; `+` marks new lines, `-` old ones."""
    shown: list[str] = []
    number = 0
    for raw in lines:
        text = raw[1:].decode(encoding, "backslashreplace").removesuffix("\r")
        if found := _HUNK.match(raw):
            number = int(found[1])
            shown.append(f"@@ from line {number}")
        elif raw[:1] == b"-":
            shown.append(f"      - {text}")
        elif raw[:1] in (b"+", b" "):
            shown.append(f"{number:>5} {raw[:1].decode()} {text}")
            number += 1
    return "\n".join(shown)
