"""The agent engine: knows no provider and no editor. See README.md; import from here only."""

from kode_sidecar.core.kernel.call_cards import CallCards, read_arguments
from kode_sidecar.core.kernel.message_assembler import MessageAssembler
from kode_sidecar.core.kernel.model_step import (
    ModelStep,
    block_events,
    message_added,
    message_completed,
)
from kode_sidecar.core.kernel.tool_runner import (
    ToolRun,
    bounded_output,
    spec_of,
    tool_specs,
)
from kode_sidecar.core.kernel.turn_loop import run_turn, tool_message

__all__ = [
    "CallCards",
    "MessageAssembler",
    "ModelStep",
    "ToolRun",
    "block_events",
    "bounded_output",
    "message_added",
    "message_completed",
    "read_arguments",
    "run_turn",
    "spec_of",
    "tool_message",
    "tool_specs",
]
