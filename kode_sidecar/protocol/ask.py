"""`kode/ask`: a choice that the model puts to the user."""

from msgspec import Struct


class AskParams(Struct, frozen=True, kw_only=True, rename="camel"):
    """Ask the user to choose; with `multi` more than one of `choices`.

    When nobody answers in time, or the turn is cancelled, `$/cancelRequest` takes it back.
    """

    request_id: str
    session_id: str
    turn_id: str
    tool_use_id: str
    question: str
    choices: tuple[str, ...]
    multi: bool


class AskResult(Struct, frozen=True):
    """What the user chose of the choices, word for word; nothing when they closed the question."""

    choices: tuple[str, ...]
