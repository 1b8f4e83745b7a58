"""Caps the tail: it is the few huge files and functions that make a house ugly."""

import ast

from tests.support.package_source import FUNCTIONS, modules

MOST_FILE_LINES = 450
MOST_FUNCTION_LINES = 80
FEWEST_FILE_LINES = 50

# A file is one idea; these are one all the same, and why they stand alone.
SMALL = {
    "acp.client": "what a client announced, apart from what is made of it",
    "boot.http_library": "imported late in one place, for servers, jobs and memory",
    "boot.skill_sources": "the doctor reports on skills, and loads nothing else of knowledge",
    "boot.state_folder": "the same behind each of the three porches",
    "boot.web_setup": "loaded only where the model may read the web",
    "boot.wire_files": "asked by the wire and by the command line",
    "chat.saved_modes": "the history of prompts loads what draws, and piped input does without",
    "chat.signals": "what the terminal gets besides what is drawn",
    "cli.doctor": "each command is a file of its own, and loads what it needs",
    "cli.talk": "each command is a file of its own, and loads what it needs",
    "domain.context_edits": "kept by records, told on the wire, and applied by context",
    "kernel.repeats": "a rule of its own: the runner counts by it, the loop ends by it",
    "plain.features": "the only one that loads pygls",
    "protocol.method": "below both tables of methods",
    "records.message_storage": "above both stores, neither of which knows the other",
    "recording.server_hosts": "MCP servers only, so that hosts of models load nothing of them",
    "reviews.contracts": "what a review needs, open to all packages",
    "text.git_diff": "bytes of Git in, numbered lines out; no differing of its own",
    "text.moved_lines": "for findings, which are compared and not followed edit by edit",
    "text.lenient_json": "for model hosts of every dialect, and for tool servers",
    "timer_context": "one base for the kernel, for commands and for tool servers",
}

Sizes = list[tuple[int, str]]


def assert_no_longer_than(limit: int, sizes: Sizes) -> None:
    """Prints the longest, shown by `pytest -s`."""
    longest = sorted(sizes, reverse=True)
    print("", *longest[:5], sep="\n")  # noqa: T201
    assert [entry for entry in longest if entry[0] > limit] == []


def test_no_file_is_too_long() -> None:
    sizes: Sizes = [(m.path.read_bytes().count(b"\n"), m.name) for m in modules()]
    assert_no_longer_than(MOST_FILE_LINES, sizes)


def test_a_small_file_has_a_reason() -> None:
    """What is cut for its size makes a reader walk; `__init__` is a room's door."""
    small = {
        module.name
        for module in modules()
        if module.path.name != "__init__.py"
        and module.path.read_bytes().count(b"\n") < FEWEST_FILE_LINES
    }
    assert sorted(small - SMALL.keys()) == [], "join it with its idea, or say why not"
    assert sorted(SMALL.keys() - small) == [], "on the list, but gone"


def test_no_function_is_too_long() -> None:
    sizes: Sizes = []
    for module in modules():
        for node in ast.walk(module.tree):
            if isinstance(node, FUNCTIONS):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                sizes.append((lines, f"{module.name}:{node.lineno} {node.name}"))
    assert_no_longer_than(MOST_FUNCTION_LINES, sizes)
