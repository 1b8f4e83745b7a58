"""What is remembered beyond a conversation: one thing, its bounds, and what belongs to a query."""

import re
from collections.abc import Iterable, Sequence
from typing import Literal

from msgspec import Struct

from kode_sidecar.errors import KodeError

MAX_CONTENT_CHARS = 4_000
MAX_SCOPE_CHARS = 200
MAX_TAGS = 20
MAX_TAG_CHARS = 50

MemoryMode = Literal["disabled", "candidate", "external"]
"""Where memory is saved: nowhere, in our own files, or with a service of the user's."""
MemoryState = Literal["candidate", "accepted"]
"""A candidate is only a proposal: nothing recalls it before the user has accepted it."""

USER_SCOPE = "user"
"""The scope of what holds wherever the user works."""

_WORD = re.compile(r"[^\W_]+")
_IDEOGRAPHS = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")


class MemoryItem(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing remembered. `scope` is where it holds, an opaque name; `created_at` RFC 3339."""

    id: str
    content: str
    scope: str
    tags: tuple[str, ...] = ()
    created_at: str = ""
    state: MemoryState = "accepted"


def check_memory(content: str, scope: str, tags: Sequence[str]) -> None:
    """Raises KodeError `InvalidArguments` for what is empty or too long."""
    if not content.strip():
        raise KodeError("InvalidArguments", "There is nothing to remember: `content` is empty.")
    if len(content) > MAX_CONTENT_CHARS:
        text = f"`content` has {len(content):,} characters; the limit is {MAX_CONTENT_CHARS:,}."
        raise KodeError("InvalidArguments", f"{text} Keep what matters.")
    if not scope or len(scope) > MAX_SCOPE_CHARS:
        raise KodeError("InvalidArguments", f"`scope` has 1 to {MAX_SCOPE_CHARS} characters.")
    if len(tags) > MAX_TAGS or any(not tag or len(tag) > MAX_TAG_CHARS for tag in tags):
        text = f"`tags` are at most {MAX_TAGS} words of 1 to {MAX_TAG_CHARS} characters."
        raise KodeError("InvalidArguments", text)


def best_matches(items: Iterable[MemoryItem], query: str, limit: int) -> list[MemoryItem]:
    """Return at most `limit`: those that share most words with the query first, then the newest.

    What shares none comes last, for it may matter all the same. An empty query asks for the
    newest. Equal items in any order give one order.
    """
    asked = _words(query)

    def rank(item: MemoryItem) -> tuple[int, str, str]:
        shared = len(asked & _words(" ".join([item.content, *item.tags])))
        return (shared, item.created_at, item.id)

    return sorted(items, key=rank, reverse=True)[:limit]


def _words(text: str) -> set[str]:
    """Words in lower case; of writing without spaces each two neighbouring characters."""
    found: set[str] = set()
    for word in _WORD.findall(text.lower()):
        found.update(part for part in _IDEOGRAPHS.split(word) if part)
        for run in _IDEOGRAPHS.findall(word):
            found.update(run[at : at + 2] for at in range(max(1, len(run) - 1)))
    return found
