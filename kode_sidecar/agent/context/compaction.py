"""Decide what a summary replaces in the history that the model sees (C11). Sans-IO.

A summary is a message of the tree with `meta.origin` = `compaction`: branches below it begin with
it, other branches are not affected. So moving the head to its parent undoes it, as does leaving it
out, and no message on disk ever changes. `meta.keeps` names the first message before the summary
that stays as it is.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kode_sidecar.agent.context.prompt_files import PromptFiles
from kode_sidecar.agent.context.token_count import message_weight
from kode_sidecar.agent.context.user_edits import in_force, only_pinned
from kode_sidecar.core.domain.context_edits import ContextEdits
from kode_sidecar.core.domain.message import KEEPS, Message, TextBlock, texts_of

_KEPT_SHARE = 0.15
_KEPT_WEIGHT = 20_000.0
_MOST_KEPT = 0.3
_MOST_SAID = 0.5
_QUOTED_CHARS = 8_000


@dataclass(frozen=True)
class CompactionTexts:
    """The texts for the model: how to write a summary, and the frames around it."""

    instruction: str
    summary: Callable[[str], str]
    request: Callable[[str], str]


def compaction_texts(prompts: PromptFiles) -> CompactionTexts:
    """Read the texts from the prompt files. Raises KodeError `ConfigInvalid`."""
    return CompactionTexts(
        instruction=prompts.read("compaction_instruction"),
        summary=lambda text: prompts.read("compaction_summary", {"summary": text}),
        request=lambda text: prompts.read("compaction_request", {"request": text}),
    )


def after_summary(path: Sequence[Message], pinned: Collection[str] = ()) -> list[Message]:
    """Return what the model sees of a path: its newest summary, the kept messages, and the rest.

    `pinned` messages are kept, too.
    """
    summaries = [at for at, message in enumerate(path) if message.is_summary]
    if not summaries:
        return list(path)
    at = summaries[-1]
    first = path[at].meta.get(KEEPS)
    kept = next((start for start in range(at) if path[start].id == first), at)
    # This summary already covers an older one.
    beside = [one for one in path[kept:at] if not one.is_summary]
    return [path[at], *only_pinned(path[:kept], pinned), *beside, *path[at + 1 :]]


def is_undone(
    path: Sequence[Message], below: Callable[[str], Sequence[Message]], edits: ContextEdits
) -> bool:
    """True if the user undid a summary of this path; then none is made unasked.

    They left it out, or moved the head to a message before it. `below` returns a message's
    children. A summary belongs to the path if its parent is on the path, or is an unanswered
    prompt below it.
    """
    valid = {one.id for one in in_force(path, edits)}
    counts = (at for at, one in enumerate(path) if one.is_summary and one.id in valid)
    start = max(counts, default=0)
    if any(one.id not in valid for one in path[start:]):
        return True
    known = {message.id for message in path}
    nearby = [child for message in path[start:] for child in below(message.id)]
    while nearby:
        message = nearby.pop()
        if message.id in known or message.role != "user":
            continue
        if message.is_summary:
            return True
        nearby += below(message.id)
    return False


def kept_from(messages: Sequence[Message], window: int | None, pinned: Collection[str] = ()) -> int:
    """Return the index of the first message that a summary keeps: the newest, with whole calls.

    The user's unanswered words are always kept, unless they are too large. `pinned` messages right
    after an older summary are from before it: the kept part never begins there.
    """
    weights = [message_weight(message) for message in messages]
    room = min(_KEPT_WEIGHT, _MOST_KEPT * sum(weights))
    if window is not None:
        room = min(room, _KEPT_SHARE * window)
    first = 1 + max((at for at, one in enumerate(messages) if one.is_summary), default=0)
    while first < len(messages) and messages[first].id in pinned:
        first += 1
    begin = _unanswered_from(messages, first)
    said = sum(weights[begin:])
    if window is not None and said > _MOST_SAID * window:
        begin, said = len(messages), 0.0
    prompt = begin if any(one.is_prompt for one in messages[begin:]) else None
    room -= said
    for at in range(begin - 1, first - 1, -1):
        room -= weights[at]
        if room < 0:
            break
        if messages[at].role in ("user", "assistant"):
            begin = at
        if messages[at].is_prompt:
            prompt = at
    return begin if prompt is None else prompt


def _unanswered_from(messages: Sequence[Message], first: int) -> int:
    """Return the index of the first unanswered message of the user, at the end."""
    at = len(messages)
    while at > first and messages[at - 1].role == "user":
        at -= 1
    return at


def summary_content(
    texts: CompactionTexts, summary: str, dropped: Sequence[Message]
) -> tuple[TextBlock, ...]:
    """Return the text of a summary message; it repeats the current prompt if that was dropped."""
    blocks = [TextBlock(text=texts.summary(summary))]
    if dropped and dropped[-1].role != "assistant":
        prompt = next((one for one in reversed(dropped) if one.is_prompt), None)
        said = "\n\n".join(texts_of(prompt.content)) if prompt is not None else ""
        if said:
            blocks.append(TextBlock(text=texts.request(said[:_QUOTED_CHARS])))
    return tuple(blocks)


def summary_meta(kept: Sequence[Message]) -> Mapping[str, Any]:
    """Return the meta that marks a summary and names the first message it keeps."""
    meta = {"origin": "compaction"}
    return meta | {KEEPS: kept[0].id} if kept else meta
