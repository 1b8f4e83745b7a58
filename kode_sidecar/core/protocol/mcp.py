"""MCP servers as the user sees them: `kode/mcp/*`."""

from typing import Any, Literal

from msgspec import Struct

from kode_sidecar.core.domain.message import PromptBlock

McpSource = Literal["user", "editor", "project", "run"]
McpState = Literal["unapproved", "refused", "idle", "starting", "ready", "failed"]


class McpToolView(Struct, frozen=True, kw_only=True, rename="camel"):
    """A tool as its server describes it. `says_read_only` is the server's own word: a hint."""

    name: str
    description: str
    says_read_only: bool


class McpResourceView(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Something a server lets the user attach: `kode/mcp/read` reads it."""

    uri: str
    name: str = ""
    description: str = ""
    media_type: str = ""


class McpTemplateView(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Resources of a server that the user names by filling in an address (RFC 6570)."""

    uri_template: str
    name: str = ""
    description: str = ""
    media_type: str = ""


class McpPromptArgument(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A word that a prompt of a server has a place for."""

    name: str
    description: str = ""
    required: bool = False


class McpPromptView(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A prompt that a server keeps for its users: `kode/mcp/prompt` fills it in."""

    name: str
    description: str = ""
    arguments: tuple[McpPromptArgument, ...] = ()


class McpServerView(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """An MCP server. `command` or `url` is what is started or asked; `variables` it gets.

    `source`: the user's settings, the editor, a file of the open folders, a run's file. A server
    of a project is `unapproved` until the user said yes to what `fingerprint` stands for, and never
    starts before. `tools`, `resources`, `templates`, `prompts`: what it offered the last time,
    empty while that is not known.
    """

    name: str
    source: McpSource
    state: McpState
    fingerprint: str
    tools: tuple[McpToolView, ...]
    command: tuple[str, ...] = ()
    url: str = ""
    folder: str = ""
    variables: tuple[str, ...] = ()
    version: str = ""
    last_error: str = ""
    stderr_tail: tuple[str, ...] = ()
    resources: tuple[McpResourceView, ...] = ()
    prompts: tuple[McpPromptView, ...] = ()
    templates: tuple[McpTemplateView, ...] = ()


class McpListResult(Struct, frozen=True, kw_only=True, rename="camel"):
    """The servers in the order of the settings, those of the project last; nothing is started.

    `problems` names entries that cannot be used. `project_trusted`: files of the open folders are
    looked for, for the editor has said that the workspace is trusted.
    """

    servers: tuple[McpServerView, ...]
    problems: tuple[str, ...]
    project_trusted: bool


class McpDecideParams(Struct, frozen=True, kw_only=True):
    """The user's word on a server that the project names, as `kode/mcp/list` showed it.

    It is kept for later processes too, until the entry changes.
    """

    name: str
    fingerprint: str
    allowed: bool


class McpStartParams(Struct, frozen=True, kw_only=True):
    """Start a server now, and ask what it offers."""

    name: str


class McpReadParams(Struct, frozen=True, kw_only=True):
    """Read the resource `uri` of the server `name`, which is started for it."""

    name: str
    uri: str


class McpPromptParams(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Fill in `prompt` of the server `name`, which is started for it.

    `words` is what the user typed behind the prompt's name: `name=value`, or values in the order of
    its arguments, quoted as in a shell; the last one takes all that is left. `arguments` are texts
    by name, and win.
    """

    name: str
    prompt: str
    words: str = ""
    arguments: dict[str, Any] = {}


class McpBlocks(Struct, frozen=True):
    """Blocks for the `input` of a prompt. A resource says that its text is data of a server."""

    input: tuple[PromptBlock, ...]
