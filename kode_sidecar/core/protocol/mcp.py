"""Params and results of `kode/mcp/*`: the user's MCP servers."""

from typing import Any, Literal

from msgspec import Struct

from kode_sidecar.core.domain.message import PromptBlock

McpSource = Literal["user", "editor", "project", "run"]
McpState = Literal["unapproved", "refused", "idle", "starting", "ready", "failed"]


class McpToolView(Struct, frozen=True, kw_only=True, rename="camel"):
    """A tool as its server describes it. `says_read_only` is the server's claim: a hint only."""

    name: str
    description: str
    says_read_only: bool


class McpResourceView(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A resource of a server that the user can attach; `kode/mcp/read` reads it."""

    uri: str
    name: str = ""
    description: str = ""
    media_type: str = ""


class McpTemplateView(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A URI template (RFC 6570) for resources of a server; the user fills it in."""

    uri_template: str
    name: str = ""
    description: str = ""
    media_type: str = ""


class McpPromptArgument(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An argument of a server's prompt."""

    name: str
    description: str = ""
    required: bool = False


class McpPromptView(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A prompt that a server offers; `kode/mcp/prompt` fills it in."""

    name: str
    description: str = ""
    arguments: tuple[McpPromptArgument, ...] = ()


class McpServerView(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """An MCP server, started by `command` or reached at `url`; it gets the named `variables`.

    `source`: the user's settings, the editor, a file of the open folders, a run's file. A server
    of a project is `unapproved` and does not start until the user approves the entry with this
    `fingerprint`. `tools`, `resources`, `templates` and `prompts` are what it last offered, empty
    while unknown.
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
    """The servers in the order of the settings, those of the project last; none is started.

    `problems` lists entries that cannot be used. `project_trusted`: the editor has said that the
    workspace is trusted, so files of the open folders are read.
    """

    servers: tuple[McpServerView, ...]
    problems: tuple[str, ...]
    project_trusted: bool


class McpDecideParams(Struct, frozen=True, kw_only=True):
    """The user's decision on a server that the project names, as `kode/mcp/list` showed it.

    It is saved for later processes too, until the entry changes.
    """

    name: str
    fingerprint: str
    allowed: bool


class McpStartParams(Struct, frozen=True, kw_only=True):
    """Start a server now and ask what it offers."""

    name: str


class McpReadParams(Struct, frozen=True, kw_only=True):
    """Read the resource `uri` of the server `name`; starts the server if needed."""

    name: str
    uri: str


class McpPromptParams(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Fill in `prompt` of the server `name`; starts the server if needed.

    `words` is what the user typed after the prompt's name: `name=value`, or values in the order of
    its arguments, quoted as in a shell; the last one takes the rest. `arguments` are texts by name
    and take precedence.
    """

    name: str
    prompt: str
    words: str = ""
    arguments: dict[str, Any] = {}


class McpBlocks(Struct, frozen=True):
    """Blocks for the `input` of a prompt. A resource marks its text as data of a server."""

    input: tuple[PromptBlock, ...]
