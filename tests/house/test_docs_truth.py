"""What the documents say is so."""

import re
import sys
import tomllib
from pathlib import Path

import msgspec
import pytest
from packaging.requirements import Requirement

from kode_sidecar import __version__
from kode_sidecar.core.settings.values import EDITOR_NAMES, ENV_NAMES, NAMES, Settings
from tests.support.package_source import LAYERS, PACKAGE, imports, modules

ROOT = PACKAGE.parent
READMES = ["README.md", "README.zh.md"]
DOCS = sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))
MAP = "kode_sidecar/README.md"
ROOMS = sorted(path.relative_to(PACKAGE).as_posix() for path in PACKAGE.glob("*/*/README.md"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
Row = list[str]


def text_of(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def table(name: str, columns: int, heading: str) -> list[Row]:
    """The rows of the table whose first heading is given, cells stripped."""
    rows = [line.strip("|").split("|") for line in text_of(name).splitlines() if line[:1] == "|"]
    cells = [[cell.strip() for cell in row] for row in rows]
    start = next(number for number, row in enumerate(cells) if row[0] == heading)
    found: list[Row] = []
    for row in cells[start + 2 :]:
        if len(row) != columns or not row[0].startswith("`"):
            break
        found.append(row)
    return found


@pytest.mark.parametrize("name", ["CONTRIBUTING.md", *(n for n in DOCS if ".zh." not in n)])
def test_both_languages_have_the_same_shape(name: str) -> None:
    """Headings, rows of tables and examples come in equal numbers."""
    shapes = [
        [
            len(re.findall(pattern, text_of(one), re.MULTILINE))
            for pattern in (r"^#", r"^\|", "^```")
        ]
        for one in (name, name.replace(".md", ".zh.md"))
    ]
    assert shapes[0] == shapes[1]


def in_ticks(text: str) -> list[str]:
    return re.findall(r"`([^`]+)`", text)


@pytest.mark.parametrize("name", READMES)
def test_readmes_open_with_the_two_commands(name: str) -> None:
    code = text_of(name).split("```")[1]
    assert [line.split("  ")[0] for line in code.splitlines()[1:]] == [
        "python3 dev.py demo",
        "python3 dev.py test",
    ]


# A11
@pytest.mark.parametrize(
    ("name", "heading"),
    [("docs/configuration.md", "setting"), ("docs/configuration.zh.md", "设置")],
)
def test_the_table_of_settings_is_complete_and_right(name: str, heading: str) -> None:
    rows = {row[0].strip("`"): row for row in table(name, 4, heading)}
    assert list(rows) == list(NAMES)
    defaults = Settings(storage_root=Path(), log_dir=Path())
    for setting, (_, variables, default, _) in rows.items():
        assert tuple(in_ticks(variables)) == ENV_NAMES[setting]
        value = getattr(defaults, setting)
        if not isinstance(value, Path | msgspec.Struct):
            shown = f"{value:g}" if isinstance(value, float) else str(value or "")
            shown = {"False": "false", "True": "true"}.get(str(value), shown)
            assert "".join(in_ticks(default)) == shown, setting
    for editor_name in EDITOR_NAMES:
        assert f"`{editor_name}`" in text_of(name)


@pytest.mark.parametrize(
    ("name", "heading"), [("docs/dependencies.md", "package"), ("docs/dependencies.zh.md", "包")]
)
def test_every_runtime_dependency_is_explained(name: str, heading: str) -> None:
    declared = {Requirement(line).name for line in PROJECT["project"]["dependencies"]}
    assert {row[0].strip("`") for row in table(name, 4, heading)} == declared


def test_every_imported_package_is_declared() -> None:
    extras = PROJECT["project"]["optional-dependencies"].values()
    lines = [*PROJECT["project"]["dependencies"], *(line for extra in extras for line in extra)]
    declared = {Requirement(line).name for line in lines}
    names = {
        "yaml": "PyYAML",
        "markdown_it": "markdown-it-py",
        "pygments": "Pygments",
        "pydantic_ai": "pydantic-ai-slim",
        "pydantic_core": "pydantic-core",
    }
    foreign = {i.package for i in imports()} - {PACKAGE.name} - sys.stdlib_module_names
    assert {names.get(package, package) for package in foreign} <= declared


def test_the_lock_holds_what_the_project_asks_for() -> None:
    groups = PROJECT["dependency-groups"]
    runtime = [*PROJECT["project"]["dependencies"], *groups["build"]]
    dev = [*runtime, *groups["dev"]]
    exe = [*dev, *groups["exe"]]
    for lock, wanted in {"runtime": runtime, "dev": dev, "exe": exe}.items():
        lines = text_of(f"requirements/{lock}.txt").splitlines()
        pins = dict(re.findall(r"^([\w.-]+)==(\S+)", "\n".join(lines), re.MULTILINE))
        for requirement in map(Requirement, wanted):
            pinned = pins.get(requirement.name.lower().replace("_", "-"))
            assert pinned, f"{requirement.name} is missing in {lock}.txt"
            assert requirement.specifier.contains(pinned), f"{requirement} in {lock}.txt"


@pytest.mark.parametrize(
    "name",
    [
        *(*READMES, *DOCS, "CONTRIBUTING.md", "CONTRIBUTING.zh.md", "CHANGELOG.md"),
        *("SECURITY.md", "requirements/README.md", "freeze/README.md"),
    ],
)
def test_links_and_commands_lead_somewhere(name: str) -> None:
    folder = (ROOT / name).parent
    for target in re.findall(r"\]\(([^)#]+)\)", text_of(name)):
        assert target.startswith("https://") or (folder / target).exists(), target
    commands = text_of("dev.py")
    for command in re.findall(r"dev\.py (\w+)", text_of(name)):
        assert f'"{command}": Command(' in commands, command
    for path in re.findall(
        r"`((?:kode_sidecar|tests|prompts|requirements)/[\w/.]*)`", text_of(name)
    ):
        assert (ROOT / path).exists(), path


def test_the_changelog_knows_this_version() -> None:
    assert f"## [{__version__}]" in text_of("CHANGELOG.md")


def rows_of_packages() -> list[Row]:
    lines = text_of(MAP).partition("## Where state lives")[0].splitlines()
    return [line.split("|") for line in lines if line.startswith("| `")]


# D9
def test_the_map_shows_every_room_and_nothing_else() -> None:
    rows = {row[1].strip(" `"): row for row in rows_of_packages()}
    assert set(rows) == {module.room for module in modules()} - {"__init__"}
    names = {module.name for module in modules()}
    for room, row in rows.items():
        for inner in in_ticks(row[3]):
            assert f"{room}.{inner}" in names, f"{room}.{inner}"
    for dotted in re.findall(r"`([a-z_]+\.[a-z_]+)`", text_of(MAP)):
        assert dotted in names, dotted
    layers = re.findall(r"^## \d\. (\w+)/", text_of(MAP), re.MULTILINE)
    assert layers == [*LAYERS]


# D9
@pytest.mark.parametrize("readme", ["README.md", *ROOMS])
def test_a_room_points_to_what_is_there(readme: str) -> None:
    """Modules and what is in them, files of the room, and rows of the map, by their first cell."""
    sources = {module.name: module.path.read_text(encoding="utf-8") for module in modules()}
    rooms = {name.partition(".")[0] for name in sources}
    reported, own = text_of(f"kode_sidecar/{readme}"), Path(readme).parent.name
    for name in re.findall(r"`([a-z_]\w*(?:\.\w+)+)(?:\(\))?`", reported):
        first, second, *inner = name.split(".")
        if f"{first}.{second}" not in sources and f"{own}.{first}" in sources:
            first, second, inner = own, first, [second, *inner]
        if first in rooms and second not in ("json", "yaml"):  # `run.json` is a file
            door = sources.get(first, "") if not inner else ""
            source = sources.get(f"{first}.{second}")
            assert source is not None or re.search(rf"\b{second}\b", door), name
            if source is not None and inner not in (["py"], ["jsonl"]):
                assert all(re.search(rf"\b{word}\b", source) for word in inner), name
        assert second != "py", name
    rows = {row.split("|")[1].strip() for row in text_of(MAP).splitlines() if row[:1] == "|"}
    pointed = {" ".join(row.split()) for row in re.findall(r"“([^”]+)”", reported)}
    assert pointed <= rows


# D9
@pytest.mark.parametrize("room", sorted({m.path.parent for m in modules() if "." in m.name}))
def test_a_room_explains_itself_under_four_headings(room: Path) -> None:
    reported = (room / "README.md").read_text(encoding="utf-8")
    headings = re.findall(r"^## (.+)$", reported, re.MULTILINE)
    assert headings[:4] == ["Entry", "State machine", "Change points", "Forbidden zones"]
    assert headings[4:] in ([], ["Why it is so"])  # where a hard idea needs a chapter
    assert "Deliberately absent:" in reported
    files = {path.stem for path in room.iterdir()}
    for cells in re.findall(r"^\| (`[^|]*) \|", reported, re.MULTILINE):  # a table of its files
        assert set(in_ticks(cells)) <= files, cells
