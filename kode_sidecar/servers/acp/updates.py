"""Sends the numbered events of one session as `session/update` notifications, in order."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kode_sidecar.core.domain.agent_event import (
    BlockCompleted,
    BlockDelta,
    BlockDropped,
    BlockStarted,
    ChangeSetUpdated,
    ContextCompacted,
    Event,
    MessageAdded,
    MessageCompleted,
    ModelWaiting,
    Notice,
    PlanItem,
    PlanUpdated,
    ReviewUpdated,
    ScoutUpdated,
    SessionUpdated,
    ToolProgress,
    UsageUpdated,
)
from kode_sidecar.core.domain.hunk_state import UNSETTLED
from kode_sidecar.core.domain.message import TextBlock, ThinkingBlock, ToolResultBlock, ToolUseBlock
from kode_sidecar.core.domain.permission import EDIT_TOOLS
from kode_sidecar.servers.acp.client import ClientAbilities
from kode_sidecar.servers.acp.dialect import chunk_head
from kode_sidecar.servers.acp.tool_cards import (
    PLAN_TOOL,
    Json,
    diff_content,
    plan_entry,
    review_card,
    text_content,
    tool_call,
    tool_kind,
    tool_result,
)

_CHUNKS = {TextBlock: "agent_message_chunk", ThinkingBlock: "agent_thought_chunk"}
_SCOUT_STATES = {"running": "in_progress", "reporting": "in_progress"}
_OUTPUT_LINES = 10
_OUTPUT_SECONDS = 1.0
_AGAIN = "\n\n*[The connection broke; the answer begins again.]*\n\n"


@dataclass
class Card:
    """A tool call as the client shows it: `id` is its `toolCallId`, `content` what it shows.

    `refused`: the user rejected what it proposes.
    """

    id: str
    block: ToolUseBlock
    content: list[Json] = field(default_factory=list[Json])
    refused: bool = False

    @property
    def head(self) -> Json:
        """The first members of a question about the call."""
        kind = tool_kind(self.block)
        return {"toolCallId": self.id, "kind": kind, "content": self.content}


@dataclass
class _Growth:
    """A block being streamed: `head` begins each chunk, `sent` is how many characters were sent."""

    head: str
    sent: int = 0


@dataclass
class _Running:
    """A call that runs: the end of its output, and when it was shown last."""

    tool_use_id: str
    tail: str = ""
    shown_at: float = 0.0


class SessionUpdates:
    """Turns events into updates. A prompt is not echoed to the client that sent it.

    `notify(update)` sends an update, `grow(delta)` a chunk. `cards` are the calls without a result,
    by the model's ids; `used` is the size in tokens of the newest request with its answer; `window`
    returns the model's context window.
    """

    def __init__(
        self,
        session_id: str,
        folder: Path,
        client: ClientAbilities,
        notify: Callable[[Json], None],
        grow: Callable[[BlockDelta], None],
        window: Callable[[], int | None],
        config: Callable[[], Sequence[Json]],
    ) -> None:
        self._session_id = session_id
        self._folder = folder
        self._client = client
        self._notify = notify
        self._grow = grow
        self._window = window
        self._config = config
        self._roles: dict[str, str] = {}
        self._summaries: set[str] = set()
        self._growing: dict[str, _Growth] = {}
        self._running: dict[str, _Running] = {}
        self._scouts: dict[str, Json] = {}
        self._plan: Sequence[PlanItem] = ()
        self.cards: dict[str, Card] = {}
        self.used = 0

    def send(self, event: Event) -> None:
        """Send what an event means for the client."""
        match event:
            case MessageAdded() | MessageCompleted():
                self._message(event)
            case BlockStarted() | BlockCompleted() | BlockDropped():
                if event.message_id in self._summaries and isinstance(event, BlockCompleted):
                    self._summary(event)
                elif self._roles.get(event.message_id) in ("assistant", "tool"):
                    self._block(event)
            case ToolProgress() | ScoutUpdated() | PlanUpdated() | ReviewUpdated():
                self._progress(event)
            case ChangeSetUpdated():
                self._proposed(event)
            case ContextCompacted():
                self._compaction(event.summary_message_id, "completed")
            case SessionUpdated():
                self._session(event)
            case UsageUpdated():
                self._usage(event)
            case Notice():
                self.notice(event.level, event.message)
            case ModelWaiting() if self._client.shows_notices:
                self.notice("info", event.message)
            case _:
                pass

    def delta(self, delta: BlockDelta) -> None:
        """Send the growth of a text or a thought; tool arguments are sent only when complete."""
        growth = self._growing.get(delta.block_id)
        if growth is not None:
            growth.sent = delta.at + len(delta.add)
            self._grow(BlockDelta(growth.head, delta.at, delta.add))
        elif (running := self._running.get(delta.block_id)) is not None:
            self._output(running, delta.add)

    def notice(self, level: str, text: str) -> None:
        """Show a notice. A client without notices gets all but `info` as text of the answer."""
        if self._client.shows_notices:
            self._notify({"sessionUpdate": "notice", "severity": level, "title": text or level})
        elif level != "info":
            self.say(f"\n\n⚠ {text}\n\n")

    def say(self, text: str) -> None:
        """Send text of the sidecar that is not part of any message."""
        content = {"type": "text", "text": text}
        self._notify({"sessionUpdate": "agent_message_chunk", "content": content})

    def show(self, card: Card, content: Sequence[Json]) -> None:
        """Add to what the card of a call shows."""
        card.content.extend(content)
        self._card(card, {"status": "in_progress", "content": card.content})

    def editing(self) -> Card | None:
        """Return the call that proposes edits now; such calls run one by one, in answer order."""
        calls = (card for card in self.cards.values() if card.block.name in EDIT_TOOLS)
        return next(calls, None)

    def _message(self, event: MessageAdded | MessageCompleted) -> None:
        if isinstance(event, MessageAdded):
            self._roles[event.message_id] = event.role
            if event.meta.get("origin") == "compaction":
                self._summaries.add(event.message_id)
                self._compaction(event.message_id, "in_progress")
            return
        self._roles.pop(event.message_id, None)
        self._summaries.discard(event.message_id)
        if event.usage is not None:
            self.used = event.usage.input_tokens + event.usage.output_tokens
        for card in self.cards.values():
            if card.block.id and not card.content:
                self._card(card, {"status": "in_progress"})

    def _block(self, event: BlockStarted | BlockCompleted | BlockDropped) -> None:
        if isinstance(event, BlockDropped):
            growth = self._growing.pop(event.block_id, None)
            if growth is not None and growth.sent:
                self.say(_AGAIN)
            self._drop_card(event.block_id)
            return
        match event.block:
            case TextBlock() | ThinkingBlock():
                self._text(event, event.block)
            case ToolUseBlock(name=name) if name != PLAN_TOOL:
                self._call(event, event.block)
            case ToolResultBlock() if isinstance(event, BlockCompleted):
                self._running.pop(event.block_id, None)
                self._result(event.block)
            case ToolResultBlock():
                self._running[event.block_id] = _Running(event.block.tool_use_id)
            case _:
                pass

    def _text(self, event: BlockStarted | BlockCompleted, block: TextBlock | ThinkingBlock) -> None:
        """Send the part of a block that no delta has sent yet."""
        growth = self._growing.get(event.block_id)
        if growth is None:
            head = chunk_head(self._session_id, _CHUNKS[type(block)], event.message_id)
            growth = self._growing[event.block_id] = _Growth(head)
        rest = block.text[growth.sent :]
        if rest:
            self._grow(BlockDelta(growth.head, growth.sent, rest))
            growth.sent += len(rest)
        if isinstance(event, BlockCompleted):
            del self._growing[event.block_id]

    def _call(self, event: BlockStarted | BlockCompleted, block: ToolUseBlock) -> None:
        card = self.cards.get(block.tool_use_id)
        reported = card is not None and card.id == event.block_id
        if card is None or not reported:
            card = self.cards[block.tool_use_id] = Card(event.block_id, block)
        card.block = block
        members = tool_call(block, self._folder)
        if isinstance(event, BlockStarted):
            del members["rawInput"]
        kind = "tool_call_update" if reported else "tool_call"
        status = {} if reported else {"status": "pending"}
        self._notify({"sessionUpdate": kind, "toolCallId": card.id, **members, **status})

    def _result(self, block: ToolResultBlock) -> None:
        card = self.cards.pop(block.tool_use_id, None)
        if card is not None:
            members = tool_result(card.block.name, block, card.content)
            self._card(card, members | ({"status": "failed"} if card.refused else {}))
        if self._scouts and not self.cards:
            self._scouts.clear()

    def _drop_card(self, block_id: str) -> None:
        for key, card in list(self.cards.items()):
            if card.id == block_id:
                del self.cards[key]
                self._card(card, {"status": "failed"})

    def _progress(self, event: ToolProgress | ScoutUpdated | PlanUpdated | ReviewUpdated) -> None:
        if isinstance(event, PlanUpdated):
            self._plan = event.items
            self._send_plan()
            return
        card = self.cards.get(event.tool_use_id)
        if isinstance(event, ScoutUpdated):
            self._scout(event)
        elif isinstance(event, ReviewUpdated):
            if card is not None:
                found = review_card(event, self._folder)
                card.content[:] = found["content"]
                self._card(card, {"status": "in_progress", **found})
        elif card is not None and event.message:
            shown = [*card.content, text_content(event.message)]
            self._card(card, {"status": "in_progress", "content": shown})

    def _output(self, running: _Running, added: str) -> None:
        """Show the last lines of a command's output, once a second: each update replaces them."""
        running.tail = "\n".join((running.tail + added).split("\n")[-_OUTPUT_LINES - 1 :])
        card, now = self.cards.get(running.tool_use_id), time.monotonic()
        if card is None or not running.tail.strip() or now < running.shown_at + _OUTPUT_SECONDS:
            return
        running.shown_at = now
        shown = [*card.content, text_content(running.tail.rstrip("\n"))]
        self._card(card, {"status": "in_progress", "content": shown})

    def _scout(self, event: ScoutUpdated) -> None:
        """Show a scout's task as an entry of the plan."""
        status = _SCOUT_STATES.get(event.state, "completed")
        entry = {"content": event.title, "priority": "medium", "status": status}
        if self._scouts.get(event.scout_id) != entry:
            self._scouts[event.scout_id] = entry
            self._send_plan()

    def _send_plan(self) -> None:
        """Send the whole plan, as each update replaces it: the model's steps, then its scouts."""
        steps = [plan_entry(item.text, item.state) for item in self._plan]
        self._notify({"sessionUpdate": "plan", "entries": [*steps, *self._scouts.values()]})

    def _proposed(self, event: ChangeSetUpdated) -> None:
        """Show new hunks in the card of the call that proposes them, and why some do not land."""
        card = self.editing()
        found = [
            diff_content(file, hunk)
            for file in event.files
            for hunk in file.hunks
            if hunk.kind is not None and hunk.state == "proposed"
        ]
        lost = [
            f"{file.path}: {hunk.reason}"
            for file in event.files
            for hunk in file.hunks
            if hunk.state in UNSETTLED and hunk.reason
        ]
        if card is not None and found:
            self.show(card, found)
        for line in lost:
            if card is not None:
                self.show(card, [text_content(line)])
            else:
                self.notice("warning", line)

    def _summary(self, event: BlockCompleted) -> None:
        if isinstance(event.block, TextBlock) and self._client.shows_compaction:
            content = {"type": "text", "text": event.block.text}
            update = {"compactionId": event.message_id, "content": content}
            self._notify({"sessionUpdate": "compaction_summary_chunk", **update})

    def _compaction(self, compaction_id: str, status: str) -> None:
        if self._client.shows_compaction:
            update = {"compactionId": compaction_id, "status": status}
            self._notify({"sessionUpdate": "compaction_update", **update})

    def _session(self, event: SessionUpdated) -> None:
        if event.title is not None:
            self._notify({"sessionUpdate": "session_info_update", "title": event.title or None})
        if event.mode is not None:
            mode = shown_mode(event.mode)
            self._notify({"sessionUpdate": "current_mode_update", "currentModeId": mode})
        if event.mode is not None or event.model is not None:
            options = list(self._config())
            self._notify({"sessionUpdate": "config_option_update", "configOptions": options})

    def _usage(self, event: UsageUpdated) -> None:
        """Send the usage, unless the size of the model's context window is unknown."""
        size = self._window()
        if size is None:
            return
        update: Json = {"sessionUpdate": "usage_update", "used": self.used, "size": size}
        if event.cost is not None:
            update["cost"] = {"amount": event.cost.amount, "currency": event.cost.currency}
        self._notify(update)

    def _card(self, card: Card, members: Json) -> None:
        self._notify({"sessionUpdate": "tool_call_update", "toolCallId": card.id, **members})


def shown_mode(mode: str) -> str:
    """Return the mode as ACP shows it: `review` becomes `ask`, as nobody could decide later."""
    return "ask" if mode == "review" else mode
