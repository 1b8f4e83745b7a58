"""Made from the published schema of ACP (see `protocol/acp.NOTICE.md`). Do not edit it.

`python3 -m protocol.export.acp_types` writes it.
"""

from typing import Any, Literal

from msgspec import Struct, field

ToolKind = Literal[
    "read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other"
]
ToolCallStatus = Literal["pending", "in_progress", "completed", "failed"]
StopReason = Literal["end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"]
PermissionOptionKind = Literal["allow_once", "allow_always", "reject_once", "reject_always"]


class AuthenticateRequest(Struct, frozen=True, kw_only=True):
    """Request parameters for the authenticate method."""

    method_id: str = field(name="methodId")
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class HttpHeader(Struct, frozen=True, kw_only=True):
    """An HTTP header to set when making requests to the MCP server."""

    name: str
    value: str
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class EnvVariable(Struct, frozen=True, kw_only=True):
    """An environment variable to set when launching an MCP server."""

    name: str
    value: str
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class McpServer(Struct, frozen=True, kw_only=True):
    """Configuration for connecting to an MCP (Model Context Protocol) server."""

    type: str | None = None
    name: str
    url: str | None = None
    headers: tuple[HttpHeader, ...] = ()
    meta: dict[str, Any] | None = field(default=None, name="_meta")
    command: str | None = None
    args: tuple[str, ...] = ()
    env: tuple[EnvVariable, ...] = ()


class NewSessionRequest(Struct, frozen=True, kw_only=True):
    """Request parameters for creating a new session."""

    cwd: str
    additional_directories: tuple[str, ...] = field(default=(), name="additionalDirectories")
    mcp_servers: tuple[McpServer, ...] = field(name="mcpServers")
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class LoadSessionRequest(Struct, frozen=True, kw_only=True):
    """Request parameters for loading an existing session."""

    mcp_servers: tuple[McpServer, ...] = field(name="mcpServers")
    cwd: str
    additional_directories: tuple[str, ...] = field(default=(), name="additionalDirectories")
    session_id: str = field(name="sessionId")
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class ResumeSessionRequest(Struct, frozen=True, kw_only=True):
    """Request parameters for resuming an existing session."""

    session_id: str = field(name="sessionId")
    cwd: str
    additional_directories: tuple[str, ...] = field(default=(), name="additionalDirectories")
    mcp_servers: tuple[McpServer, ...] = field(default=(), name="mcpServers")
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class ListSessionsRequest(Struct, frozen=True, kw_only=True):
    """Request parameters for listing existing sessions."""

    cwd: str | None = None
    cursor: str | None = None
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class DeleteSessionRequest(Struct, frozen=True, kw_only=True):
    """Request parameters for deleting an existing session from `session/list`."""

    session_id: str = field(name="sessionId")
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class CloseSessionRequest(Struct, frozen=True, kw_only=True):
    """Request parameters for closing an active session."""

    session_id: str = field(name="sessionId")
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class SetSessionModeRequest(Struct, frozen=True, kw_only=True):
    """Request parameters for setting a session mode."""

    session_id: str = field(name="sessionId")
    mode_id: str = field(name="modeId")
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class SetSessionConfigOptionRequest(Struct, frozen=True, kw_only=True):
    """Request parameters for setting a session configuration option."""

    session_id: str = field(name="sessionId")
    config_id: str = field(name="configId")
    meta: dict[str, Any] | None = field(default=None, name="_meta")
    type: str | None = None
    value: bool | str


class TextContent(Struct, frozen=True, kw_only=True, tag_field="type", tag="text"):
    """Text provided to or from an LLM."""

    text: str
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class ImageContent(Struct, frozen=True, kw_only=True, tag_field="type", tag="image"):
    """An image provided to or from an LLM."""

    data: str
    mime_type: str = field(name="mimeType")
    uri: str | None = None
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class AudioContent(Struct, frozen=True, kw_only=True, tag_field="type", tag="audio"):
    """Audio provided to or from an LLM."""

    data: str
    mime_type: str = field(name="mimeType")
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class ResourceLink(Struct, frozen=True, kw_only=True, tag_field="type", tag="resource_link"):
    """A resource that the server is capable of reading."""

    description: str | None = None
    mime_type: str | None = field(default=None, name="mimeType")
    name: str
    size: int | None = None
    title: str | None = None
    uri: str
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class EmbeddedResourceResource(Struct, frozen=True, kw_only=True):
    """Resource content that can be embedded in a message."""

    mime_type: str | None = field(default=None, name="mimeType")
    text: str | None = None
    uri: str
    meta: dict[str, Any] | None = field(default=None, name="_meta")
    blob: str | None = None


class EmbeddedResource(Struct, frozen=True, kw_only=True, tag_field="type", tag="resource"):
    """The contents of a resource."""

    resource: EmbeddedResourceResource
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class PromptRequest(Struct, frozen=True, kw_only=True):
    """Request parameters for sending a user prompt to the agent."""

    session_id: str = field(name="sessionId")
    prompt: tuple[TextContent | ImageContent | AudioContent | ResourceLink | EmbeddedResource, ...]
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class CancelNotification(Struct, frozen=True, kw_only=True):
    """Notification to cancel ongoing operations for a session."""

    session_id: str = field(name="sessionId")
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class ReadTextFileResponse(Struct, frozen=True, kw_only=True):
    """Response containing the contents of a text file."""

    content: str
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class CancelledOutcome(Struct, frozen=True, kw_only=True, tag_field="outcome", tag="cancelled"):
    """`cancelled`."""


class SelectedPermissionOutcome(
    Struct, frozen=True, kw_only=True, tag_field="outcome", tag="selected"
):
    """The user selected one of the provided options."""

    option_id: str = field(name="optionId")
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class RequestPermissionResponse(Struct, frozen=True, kw_only=True):
    """Response to a permission request."""

    outcome: CancelledOutcome | SelectedPermissionOutcome
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class CreateElicitationResponse(Struct, frozen=True, kw_only=True):
    """Response from the client to an elicitation request."""

    meta: dict[str, Any] | None = field(default=None, name="_meta")
    action: str
    content: dict[str, Any] | None = None


class CreateTerminalResponse(Struct, frozen=True, kw_only=True):
    """Response containing the ID of the created terminal."""

    terminal_id: str = field(name="terminalId")
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class WaitForTerminalExitResponse(Struct, frozen=True, kw_only=True):
    """Response containing the exit status of a terminal command."""

    exit_code: int | None = field(default=None, name="exitCode")
    signal: str | None = None
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class TerminalExitStatus(Struct, frozen=True, kw_only=True):
    """Exit status of a terminal command."""

    exit_code: int | None = field(default=None, name="exitCode")
    signal: str | None = None
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class TerminalOutputResponse(Struct, frozen=True, kw_only=True):
    """Response containing the terminal output and exit status."""

    output: str
    truncated: bool
    exit_status: TerminalExitStatus | None = field(default=None, name="exitStatus")
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class ForkSessionRequest(Struct, frozen=True, kw_only=True):
    """`session/fork`, unstable: `_meta.kode.messageId` names the message to fork at."""

    session_id: str = field(name="sessionId")
    cwd: str
    additional_directories: tuple[str, ...] = field(default=(), name="additionalDirectories")
    mcp_servers: tuple[McpServer, ...] = field(default=(), name="mcpServers")
    meta: dict[str, Any] | None = field(default=None, name="_meta")
