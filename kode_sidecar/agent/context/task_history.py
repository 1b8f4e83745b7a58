"""Hold the conversation about one task without steering, such as a scout's."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kode_sidecar.agent.context.builder import PromptContext
from kode_sidecar.agent.context.fitting import fit
from kode_sidecar.agent.context.token_count import Estimate, Rates, estimate
from kode_sidecar.core.domain.error_info import ErrorInfo
from kode_sidecar.core.domain.message import Message, Role, TextBlock, texts_of
from kode_sidecar.core.kernel.contracts import (
    Clock,
    Incoming,
    ModelRequest,
    NewId,
    ToolChoice,
    ToolSpec,
)


def _nothing_due() -> str | None:
    return None


class TaskHistory:
    """`kernel.contracts.Context` of one task, in memory.

    Every message carries `meta`; `window` is how many tokens the model reads. `keep` stores each
    finished message or raises KodeError `Storage`; `due` returns the reminder before the next
    step.
    """

    def __init__(
        self,
        prompt: PromptContext,
        keep: Callable[[Message], None],
        clock: Clock,
        new_id: NewId,
        *,
        meta: Mapping[str, Any],
        window: int | None,
        due: Callable[[], str | None] = _nothing_due,
    ) -> None:
        self._prompt = prompt
        self._keep = keep
        self._clock = clock
        self._new_id = new_id
        self._meta = meta
        self._window = window
        self._due = due
        self._messages: list[Message] = []

    @property
    def last_words(self) -> str:
        """The text of the newest answer that has any."""
        for message in reversed(self._messages):
            text = "\n".join(texts_of(message.content)).strip()
            if text and message.role == "assistant" and not message.is_api_error_message:
                return text
        return ""

    def open(self, role: Role, meta: Mapping[str, Any]) -> Message:
        """Return a new, empty message below the newest."""
        newest = self._messages[-1] if self._messages else None
        return Message(
            id=self._new_id("message"),
            session_id=self._prompt.session_id,
            role=role,
            parent_id=newest.id if newest else None,
            depth=newest.depth + 1 if newest else 0,
            created_at=self._clock.timestamp(),
            meta={**meta, **self._meta},
        )

    def commit(self, message: Message) -> None:
        """Store the finished message and make it the newest. Raises KodeError `Storage`."""
        self._messages.append(message)
        self._keep(message)

    async def request(self, tools: Sequence[ToolSpec], tool_choice: ToolChoice) -> ModelRequest:
        """Return the next request, without the oldest results if it is too large."""
        request = self._prompt.request(self._messages, tools, tool_choice)
        return fit(request, self._window, _size).request

    async def recover(self, error: ErrorInfo) -> bool:
        """Return False, because a refused request ends the task."""
        del error
        return False

    def take_incoming(self) -> Sequence[Incoming]:
        """Return the reminder that is due, if any."""
        text = self._due()
        if text is None:
            return ()
        return (Incoming("user", (TextBlock(text=text),), {"origin": "reminder"}),)

    def wants_another_step(self) -> bool:
        """Return False, because there is no steering."""
        return False


def _size(request: ModelRequest) -> Estimate:
    return estimate(request, {}, Rates())
