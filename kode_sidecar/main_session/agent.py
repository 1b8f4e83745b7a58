"""The room's second door: what runs turns. Loaded by a thread, after the process answers."""

from kode_sidecar.main_session.ask_user_tool import Questions
from kode_sidecar.main_session.edit_locks import EditLocks
from kode_sidecar.main_session.repair import repair
from kode_sidecar.main_session.services import EncodedRequest, SessionServices
from kode_sidecar.main_session.session import Session
from kode_sidecar.main_session.token_meter import LearnedRates
from kode_sidecar.main_session.toolset import Toolbox
from kode_sidecar.main_session.user_questions import UserQuestions

__all__ = [
    "EditLocks",
    "EncodedRequest",
    "LearnedRates",
    "Questions",
    "Session",
    "SessionServices",
    "Toolbox",
    "UserQuestions",
    "repair",
]
