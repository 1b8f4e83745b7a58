"""What an editor shows of a session, piece by piece; `fold.SessionFold` fills it."""

from dataclasses import dataclass, field
from typing import Any, Literal

Json = dict[str, Any]


@dataclass
class BlockView:
    """A content block. `text` is what has grown so far, see `kode/delta`.

    `lost`: a delta went missing, so `text` ends too early until the block is completed.
    """

    id: str
    type: str
    block: Json
    text: str = ""
    state: Literal["open", "completed"] = "open"
    lost: bool = False
    progress: str = ""

    def grow(self, at: int, add: str) -> str:
        """Apply one delta; returns what was really new.

        `at` counts code points. Beyond what is here: something was lost, nothing is added.
        Not beyond with its end: a duplicate. Otherwise the part that is new is added.
        """
        have = len(self.text)
        if at > have:
            self.lost = True
            return ""
        new = add[have - at :]
        self.text += new
        return new

    def complete(self, block: Json) -> None:
        """The authoritative block."""
        self.block = block
        self.state = "completed"
        self.lost = False
        if self.type in ("text", "thinking"):  # what their deltas grew
            self.text = block.get("text", "")


@dataclass
class MessageView:
    """A message with its blocks in order; `info` holds the fields of its events."""

    id: str
    role: str
    parent_id: str | None = None
    info: Json = field(default_factory=dict[str, Any])
    blocks: list[BlockView] = field(default_factory=list[BlockView])
    completed: bool = False

    @property
    def text(self) -> str:
        """The text blocks, joined."""
        return "".join(block.text for block in self.blocks if block.type == "text")


@dataclass
class TurnView:
    """A turn; `stop_reason` is None while it runs, `result` its `turn.completed`."""

    id: str
    stop_reason: str | None = None
    result: Json = field(default_factory=dict[str, Any])


@dataclass
class ScoutView:
    """A scout: its newest `scout.updated`. `tool_use_id` is the `explore` call that sent it."""

    id: str
    title: str
    tool_use_id: str
    state: str
    tool_calls: int = 0
    elapsed_ms: int = 0


@dataclass
class HunkView:
    """A hunk: `info` was sent whole once; `state` is that of now."""

    id: str
    state: str
    info: Json


@dataclass
class FileView:
    """The hunks of a file by id, in order of appearance."""

    uri: str
    path: str
    version: int | None = None
    hunks: dict[str, HunkView] = field(default_factory=dict[str, HunkView])


@dataclass
class ChangeSetView:
    """A change set; files by URI."""

    id: str
    state: str
    files: dict[str, FileView] = field(default_factory=dict[str, FileView])

    def hunks(self, state: str | None = None) -> list[HunkView]:
        """Return all hunks, or those in one state."""
        every = [hunk for file in self.files.values() for hunk in file.hunks.values()]
        return [hunk for hunk in every if state is None or hunk.state == state]
