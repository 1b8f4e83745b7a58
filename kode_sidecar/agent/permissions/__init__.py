"""Rules, the gate before every call, and questions to the user. See README.md."""

from kode_sidecar.agent.permissions.commands import CommandPermission
from kode_sidecar.agent.permissions.gate import EDIT_TOOLS, PermissionGate, preview
from kode_sidecar.agent.permissions.questions import (
    AskUserParams,
    Questions,
    UserQuestions,
    ask_user_tool,
)

__all__ = [
    "EDIT_TOOLS",
    "AskUserParams",
    "CommandPermission",
    "PermissionGate",
    "Questions",
    "UserQuestions",
    "ask_user_tool",
    "preview",
]
