"""Memories beyond a conversation: an item, its limits, and the best matches for a query."""

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
"""Where memory is saved: nowhere, in our own files, or in a service of the user."""
MemoryState = Literal["candidate", "accepted"]
"""A candidate is only a proposal: nothing recalls it before the user has accepted it."""

USER_SCOPE = "user"
"""The scope of memories that are valid everywhere."""

_WORD = re.compile(r"[^\W_]+")
_IDEOGRAPHS = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")


class MemoryItem(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One memory. `scope` is an opaque name of where it is valid; `created_at` is RFC 3339."""

    id: str
    content: str
    scope: str
    tags: tuple[str, ...] = ()
    created_at: str = ""
    state: MemoryState = "accepted"


def check_memory(content: str, scope: str, tags: Sequence[str]) -> None:
    """Check a memory. Raises KodeError `InvalidArguments` if a part is empty or too long."""
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
    """Return at most `limit` items: most words shared with the query first, then the newest.

    Items that share no word come last, as they may still matter. An empty query asks for the
    newest. The order of the result does not depend on that of `items`.
    """
    asked = _words(query)

    def rank(item: MemoryItem) -> tuple[int, str, str]:
        shared = len(asked & _words(" ".join([item.content, *item.tags])))
        return (shared, item.created_at, item.id)

    return sorted(items, key=rank, reverse=True)[:limit]


def _words(text: str) -> set[str]:
    """Return words in lower case; of scripts without spaces each pair of adjacent characters."""
    found: set[str] = set()
    for word in _WORD.findall(text.lower()):
        found.update(part for part in _IDEOGRAPHS.split(word) if part)
        for run in _IDEOGRAPHS.findall(word):
            found.update(run[at : at + 2] for at in range(max(1, len(run) - 1)))
    return found
