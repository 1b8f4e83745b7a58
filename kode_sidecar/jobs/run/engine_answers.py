"""One answer of an engine without the kernel's loop, as a message of the session."""

from collections.abc import Sequence

from msgspec.structs import replace

from kode_sidecar.core.domain.agent_event import BlockDelta, BlockStarted
from kode_sidecar.core.domain.error_info import ErrorInfo
from kode_sidecar.core.domain.message import Block, Message, TextBlock, ToolUseBlock, Usage
from kode_sidecar.core.kernel import block_events, message_added, message_completed
from kode_sidecar.core.kernel.contracts import Context, Emit, TurnScope


class EngineAnswer:
    """An answer from its first character to the message that is saved; `end` or `fail` it once."""

    def __init__(self, scope: TurnScope, context: Context, emit: Emit) -> None:
        self._scope = scope
        self._context = context
        self._emit = emit
        self._message = context.open("assistant", {})
        self._text_id = ""
        self._text = ""
        self.is_open = True
        emit(message_added(self._message, scope.turn_id))

    def grow(self, text: str) -> None:
        """Emit more text of the answer."""
        if not text:
            return
        if not self._text_id:
            self._text_id = self._scope.new_id("block")
            self._emit(
                BlockStarted(
                    turn_id=self._scope.turn_id,
                    message_id=self._message.id,
                    block_id=self._text_id,
                    block=TextBlock(id=self._text_id, text=""),
                )
            )
        self._emit(BlockDelta(self._text_id, len(self._text), text))
        self._text += text

    def end(
        self,
        text: str,
        calls: Sequence[ToolUseBlock],
        *,
        model: str,
        usage: Usage | None = None,
    ) -> Sequence[ToolUseBlock]:
        """Save the whole answer; return its calls with their ids. Raises KodeError `Storage`."""
        named = [replace(call, id=self._scope.new_id("block")) for call in calls]
        blocks = [*self._said(text), *named]
        self._close(replace(self._message, content=tuple(blocks), model=model, usage=usage))
        return named

    def stop(self, error: ErrorInfo | None = None) -> None:
        """Save what came, and the `error` that ended it. Raises KodeError `Storage`."""
        blocks = self._said(self._text)
        if error is not None:
            blocks.append(TextBlock(id=self._scope.new_id("block"), text=error.message))
        failed = error is not None
        self._close(
            replace(self._message, content=tuple(blocks), is_api_error_message=failed),
        )

    def _said(self, text: str) -> list[Block]:
        block_id = self._text_id or self._scope.new_id("block")
        return [TextBlock(id=block_id, text=text)] if text or self._text_id else []

    def _close(self, message: Message) -> None:
        self.is_open = False
        self._context.commit(message)
        for block in message.content:
            started, completed = block_events(block, self._scope.turn_id, message.id)
            if block.id != self._text_id:
                self._emit(started)
            self._emit(completed)
        self._emit(message_completed(message, self._scope.turn_id))
