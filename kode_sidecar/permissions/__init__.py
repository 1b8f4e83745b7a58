"""Rules, the gate before every call, and questions to the user. See README.md."""

from kode_sidecar.permissions.ask_user import Questions, ask_user_tool
from kode_sidecar.permissions.gate import PermissionGate, preview
from kode_sidecar.permissions.questions import UserQuestions
from kode_sidecar.permissions.rules import EDIT_TOOLS

__all__ = ["EDIT_TOOLS", "PermissionGate", "Questions", "UserQuestions", "ask_user_tool", "preview"]
