"""What is told about ACP is so: generated types, the table of methods, the registry entry."""

import json
import re
from xml.etree import ElementTree

from kode_sidecar import __version__
from protocol.export.acp_types import MODULE, acp_types
from tests.support.acp_schema import schema
from tests.support.program import ROOT

FOLDER = ROOT / "protocol" / "acp"
ABOUT = (ROOT / "protocol" / "acp.md").read_text(encoding="utf-8")


def test_the_types_are_those_of_the_schema() -> None:
    assert MODULE.read_text(encoding="utf-8") == acp_types()


def rows(heading: str) -> dict[str, str]:
    part = ABOUT.partition(f"\n## {heading}")[2].partition("\n## ")[0]
    return dict(re.findall(r"^\| `([^`]+)` \| (.*) \|$", part, re.MULTILINE))


def methods(side: str) -> set[str]:
    return {method for method, server in schema().served_by.items() if server == side}


def test_the_table_has_every_method_and_update() -> None:
    agent, client = rows("Methods of the agent"), rows("Methods of the client")
    assert set(agent) == methods("agent")
    assert set(client) == methods("client")
    kinds = [one["properties"]["sessionUpdate"]["const"] for one in _updates()]
    assert set(rows("Updates")) == set(kinds)
    assert (len(agent), len(client), len(kinds)) == (13, 11, 14)


def _updates() -> list[dict[str, dict[str, dict[str, str]]]]:
    return schema().schema.definitions["SessionUpdate"]["oneOf"]


def test_the_tests_that_the_table_names_are_there() -> None:
    folder = ROOT / "tests" / "servers" / "acp"
    files = {path.name: path.read_text(encoding="utf-8") for path in folder.glob("*.py")}
    everything = "\n".join(files.values())
    for name in re.findall(r"`(test_\w+\.py)`", ABOUT):
        assert name in files
    reported = re.findall(r"`test_\w+\.py` ([a-z_]+(?:, [a-z_]+)*)", ABOUT)
    for name in (name for names in reported for name in names.split(", ")):
        assert re.search(rf"def test_\w*{name}", everything), name


def test_the_entry_for_the_registry_fits_this_build() -> None:
    entry = json.loads((FOLDER / "agent.json").read_bytes())
    assert entry["version"] == __version__
    assert entry["distribution"]["uvx"]["package"] == f"kode-sidecar=={__version__}"
    icon = ElementTree.fromstring((FOLDER / entry["icon"]).read_text(encoding="utf-8"))
    assert (icon.get("width"), icon.get("height")) == ("16", "16")
    colours = {part.get(name) for part in icon.iter() for name in ("fill", "stroke")}
    assert colours <= {None, "none", "currentColor"}
