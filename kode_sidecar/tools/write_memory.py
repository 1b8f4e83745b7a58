"""`write_memory`: keep something beyond the conversation (B10)."""

from collections.abc import Callable
from typing import Annotated, Literal

from msgspec import Meta, Struct

from kode_sidecar.context.memory import Memory
from kode_sidecar.domain.memory import MAX_CONTENT_CHARS, MAX_TAG_CHARS, MAX_TAGS
from kode_sidecar.errors import KodeError
from kode_sidecar.kernel.contracts import Tool, ToolCall, ToolOutcome
from kode_sidecar.text.shown_text import cut_line, one_line, without_controls
from kode_sidecar.workspace.credentials import find_secret

About = Literal["project", "user"]

_TOLD = {
    "candidate": "Noted as a candidate. It is remembered once the user has accepted it.",
    "accepted": "It is remembered.",
}


class WriteMemoryParams(Struct, forbid_unknown_fields=True):
    """Suggest something to remember beyond this conversation: one fact a call, in plain words.

    For what the user wants kept, or what would save the next conversation real work: a decision
    and its reason, a habit of the user, a trap of the project. Not for what the files say, for the
    state of this task, or for keys and passwords. The user may decide about each one.
    """

    content: Annotated[
        str,
        Meta(max_length=MAX_CONTENT_CHARS, description="One fact that can be understood alone"),
    ]
    about: Annotated[
        About, Meta(description="project: holds in this project; user: holds everywhere")
    ] = "project"
    tags: Annotated[
        tuple[Annotated[str, Meta(max_length=MAX_TAG_CHARS)], ...], Meta(max_length=MAX_TAGS)
    ] = ()


def write_memory_tool(memory: Memory, scope_of: Callable[[About], str]) -> Tool:
    """The tool; offer it unless memory is off. `scope_of` names the scope of what it is about."""

    async def run(params: WriteMemoryParams, call: ToolCall) -> ToolOutcome:  # noqa: ARG001
        content = without_controls(params.content).strip()
        if what := find_secret(content):
            raise KodeError("Denied", f"Not remembered: it holds {what}. Leave that out.")
        tags = tuple(tag for tag in (without_controls(tag).strip() for tag in params.tags) if tag)
        item = await memory.write(content, scope_of(params.about), tags)
        done = "Suggested" if item.state == "candidate" else "Kept"
        return ToolOutcome(
            ok=True,
            summary=f"{done} to remember: {cut_line(one_line(content), 80)}",
            content=_TOLD[item.state],
            data={"memory_id": item.id, "state": item.state},
        )

    return Tool("write_memory", WriteMemoryParams, run)
