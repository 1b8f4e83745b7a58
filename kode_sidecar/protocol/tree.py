"""Params and results of `kode/tree/*`: the tree of messages and its head."""

from msgspec import Struct

from kode_sidecar.domain.message import Role


class TreeNode(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A message without its blocks. `parent_id` is absent at a root.

    `origin` tells what is no word of the user among the `user` messages: `reminder`, `steer`,
    `compaction`. `text` is the first line of what it says, cut; `tools` are the tools it calls.
    """

    message_id: str
    role: Role
    parent_id: str | None = None
    depth: int = 0
    version: int = 1
    created_at: str = ""
    turn_id: str = ""
    origin: str = ""
    text: str = ""
    tools: tuple[str, ...] = ()
    is_api_error_message: bool = False


class TreeGetParams(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """`limit` is at most 5000; `cursor` is the `next_cursor` of the page before."""

    session_id: str
    cursor: str | None = None
    limit: int = 1_000


class TreeGetResult(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """All messages in the order written, so parents come first.

    `head_id` is the message the next turn starts below; absent before the first one. Without
    `next_cursor` there is no more.
    """

    nodes: tuple[TreeNode, ...]
    head_id: str | None = None
    next_cursor: str | None = None


class TreeSetHeadParams(Struct, frozen=True, kw_only=True, rename="camel"):
    """`message_id` `null`: before the first message."""

    session_id: str
    message_id: str | None
