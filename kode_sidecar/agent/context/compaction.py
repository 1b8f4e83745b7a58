"""Decide what a summary replaces in the history that the model sees (C11). Sans-IO.

A summary is a message of the tree with `meta.origin` = `compaction`: branches below it begin with
it, other branches are not affected. So moving the head to its parent undoes it, as does leaving it
out, and no message on disk ever changes. `meta.keeps` names the first message before the summary
that stays as it is, `meta.words` the first message from which on the user's own words stay, too:
they never pass through a model.
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from kode_sidecar.agent.context.left_out import in_force, only_pinned
from kode_sidecar.agent.context.prompt_files import PromptFiles
from kode_sidecar.agent.context.token_count import message_weight
from kode_sidecar.core.domain.context_edits import ContextEdits
from kode_sidecar.core.domain.message import (
    KEEPS,
    WORDS,
    Block,
    ImageBlock,
    Message,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
    texts_of,
)
from kode_sidecar.core.domain.model_event import FinishReason

_KEPT_SHARE = 0.15
_KEPT_WEIGHT = 20_000.0
_MOST_KEPT = 0.3
_MOST_SAID = 0.5
_QUOTED_CHARS = 4_000
_WORDS_SHARE = 0.25
_WORDS_WEIGHT = 60_000.0
_WHOLE_SUMMARY = 400
_SHORT_SUMMARY = 200.0
_REFUSES = re.compile(
    r"\W*(i('|\u2019)?m (very )?sorry|i am (very )?sorry|(i('|\u2019)?m|i am) (un|not )able"
    r"|sorry|i can('|\u2019)?t|i cannot|i won('|\u2019)?t|as an ai"
    r"|(非常|很)?抱歉|对不起|我(无法|不能|没办法))",
    re.IGNORECASE,
)


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

    `pinned` messages and the user's words stay, too.
    """
    summaries = [at for at, message in enumerate(path) if message.is_summary]
    if not summaries:
        return list(path)
    at = summaries[-1]
    first = path[at].meta.get(KEEPS)
    kept = next((start for start in range(at) if path[start].id == first), at)
    # This summary already covers an older one.
    beside = [one for one in path[kept:at] if not one.is_summary]
    stay = stays_beside(path[:kept], pinned, path[at].meta.get(WORDS))
    return [path[at], *stay, *beside, *path[at + 1 :]]


def stays_beside(
    dropped: Sequence[Message], pinned: Collection[str], words: object
) -> list[Message]:
    """Return what of the messages in a summary stays: pinned ones, and the user's from `words` on.

    `words` is the id of a message, or None.
    """
    start = next((at for at, one in enumerate(dropped) if one.id == words), len(dropped))
    stay = {one.id for one in dropped[start:] if one.is_of_user}
    return only_pinned(dropped, stay.union(pinned))


def words_from(dropped: Sequence[Message], window: int | None) -> str | None:
    """Return the id of the user's oldest message that stays below a summary; None if none does.

    Only so many stay that most of the window is left for the work.
    """
    room = _WORDS_WEIGHT if window is None else min(_WORDS_WEIGHT, _WORDS_SHARE * window)
    oldest: str | None = None
    for message in reversed(dropped):
        if message.is_of_user:
            room -= message_weight(message)
            if room < 0:
                break
            oldest = message.id
    return oldest


def why_no_summary(
    blocks: Sequence[Block], finish: FinishReason | None, dropped: Sequence[Message]
) -> str:
    """Return why an answer cannot take the place of messages; empty if it can."""
    text = "\n\n".join(texts_of(blocks)).strip()
    if finish in ("length", "incomplete"):
        return "it was cut off"
    if finish == "content_filter":
        return "the host's filter ended it"
    if any(isinstance(block, ToolUseBlock) for block in blocks):
        return "it calls tools"
    if not text:
        return "there are no words in it"
    if len(text) < _WHOLE_SUMMARY and _REFUSES.match(text):
        return "the model refused"
    gist = Message(id="", session_id="", role="user", content=(TextBlock(text=text),))
    gone = sum(message_weight(one) for one in dropped if not one.is_of_user)
    if message_weight(gist) >= max(gone, _SHORT_SUMMARY):
        return "it is longer than what it sums up"
    return ""


def without_pictures(message: Message) -> Message:
    """Return a message with a word in place of each picture: a summary needs none."""

    def words(blocks: Sequence[Block]) -> tuple[Any, ...]:
        return tuple(
            TextBlock(text=f"[a picture: {block.media_type}]")
            if isinstance(block, ImageBlock)
            else replace(block, content=words(block.content))
            if isinstance(block, ToolResultBlock)
            else block
            for block in blocks
        )

    return replace(message, content=words(message.content))


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
    first = _after_words(messages, pinned)
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


def _after_words(messages: Sequence[Message], pinned: Collection[str]) -> int:
    """Return the index of the first message that came after an older summary, or that it kept."""
    at = max((at for at, one in enumerate(messages) if one.is_summary), default=0)
    old, first = messages[at] if messages else None, at + 1
    words = old.meta.get(WORDS) if old is not None else None
    while first < len(messages):
        message = messages[first]
        before = words is not None and old is not None and message.depth < old.depth
        if message.id not in pinned and not (before and message.is_of_user):
            break
        if old is not None and message.id == old.meta.get(KEEPS):
            break
        first += 1
    return first


def _unanswered_from(messages: Sequence[Message], first: int) -> int:
    """Return the index of the first unanswered message of the user, at the end."""
    at = len(messages)
    while at > first and messages[at - 1].role == "user":
        at -= 1
    return at


def summary_content(
    texts: CompactionTexts, summary: str, dropped: Sequence[Message], words: str | None
) -> tuple[TextBlock, ...]:
    """Return the text of a summary message, which comes before the user's words from `words` on.

    If there is no room for the prompt that is worked on, its beginning and end are quoted.
    """
    blocks = [TextBlock(text=texts.summary(summary))]
    if words is None and dropped and dropped[-1].role != "assistant":
        prompt = next((one for one in reversed(dropped) if one.is_prompt), None)
        said = "\n\n".join(texts_of(prompt.content)) if prompt is not None else ""
        if said:
            blocks.append(TextBlock(text=texts.request(_shortened(said))))
    return tuple(blocks)


def _shortened(text: str) -> str:
    if len(text) <= 2 * _QUOTED_CHARS:
        return text
    gone = len(text) - 2 * _QUOTED_CHARS
    return f"{text[:_QUOTED_CHARS]}\n[{gone} characters are left out]\n{text[-_QUOTED_CHARS:]}"


def summary_meta(kept: Sequence[Message], words: str | None = None) -> Mapping[str, Any]:
    """Return the meta that marks a summary, and names the first messages before it that stay."""
    meta = {"origin": "compaction"}
    if words is not None:
        meta[WORDS] = words
    return meta | {KEEPS: kept[0].id} if kept else meta
