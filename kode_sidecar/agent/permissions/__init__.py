"""Rules, the gate before every call, and questions to the user. See README.md."""

from kode_sidecar.agent.permissions.commands import CommandPermission, UserCommands
from kode_sidecar.agent.permissions.gate import PermissionGate, preview
from kode_sidecar.agent.permissions.questions import (
    AskUserParams,
    Questions,
    UserQuestions,
    ask_user_tool,
)

__all__ = [
    "AskUserParams",
    "CommandPermission",
    "PermissionGate",
    "Questions",
    "UserCommands",
    "UserQuestions",
    "ask_user_tool",
    "preview",
]
