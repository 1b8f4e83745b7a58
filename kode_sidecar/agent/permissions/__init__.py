"""Rules, the gate before every call, and questions to the user. See README.md."""

from kode_sidecar.agent.permissions.commands import CommandPermission, UserCommands
from kode_sidecar.agent.permissions.gate import UNASKED, PermissionGate, is_whole, preview
from kode_sidecar.agent.permissions.questions import (
    AskUserParams,
    Questions,
    UserQuestions,
    ask_user_tool,
)
from kode_sidecar.agent.permissions.web import UserWeb, WebPermission

__all__ = [
    "UNASKED",
    "AskUserParams",
    "CommandPermission",
    "PermissionGate",
    "Questions",
    "UserCommands",
    "UserQuestions",
    "UserWeb",
    "WebPermission",
    "ask_user_tool",
    "is_whole",
    "preview",
]
