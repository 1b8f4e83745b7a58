"""The layers as data, and the rules that hold them (D9). `kode_sidecar/README.md` is the map."""

import sys
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet

from tests.support.package_source import (
    LAYERS,
    PACKAGE,
    Import,
    imports,
    layer_of,
    modules,
)

# A layer imports only itself and those above it in this list. Inside a layer a module imports only
# from rooms in rows below its own, or from its own room; never sideways.
ROWS = {
    "core": (
        ("kernel", "protocol"),
        ("settings",),
        ("domain",),
        ("text",),
        ("whole_files", "real_path", "timer_context"),
    ),
    "infrastructure": (("mcp",), ("providers", "workspace", "records", "commands"), ("http",)),
    "agent": (
        *(("sessions", "hooks"), ("turns",), ("edits",), ("permissions",), ("event_log",)),
        *(("reviews",), ("scouts",), ("tools", "verbs"), ("context",)),
    ),
    "jobs": (("batch",), ("run",)),
    "servers": (("boot",), ("acp", "plain"), ("lsp",)),
    "terminal": (("cli",), ("chat",), ("client",)),
    "devtools": (("demo", "grading"), ("recording",)),
}
# Single files beside the layers: what anybody may import, and what reaches every layer.
EVERYWHERE = "errors"
ABOVE_ALL = ("__init__", "__main__", "ide_chat")
# Who else imports those above all.
OVER_ALL = {("cli.ask", "ide_chat"), ("cli.review", "ide_chat")}
# The one layer that is entered from below, late and by name: a command starts what it names.
UPWARDS = {"cli": "devtools"}
# These see even less than their row allows.
SEES_ONLY = {
    "chat": {
        "client",
        "workspace",
        "commands",
        "protocol",
        "text",
        "whole_files",
        "errors",
        "boot",
    },
    # No provider, no editor, no wire: a new one of either touches no file there (D7).
    "scouts": {"context", "kernel", "domain", "text", "errors"},
    "client": {"protocol", "text", "errors"},
    "commands": {"real_path", "errors"},
}
# Who may see these at all; everybody above where nothing is said.
SEEN_ONLY_BY = {
    "settings": {"boot", "cli", "ide_chat", "recording"},
    "client": {"demo", "chat", "cli", "recording"},
    "scouts": {"boot", "turns", "run", "reviews"},
    "batch": {"cli"},
    "recording": {"__main__", "cli", "grading"},
}
# Entered through their `__init__` only; a contracts module is open to all.
CLOSED_ROOMS = {
    *(
        "acp",
        "batch",
        "edits",
        "event_log",
        "grading",
        "run",
        "kernel",
        "mcp",
        "permissions",
        "plain",
        "recording",
    ),
    *("reviews", "scouts", "lsp", "sessions", "settings", "turns"),
}
# Second doors: what must not load with the room, or is only a contract.
DOORS = {
    "acp.client_files",  # reads and writes files: loaded with the agent
    "acp.terminals",  # runs commands, likewise
    "event_log.editor_port",  # what the rooms above need of an editor
    "grading.acp_rules",  # judges another protocol: the tests of its server use the schema, too
    "grading.acp_talk",
    "grading.json_schema",
    "grading.strict",  # these two serve a recording: only who wants that pays for it
    "recording.offline_server",
    "recording.replay",  # the command, which a process that records does without
    "settings.writing",  # adds to the user's file: only who does so pays for it
    "sessions.repair",  # these two run a session: loaded with the agent
    "sessions.session",
    "turns.toolset",  # the tools, loaded with the agent
}
# Third-party packages that rooms keep for themselves.
OWNED = {
    "pygls": "lsp plain",
    "lsprotocol": "lsp plain",
    "cattrs": "lsp",
    "httpx": "http",
    "anyio": "http",
    "yaml": "text",
    "platformdirs": "settings",
    "pydantic_ai": "run",
    "pydantic_core": "run",
    "dask": "batch",
    "distributed": "batch",
    "openai": "run",
    # A third of a second that only a terminal pays for.
    "prompt_toolkit": "chat",
    "rich": "chat",
    "markdown_it": "chat",
    "pygments": "chat",
}
# Loaded before `initialize` is answered: nothing but these and the standard library.
FIRST_LOADED = {
    "__init__",
    "__main__",
    "errors",
    "boot",
    "boot.stdio_handshake",
    "boot.unpacked",
    "protocol",
    "protocol.acp_handshake",
    "protocol.base_protocol",
    "protocol.handshake",
    "protocol.generated",
}
# Bytes or values in, values out; so is all of `domain` and `text`, and what calls itself sans-IO.
SANS_IO = {
    "providers.sse",
    "providers.openai_chat",
    "providers.dialects",
    "providers.anthropic_messages",
    "providers.anthropic_request",
    "providers.openai_responses",
    "providers.responses_request",
    "kernel.message_assembler",
    "scouts.scout_rules",
    "scouts.report",
    "reviews.report_tools",
}
PATH_TEXT = {"text.uris"}  # `os` and `pathlib` for the text of paths, never for a file
IO = {"asyncio", "os", "pathlib", "secrets", "shutil", "signal", "socket", "ssl", "tempfile"}
CLOCK_AND_CHANCE = {"random", "subprocess", "threading", "time", "uuid"}
# Imports inside functions: importer, imported, and why.
LATE_IMPORTS = {
    ("__main__", "kode_sidecar.commands.guard"): "serving is no guard of a program",
    ("boot.acp_app", "kode_sidecar.acp.client_files"): "loaded with the agent",
    ("boot.acp_app", "kode_sidecar.acp.terminals"): "loaded with the agent",
    (
        "boot.acp_app",
        "kode_sidecar.mcp.contracts",
    ): "only who has MCP servers pays for that room",
    ("boot.app", "kode_sidecar.plain"): "only clients without a plugin pay for it",
    (
        "plain.tier",
        "kode_sidecar.plain.features",
    ): "the loader thread: pygls",
    ("__main__", "kode_sidecar.boot.acp_app"): "only after `initialize` is answered",
    (
        "boot.job_agent",
        "kode_sidecar.boot.mcp_setup",
    ): "only who has MCP servers pays for that room",
    (
        "boot.agent",
        "kode_sidecar.boot.command_setup",
    ): "only who lets the model run commands",
    ("boot.agent", "kode_sidecar.boot.web_setup"): "only who lets the model read the web",
    ("boot.http_library", "kode_sidecar.http.foreign"): "httpx, with the first page that is read",
    (
        "boot.doctor",
        "kode_sidecar.boot.command_setup",
    ): "only who lets the model run commands",
    (
        "boot.doctor",
        "kode_sidecar.mcp",
    ): "only who has MCP servers pays for that room",
    ("protocol.base_protocol", "kode_sidecar.text.shown_text"): "only odd messages are mended",
    ("commands.guard", "ctypes"): "10 ms that other systems do not need",
    ("mcp.project", "kode_sidecar.text.yaml_text"): "PyYAML, for projects with .kode/mcp.yaml",
    ("mcp.login", "kode_sidecar.mcp.oauth"): "httpx, for servers with an address",
    ("mcp.server", "kode_sidecar.mcp.http"): "httpx, for servers with an address",
    ("__init__", "kode_sidecar.ide_chat"): "serving imports the package and needs none of it",
    ("__main__", "kode_sidecar.cli.command_line"): "serving needs no command line",
    ("__main__", "kode_sidecar.boot.stdio_handshake"): "commands need no handshake",
    ("__main__", "kode_sidecar.boot.app"): "only after `initialize` is answered",
    (
        "__main__",
        "kode_sidecar.boot.agent",
    ): "the loader thread: turns can wait, sessions not",
    (
        "__main__",
        "kode_sidecar.boot.leftovers",
    ): "only when our unpacker was killed",
    ("__main__", "kode_sidecar.boot.system"): "only after `initialize` is answered",
    ("__main__", "kode_sidecar.recording"): "only for who records or plays",
    ("chat.program", "kode_sidecar.chat.screen"): "what draws, for terminals only",
    ("boot.job_agent", "kode_sidecar.run"): "PyYAML and a room that only runs pay for",
    (
        "batch.batch",
        "kode_sidecar.batch.dask_engine",
    ): "an optional extra, and a second to load",
    (
        "run.engines",
        "kode_sidecar.run.pydantic_ai_engine",
    ): "an optional extra, and a second to load",
    (
        "records.message_storage",
        "kode_sidecar.records.sqlite_messages",
    ): "15 ms for its users only",
    (
        "lsp.loader",
        "kode_sidecar.lsp.language_server",
    ): "the loader thread: pygls, at the first request that it serves",
    ("verbs.verb_file", "tomllib"): "only for verbs of Gemini CLI",
    ("boot.agent", "kode_sidecar.verbs.calls"): "only who calls a verb",
    ("sessions.session", "kode_sidecar.reviews"): "only who asks for findings",
    ("turns.toolset", "kode_sidecar.reviews"): "only an agent that reviews",
    ("turns.toolset", "kode_sidecar.reviews.contracts"): "only an agent that reviews",
    ("boot.knowledge", "kode_sidecar.verbs.library"): "only who uses verbs, no job",
    ("boot.knowledge", "kode_sidecar.boot.verb_sources"): "only who uses verbs, no job",
    ("boot.job_agent", "kode_sidecar.boot.hook_setup"): "only who has hooks",
    ("boot.job_agent", "kode_sidecar.boot.project_hooks"): "only who has hooks",
    (
        "context.skill_front_matter",
        "kode_sidecar.text.yaml_text",
    ): "PyYAML, for users of skills",
    (
        "boot.job_agent",
        "kode_sidecar.boot.budget_setup",
    ): "all that reads sessions, for budgets of a day",
    ("boot.build_info", "json"): "`--version` of a checkout reads no mark of a build",
    ("boot.build_info", "platform"): "`--version`, where `os.uname` says the same",
    (
        "boot.http_library",
        "kode_sidecar.http.client",
    ): "httpx and ssl, for who asks a host",
    ("cli.authors", "kode_sidecar.demo"): "each of these commands needs one of these rooms",
    ("cli.authors", "kode_sidecar.demo.play"): "each of these commands needs one of these rooms",
    ("cli.authors", "kode_sidecar.demo.play_job"): "each command needs one of these rooms",
    ("cli.authors", "kode_sidecar.grading"): "each of these commands needs one of these rooms",
    ("cli.authors", "kode_sidecar.grading.acp_rules"): "each command needs one of these rooms",
    ("cli.authors", "kode_sidecar.grading.strict"): "each command needs one of these rooms",
    ("cli.authors", "kode_sidecar.recording.replay"): "each command needs one of these rooms",
    ("cli.command_line", "kode_sidecar.cli.complete"): "`--version` needs no parser",
    ("cli.command_line", "kode_sidecar.cli.parser"): "`--version` needs no parser",
    ("cli.command_line", "kode_sidecar.text.shown_text"): "`--version` shows nothing foreign",
    ("cli.doctor", "kode_sidecar.cli.inquiry"): "asks a sidecar, with --online only",
    ("cli.inquiry", "kode_sidecar.cli.migrate"): "works on files, and asks no sidecar",
    ("cli.parser", "kode_sidecar.protocol.process"): "msgspec, for the commands that need it",
    ("cli.parser", "kode_sidecar.protocol.session"): "msgspec, for the commands that need it",
    ("cli.parser", "kode_sidecar.records.messages"): "msgspec, for the commands that need it",
    ("settings.load", "platformdirs"): "4 ms that nobody with KODE_HOME pays",
    (
        "settings.files",
        "kode_sidecar.text.yaml_text",
    ): "PyYAML: 10 ms, for users of config.yaml",
    (
        "settings.writing",
        "kode_sidecar.text.yaml_text",
    ): "PyYAML: 10 ms, for who adds to config.yaml",
}


def listed(found: Iterable[object]) -> str:
    """One a line, so that a failing rule shows all that break it."""
    return "\n".join(map(str, found))


def test_every_room_has_a_row() -> None:
    rows = {(layer, room) for layer, rows in ROWS.items() for row in rows for room in row}
    assert rows == {(module.layer, module.room) for module in modules() if module.layer}
    assert {m.room for m in modules() if not m.layer} == {EVERYWHERE, *ABOVE_ALL}
    assert tuple(ROWS) == LAYERS


def test_imports_point_down() -> None:
    leaving = [i for i in imports() if i.leaves_its_room and i.source.room not in ABOVE_ALL]
    assert listed(i for i in leaving if not points_down(i)) == ""


def points_down(found: Import) -> bool:
    here, there = found.source.layer, layer_of(str(found.room))
    if not there:
        return found.room == EVERYWHERE or (found.source.name, found.room) in OVER_ALL
    if not here:
        return False  # `errors` imports nothing of ours
    if here != there:
        return LAYERS.index(there) < LAYERS.index(here) or UPWARDS.get(found.source.room) == there
    number = {room: row for row, rooms in enumerate(ROWS[here]) for room in rooms}
    return number[str(found.room)] > number[found.source.room]


def circles(graph: Mapping[str, AbstractSet[str]]) -> list[set[str]]:
    """Groups that lead back to themselves (Tarjan would be faster; this is read faster)."""
    reached: dict[str, set[str]] = {}
    for start in graph:
        seen: set[str] = set()
        ahead = list(graph[start])
        while ahead:
            if (name := ahead.pop()) not in seen:
                seen.add(name)
                ahead.extend(graph.get(name, ()))
        reached[start] = seen
    groups = [{b for b in reached[a] if a in reached.get(b, ())} for a in reached]
    return [group for number, group in enumerate(groups) if group and group not in groups[:number]]


def test_neither_files_nor_rooms_form_a_circle() -> None:
    files: dict[str, set[str]] = {module.name: set() for module in modules()}
    rooms: dict[str, set[str]] = {}
    for found in imports():
        if found.room is None or found.late:
            continue
        target = ".".join((found.room, *found.inner_path))
        if target != found.source.name:
            files[found.source.name].add(target)
        if found.leaves_its_room:
            rooms.setdefault(found.source.room, set()).add(found.room)
    assert listed(circles(files)) == ""
    assert listed(circles(rooms)) == ""
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == [{"b", "c"}]


def test_rooms_see_only_what_they_may() -> None:
    leaving = [i for i in imports() if i.leaves_its_room]
    assert listed(i for i in leaving if i.room not in SEES_ONLY.get(i.source.room, {i.room})) == ""
    guarded = [i for i in leaving if i.room in SEEN_ONLY_BY]
    assert listed(i for i in guarded if i.source.room not in SEEN_ONLY_BY[str(i.room)]) == ""


def test_closed_packages_are_entered_by_their_entry_points() -> None:
    entering = [i for i in imports() if i.leaves_its_room and i.room in CLOSED_ROOMS]
    assert listed(i for i in entering if not i.by_a_door(DOORS)) == ""
    assert CLOSED_ROOMS - {"settings"} <= {
        path.parent.name for path in PACKAGE.glob("*/*/README.md")
    }


def test_packages_stay_in_the_room_that_owns_them() -> None:
    owned = [i for i in imports() if i.package in OWNED]
    assert listed(i for i in owned if i.source.room not in OWNED[i.package].split()) == ""


def test_what_answers_first_loads_only_the_standard_library() -> None:
    early = [
        i for i in imports() if i.source.name in FIRST_LOADED and not (i.late or i.typing_only)
    ]
    allowed = {PACKAGE.name, *(f"{PACKAGE.name}.{name}" for name in FIRST_LOADED)}
    foreign = [i for i in early if i.package not in sys.stdlib_module_names]
    assert listed(i for i in foreign if i.target not in allowed) == ""


def test_rules_and_decoders_do_no_io() -> None:
    assert listed(SANS_IO - {m.name for m in modules()}) == "", "on the list, but gone"
    claims = {m.name for m in modules() if m.room in ("domain", "text") or "Sans-IO" in m.docstring}
    pure = [i for i in imports() if i.source.name in (SANS_IO | claims) - PATH_TEXT]
    assert listed(i for i in pure if i.package in IO | CLOCK_AND_CHANCE) == ""


def test_imports_inside_functions_are_listed() -> None:
    late = {(i.source.name, i.target) for i in imports() if i.late}
    assert listed(late - LATE_IMPORTS.keys()) == "", "not on the list"
    assert listed(LATE_IMPORTS.keys() - late) == "", "on the list, but gone"
