"""Reads names of models: their family, their age, and which listed one stands in for another. Pure.

Ids retire within months, so no name depends on a table alone: what a host lists is compared by
the words and numbers of its ids (`claude-opus-5-5`, `qwen3-coder-plus`, `moonshotai/kimi-k3`).
"""

import re
from collections.abc import Sequence

# Models that hosts list, but that answer no chat.
_NO_CHAT = re.compile(
    r"embed|whisper|tts|speech|audio|voice|realtime|transcri|image|dall-e|imagen|veo|sora|video"
    r"|moderat|guard|rerank|ocr|search|davinci|babbage|clip|diffusion|music|translat",
    re.IGNORECASE,
)
_SMALL = re.compile(r"mini|nano|lite|tiny|small|flash|air|haiku|preview|exp\b", re.IGNORECASE)
# Numbers of parameters, and days: they say nothing of a model's age.
_SIZE = re.compile(r"a?\d+(?:\.\d+)?[bm]\b|\d{4}-\d\d-\d\d|\d{3,}", re.IGNORECASE)

_TAG = re.compile(r"[-:@](?:latest|free|preview)$")


def newest_fitting(offered: Sequence[str], like: Sequence[str]) -> str:
    """Return the id to ask among those that a host lists: of the same family, newest first.

    Empty if the host lists no model for chats.
    """
    families = {_family(one) for one in like}

    def rank(model_id: str) -> tuple[object, ...]:
        return _family(model_id) in families, not _SMALL.search(model_id), _age(model_id)

    return max(filter(_chats, offered), key=rank, default="")


def closest(offered: Sequence[str], name: str) -> str:
    """Return the listed id that is closest to one name, newest first; empty without its family.

    A small model stands in for a small one only: its name says what the user wants to pay.
    """
    wanted = _words(name)
    small = {one.lower() for one in _SMALL.findall(name)}

    def rank(model_id: str) -> tuple[object, ...]:
        words = _words(model_id)
        odd = {one.lower() for one in _SMALL.findall(model_id)} ^ small
        return len(words & wanted), not odd, _age(model_id), -len(words)

    related = [one for one in offered if _chats(one) and _family(one) == _family(name)]
    return max(related, key=rank, default="")


def is_family(name: str) -> bool:
    """Return whether a name is words only, such as `claude-opus`: no version, so any will do."""
    return bool(name) and not re.search(r"\d", name)


def in_family(model_id: str, name: str) -> bool:
    """Return whether an id is of the family of a name, with all its words."""
    return _family(model_id) == _family(name) and _words(name) <= _words(model_id)


def answers_for(answered: str, asked: str) -> bool:
    """Return whether the id in an answer is the one asked, with a day, a tag or a path or not."""
    one, other = (_bare(text) for text in (answered, asked))
    return one.startswith(other) or other.startswith(one) or _family(one) != _family(other)


def _chats(model_id: str) -> bool:
    return not _NO_CHAT.search(model_id)


def _bare(model_id: str) -> str:
    return _TAG.sub("", model_id.rpartition("/")[2].lower())


def _family(model_id: str) -> str:
    name = _bare(model_id)
    match = re.match(r"[a-z]+", name)
    return match[0] if match else name


def _words(model_id: str) -> set[str]:
    return set(re.findall(r"[a-z]+", _SIZE.sub("", _bare(model_id))))


def _age(model_id: str) -> list[int]:
    """Return the numbers of a version: the higher, the newer."""
    return [int(one) for one in re.findall(r"\d+", _SIZE.sub("", _bare(model_id)))]
