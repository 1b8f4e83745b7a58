"""Which client uses which method: the table of `protocol/README.md`, made from their sources."""

from collections.abc import Mapping
from pathlib import Path

from kode_sidecar.core.protocol.methods import METHODS

BEGIN, END = "<!-- methods of clients -->\n", "<!-- end -->\n"

SOURCES: Mapping[str, tuple[str, ...]] = {
    "VS Code": ("editors/vscode/src/**/*.ts",),
    "Neovim": ("editors/nvim/lua/**/*.lua",),
    "chat": ("kode_sidecar/terminal/chat/*.py", "kode_sidecar/terminal/client/*.py"),
}
_JOINED = "'kode/editor/' .. "  # Neovim joins the names of what is asked of language servers

ACP: Mapping[str, str] = {
    "kode/session/new": "`session/new`",
    "kode/session/list": "`session/list`",
    "kode/session/attach": "`session/load`, `session/resume`",
    "kode/session/detach": "`session/close`",
    "kode/session/fork": "`session/fork`, `/fork`",
    "kode/session/update": "`session/set_mode`, `session/set_config_option`",
    "kode/turn/start": "`session/prompt`",
    "kode/turn/cancel": "`session/cancel`",
    "kode/context/inspect": "`/context`",
    "kode/context/edit": "`/context`",
    "kode/context/undoCompaction": "`/context`",
    "kode/context/compact": "`/compact`",
    "kode/changeSet/decide": "`session/request_permission`, `/keep`",
    "kode/changeSet/undo": "`/undo`",
    "kode/tree/get": "`/rewind`",
    "kode/tree/setHead": "`/rewind`",
    "kode/usage/get": "`/usage`",
    "kode/verbs/list": "`available_commands_update`",
    "kode/models/list": "`configOptions`",
    "kode/mcp/decide": "`mcpServers` of `session/new`",
    "kode/mcp/prompt": "`available_commands_update`",
    "kode/event": "`session/update`",
    "kode/delta": "`session/update`",
    "kode/permission/request": "`session/request_permission`",
    "kode/permission/set": "`allow_always`, `reject_always`",
    "kode/ask": "`session/request_permission`",
}
"""How an ACP client comes to the same."""

_PROGRAMS = "for programs: no user asks for it"
_OTHER = "what the client needs of it comes with another answer"
_COMMAND_LINE = "on the command line: `kode-sidecar run`"
_DISK = "it has no buffers: the files on disk are what it shows"
_NO_SERVERS = "it runs no language servers"
WITHOUT: Mapping[str, str] = {
    "kode/auth/status": "`kode/doctor` says which keys are missing, wrong or empty",
    "kode/blob/read": "a long text is shown by its head; `kode/session/export` has all of it",
    "kode/changeSet/get": _OTHER,
    "kode/changeSet/list": _OTHER,
    "kode/changeSet/moved": "it shows hunks only when they are decided",
    "kode/doctor": "`kode-sidecar doctor`",
    "kode/editor/definition": _NO_SERVERS,
    "kode/editor/diagnostics": _NO_SERVERS,
    "kode/editor/hover": _NO_SERVERS,
    "kode/editor/references": _NO_SERVERS,
    "kode/editor/rename": _NO_SERVERS,
    "kode/editor/symbols": _NO_SERVERS,
    "kode/editor/didChangeContext": "it has no cursor in a file",
    "kode/editor/didChangeEncoding": _DISK,
    "kode/editor/didShow": "for tests of a client",
    "kode/file/search": "the client completes paths by its own means",
    "kode/freshness/get": "the event `freshness.changed` says it",
    "kode/mcp/changed": "the list is asked for when it is shown",
    "kode/mcp/decide": _OTHER,
    "kode/mcp/list": "`kode-sidecar mcp`",
    "kode/mcp/prompt": "the prompts of a server are offered where its tools are",
    "kode/mcp/read": "the client sends resources itself",
    "kode/mcp/start": "a server starts with its first tool",
    "kode/memory/decide": "`kode-sidecar memory`",
    "kode/memory/list": "`kode-sidecar memory`",
    "kode/message/list": "the whole session comes with its loading",
    "kode/openDocument": _DISK,
    "kode/permission/list": "what holds is what the user answered; `config.yaml` has the rest",
    "kode/permission/set": "the answers to a question set rules",
    "kode/ping": _PROGRAMS,
    "kode/review/ask": "`/review fix 3` and `/review explain 3`",
    "kode/review/decide": "`/review dismiss 3 why`, `done`, `open`",
    "kode/review/list": "the event `review.updated` has the findings",
    "kode/run/cancel": _COMMAND_LINE,
    "kode/run/get": _COMMAND_LINE,
    "kode/run/start": _COMMAND_LINE,
    "kode/saveDocuments": "accepted edits are written to disk at once",
    "kode/schema/get": _PROGRAMS,
    "kode/sessions/changed": "the list is asked for when it is shown",
    "kode/session/delete": "`kode-sidecar sessions`",
    "kode/session/detach": "the end of the process gives the session free",
    "kode/session/export": "`kode-sidecar sessions`",
    "kode/session/get": _OTHER,
    "kode/session/update": "mode and model are those of the next turn",
    "kode/settings/update": "a setting of the client goes with the handshake",
    "kode/skills/list": "`kode-sidecar skills`; the model loads them by itself",
    "kode/tools/list": "cards show what tools do",
    "kode/tree/get": "earlier prompts are edited where they stand",
    "kode/tree/setHead": "`/fork NUMBER` goes on from an earlier prompt",
    "kode/turn/steer": "the protocol has no word for it: a prompt waits for the turn's end",
    "kode/usage/get": "`kode-sidecar usage`; each turn says what it cost",
    "kode/verbs/list": _OTHER,
    "kode/workspace/setTrust": "trust is said in the handshake",
}
"""Why a client that does not use a method goes without."""


def table(root: Path) -> str:
    """Return the table; a client without a method has the number of the reason instead."""
    texts = {client: source(root, client) for client in SOURCES}
    reasons: dict[str, int] = {}
    rows = [f"| method | {' | '.join(texts)} | ACP |", "|---|" + "---|" * (len(texts) + 1)]
    for method in METHODS:
        name = method.name
        cells = ["●" if uses(text, name) else "" for text in texts.values()] + [ACP.get(name, "")]
        if "" in cells:
            if name not in WITHOUT:
                raise KeyError(f"Say in {__file__} why a client goes without {name}.")
            reason = reasons.setdefault(WITHOUT[name], len(reasons) + 1)
            cells = [cell or f"({reason})" for cell in cells]
        rows.append(f"| `{name}` | {' | '.join(cells)} |")
    why = [f"{number}. {reason}" for reason, number in reasons.items()]
    return "\n".join([*rows, "", "Where a client goes without:", "", *why, ""])


def uses(text: str, method: str) -> bool:
    """Return whether the source of a client names a method."""
    return method in text or (method.startswith("kode/editor/") and _JOINED in text)


def with_table(readme: str, root: Path) -> str:
    """Return the README with the table of now."""
    head, _, rest = readme.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return f"{head}{BEGIN}\n{table(root)}\n{END}{tail}"


def source(root: Path, client: str) -> str:
    """Return all of a client's own text."""
    files = [path for one in SOURCES[client] for path in sorted(root.glob(one))]
    return "\n".join(path.read_text(encoding="utf-8") for path in files)
