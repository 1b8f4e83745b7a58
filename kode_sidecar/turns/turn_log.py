"""What a turn leaves in the log: the prompt, each answer, each tool result, the end."""

from collections.abc import Callable, Sequence

from kode_sidecar.domain.agent_event import TurnCompleted
from kode_sidecar.domain.message import Message, TextBlock, ToolResultBlock, ToolUseBlock
from kode_sidecar.records.json_log import JsonLog, LogScope
from kode_sidecar.turns.context import TurnContext

_MODULE = "turns"


def _log_messages(log: JsonLog, turn_id: str, provider: str, messages: Sequence[Message]) -> None:
    """A line per message. Prompts and answers are content; of tool results the summary."""
    for message in messages:
        answered = message.provider or provider
        scope = LogScope(turn_id, message.session_id, message.id, answered)
        text = "".join(block.text for block in message.content if isinstance(block, TextBlock))
        if message.role == "tool":
            for block in message.content:
                if isinstance(block, ToolResultBlock):
                    log.write(
                        "info",
                        _MODULE,
                        "tool_result",
                        scope,
                        tool_use_id=block.tool_use_id,
                        status=block.status,
                        summary=block.summary,
                    )
        elif message.role == "assistant":
            tools = [block.name for block in message.content if isinstance(block, ToolUseBlock)]
            log.write(
                "error" if message.is_api_error_message else "info",
                _MODULE,
                "answer",
                scope,
                duration_ms=message.duration_ms,
                tokens=message.usage,
                content={"reply": text},
                model=message.model,
                tools=tools,
            )
        else:
            log.write("info", _MODULE, "prompt", scope, content={"prompt": text})


def log_turn(
    log: JsonLog,
    provider: Callable[[str], str],
    context: TurnContext,
    completed: TurnCompleted,
) -> None:
    """A line per message of a turn, and its last one. `provider` is who is asked for a model."""
    _log_messages(log, context.turn_id, provider(context.model), context.messages)
    log.write(
        "error" if completed.error else "info",
        _MODULE,
        "turn_completed",
        LogScope(context.turn_id, context.session_id),
        duration_ms=completed.duration_ms,
        tokens=completed.usage,
        stop_reason=completed.stop_reason,
        error=completed.error and completed.error.code,
        error_message=completed.error and completed.error.message,
        error_details=completed.error and completed.error.details,
    )
