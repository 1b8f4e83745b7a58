"""What is generated from the wire types is up to date, and the same wherever it is generated."""

import hashlib
import json
import os
import re
import subprocess
import sys

import pytest

from kode_sidecar.core.protocol.generated import REQUESTS, SCHEMA_SHA256
from kode_sidecar.core.protocol.methods import METHODS
from kode_sidecar.servers.boot.wire_files import WIRE_FILES, wire_file
from protocol.export import SCHEMA_FILE, generate, generated_module
from tests.support.package_source import PACKAGE
from tests.support.protocol_files import FOLDER

REFRESH = "out of date: run `python3 dev.py protocol` and look at what changed"


# E1
@pytest.mark.parametrize("name", ["schema.json", "kode.d.ts", "kode.lua", "methods.md"])
def test_the_files_are_up_to_date(name: str) -> None:
    assert (FOLDER / name).read_bytes() == generate()[name], f"protocol/{name} is {REFRESH}"


def test_what_the_handshake_says_of_them_is_up_to_date() -> None:
    written = (PACKAGE / "core" / "protocol" / "generated.py").read_bytes()
    schema = generate()[SCHEMA_FILE]
    assert written == generated_module(schema), f"protocol/generated.py is {REFRESH}"
    assert hashlib.sha256(schema).hexdigest() == SCHEMA_SHA256
    served = [m.name for m in METHODS if m.direction == "client_to_server" and m.kind == "request"]
    assert list(REQUESTS) == served


def test_the_program_has_them_all_and_nothing_else_is_generated() -> None:
    assert {name: wire_file(name) for name in WIRE_FILES} == generate()
    assert set(generate()) == {"schema.json", "kode.d.ts", "kode.lua", "methods.md"}


def test_the_bytes_do_not_depend_on_the_process() -> None:
    code = (
        "import sys; from protocol.export import generate;"
        "sys.stdout.buffer.write(b''.join(generate().values()))"
    )
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(PACKAGE.parent)}
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, check=True, env=environment
        )
        assert done.stdout == b"".join(generate().values())


@pytest.mark.parametrize("name", generate())
def test_they_are_utf_8_with_lf_and_end_with_one(name: str) -> None:
    text = generate()[name].decode("utf-8")
    assert "\r" not in text
    assert text.endswith("\n")
    assert not text.endswith("\n\n")
    assert not re.search(r"[ \t]\n", text)


def test_the_reference_leads_nowhere_else() -> None:
    text = generate()["methods.md"].decode("utf-8")
    anchors = set(re.findall(r'<a id="([^"]+)">', text))
    headings = re.findall(r"^#+ `?([^`\n]+)`?$", text, re.MULTILINE)
    anchors |= {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}
    links = re.findall(r"\]\(#([^)]+)\)", text)
    assert links
    assert sorted(set(links) - anchors) == []
    everything = json.loads(generate()["schema.json"])["$defs"].keys() - {"Empty"}
    assert sorted(name for name in everything if name.lower() not in anchors) == []
