"""One conversation: writes the events of its session into its chat document."""

from collections.abc import Callable

from kode_sidecar.core.domain.agent_event import (
    BlockCompleted,
    BlockDelta,
    BlockDropped,
    BlockStarted,
    Event,
    MessageAdded,
    TurnCompleted,
    TurnStarted,
)
from kode_sidecar.core.domain.message import Message, TextBlock, ToolResultBlock, texts_of
from kode_sidecar.core.text.shown_text import cut_line, one_line, without_controls
from kode_sidecar.servers.plain.chat_document import ChatDocument
from kode_sidecar.servers.plain.chat_text import KODE
from kode_sidecar.servers.plain.selections import shown_prompt
from kode_sidecar.servers.plain.texts import Texts

_CARD_CHARS = 160


class Chat:
    """Follows a session. Texts grow as they stream; a tool call is one line once it has ended.

    `ended(event, answer)` is called at the end of each turn, with the last text of the model.
    """

    def __init__(
        self,
        session_id: str,
        document: ChatDocument,
        texts: Texts,
        ended: Callable[["Chat", TurnCompleted, str], None],
    ) -> None:
        self.session_id = session_id
        self.document = document
        self.turn_id: str | None = None
        self._texts = texts
        self._ended = ended
        self._roles: dict[str, str] = {}
        self._blocks: set[str] = set()
        self._growing: dict[str, str] = {}
        self._answer = ""

    def create(self) -> None:
        """Create the document, if it is missing. Raises OSError."""
        self.document.write(f"# kode\n\n{self.user_heading()}\n\n")

    def restore(self, messages: list[Message]) -> None:
        """Create the document of an earlier session from its messages, if it is missing."""
        parts = ["# kode"]
        answers = 0
        for message in messages:
            text = "\n\n".join(texts_of(message.content))
            if not text or message.origin:
                continue
            if message.role == "user":
                parts.append(f"{self.user_heading()}\n\n{shown_prompt(text)}")
            elif message.role == "assistant":
                answers += 1
                parts.append(f"{KODE} · {answers}\n\n{text}")
        parts.append(f"{self.user_heading()}\n\n")
        self.document.write("\n\n".join(parts))

    def user_heading(self) -> str:
        """Return the heading of the user's prompts."""
        return f"## {self._texts('you')}"

    def begin(self, prompt: str | None) -> None:
        """Begin an answer; `prompt` is what was asked, unless it stands in the document."""
        heading = self.user_heading()
        waits = self.document.text().rstrip().endswith(heading)
        opening = shown_prompt(prompt) if prompt else ""
        if opening and not waits:
            opening = f"{heading}\n\n{opening}"
        self._answer = ""
        self.document.begin(opening)

    def owns(self, block_id: str) -> bool:
        """Whether the block belongs to this conversation; only the model's texts are shown."""
        return block_id in self._blocks

    def grow(self, delta: BlockDelta) -> None:
        """Write new text of a block."""
        known = self._growing.get(delta.block_id)
        if known is None:
            return  # a thought, or the arguments of a call
        new = delta.add[max(len(known) - delta.at, 0) :]
        self._growing[delta.block_id] = known + new
        self._answer += new
        self.document.add(new)

    def follow(self, event: Event) -> None:
        """Write what an event adds."""
        match event:
            case TurnStarted():
                self.turn_id = event.turn_id
            case MessageAdded():
                self._roles[event.message_id] = event.role
            case BlockStarted():
                self._blocks.add(event.block_id)
                if self._is_answer(event.message_id, event.block):
                    self._growing[event.block_id] = ""
                    self._answer = ""
            case BlockCompleted():
                self._complete(event)
            case BlockDropped():
                if self._growing.pop(event.block_id, ""):
                    self.document.add(" …\n\n")
            case TurnCompleted():
                self._end(event)
            case _:
                pass

    def _is_answer(self, message_id: str, block: object) -> bool:
        return isinstance(block, TextBlock) and self._roles.get(message_id) == "assistant"

    def _complete(self, event: BlockCompleted) -> None:
        block = event.block
        if isinstance(block, TextBlock) and event.block_id in self._growing:
            rest = block.text[len(self._growing.pop(event.block_id)) :]
            self._answer += rest
            self.document.add(f"{rest}\n\n")
        elif isinstance(block, ToolResultBlock) and block.summary:
            line = cut_line(one_line(without_controls(block.summary)), _CARD_CHARS)
            self.document.add(f"> {line}\n\n")

    def _end(self, event: TurnCompleted) -> None:
        self.turn_id = None
        self._roles.clear()
        self._blocks.clear()
        if event.error is not None and event.error.message not in self._answer:
            self.document.add(f"**{one_line(event.error.message)}**\n\n")
        elif event.stop_reason == "cancelled":
            self.document.add(f"*{self._texts('stopped')}*\n\n")
        self.document.end(f"{self.user_heading()}\n\n")
        self._ended(self, event, self._answer)
