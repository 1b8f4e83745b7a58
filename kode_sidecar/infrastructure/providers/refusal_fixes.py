"""Reads from a refusal what its host does not take, to ask once more without it. Sans-IO.

Hosts name what they refuse: a member that they do not know, tools, pictures, streaming, the
description of one tool. What is learned belongs to one model of one host and is remembered there.
"""

import re
from typing import Any, NamedTuple, cast

import msgspec
from msgspec.structs import replace

from kode_sidecar.core.domain.host_facts import RequestLimits
from kode_sidecar.infrastructure.providers.profiles import ModelProfile

# Without these there is no request.
_NEEDED = frozenset({"model", "messages", "input", "tools", "stream", "system", "instructions"})
_NO_WAY = (
    r"not support|unsupported|unknown|unrecognized|unexpected|not permitted|not allowed|extra"
    r"|not accept|does not exist|invalid param|only .{1,30} allowed|disabled|deprecated|不支持|未知"
)
_REFUSES = re.compile(_NO_WAY, re.IGNORECASE)
_RENAMED = re.compile(r"use ['\"`]?(max_completion_tokens|max_tokens)\b", re.IGNORECASE)
_NO_TOOLS = re.compile(
    r"(?:does not|doesn't|not|cannot|n't) support(?:ed)? (?:the )?(?:use of )?(?:tools?\b|tool use"
    r"|tool call|function)|(?:tools?|tool use|tool calling|function calling|functions?) (?:is|are)"
    r" (?:not|un)|support tool use|不支持.{0,8}(?:工具|函数)",
    re.IGNORECASE,
)
_NO_PICTURES = re.compile(
    r"(?:image|vision|multi-?modal|picture).{0,60}(?:not|n't|un)\s?(?:be )?support"
    r"|(?:not|n't) support.{0,30}(?:image|vision|multi-?modal)|text.only|unknown variant .image_url"
    r"|no endpoints found that support image|不支持.{0,8}图",
    re.IGNORECASE,
)
_NO_STREAM = re.compile(
    r"stream(?:ing|ed)?\b.{0,40}(?:not|n't|un)\s?(?:be )?(?:support|allow|enabl|available)"
    r"|(?:not|n't) support.{0,20}stream|stream.{0,20}must be.{0,4}false",
    re.IGNORECASE,
)
_WANTS_REASONING = re.compile(r"reasoning_content.{0,80}(?:missing|required|must|empty)", re.I)
_MANY_PICTURES = re.compile(r"(?:too many|number of|at most \d+|maximum of \d+) .{0,20}image", re.I)
_TOOL_AT = re.compile(r"tools?(?:\[|\.|\()(\d+)", re.IGNORECASE)
_ABOUT_TOOLS = re.compile(r"schema|parameters|function|tool|propert", re.IGNORECASE)
_PICTURES = re.compile(rb'"data:[^;"]*;base64,|"type":"base64"')
_STATUSES = (400, 404, 413, 415, 422, 500, 501)


class Refusal(NamedTuple):
    """A refused request: the status, the host's own words, and the body that it refused."""

    status: int
    said: str
    body: bytes


class Fix(NamedTuple):
    """What the host does not take, and how it is reported to the user."""

    limits: RequestLimits
    text: str


def fix_of(refusal: Refusal, model: ModelProfile, known: RequestLimits) -> Fix | None:
    """Return what to leave out from now on; None if the refusal does not say it."""
    if refusal.status not in _STATUSES:
        return None
    body = _decoded(refusal.body)
    for rule in (_tools, _pictures, _stream, _reasoning, _member, _one_tool):
        fix = rule(refusal, body, known)
        if fix is not None and fix.limits != known:
            return Fix(fix.limits, f"{model.id} {fix.text} from now on.")
    return None


def _tools(refusal: Refusal, body: dict[str, Any], known: RequestLimits) -> Fix | None:
    if not body.get("tools") or not _NO_TOOLS.search(refusal.said):
        return None
    text = "takes no tools, so it is asked without them and reads and edits nothing"
    return Fix(replace(known, tools=False), text)


def _pictures(refusal: Refusal, _body: dict[str, Any], known: RequestLimits) -> Fix | None:
    count = len(_PICTURES.findall(refusal.body))
    if not count:
        return None
    if _NO_PICTURES.search(refusal.said):
        return Fix(replace(known, images=False), "takes no pictures, so it is asked without them")
    if refusal.status == 413 or _MANY_PICTURES.search(refusal.said):
        most = min(count, 20) // 2
        return Fix(replace(known, most_pictures=most), f"gets no more than {most} pictures")
    return None


def _stream(refusal: Refusal, body: dict[str, Any], known: RequestLimits) -> Fix | None:
    if not body.get("stream") or not _NO_STREAM.search(refusal.said):
        return None
    if "stream_options" in refusal.said:
        return None
    return Fix(replace(known, streams=False), "answers as a whole, not word by word,")


def _reasoning(refusal: Refusal, _body: dict[str, Any], known: RequestLimits) -> Fix | None:
    if not _WANTS_REASONING.search(refusal.said):
        return None
    return Fix(replace(known, blank_reasoning=True), "gets a blank where it gave no reasoning")


def _member(refusal: Refusal, body: dict[str, Any], known: RequestLimits) -> Fix | None:
    renamed = _RENAMED.search(refusal.said)
    if renamed and {"max_tokens", "max_completion_tokens"} & body.keys() - {renamed[1]}:
        name = renamed[1].lower()
        return Fix(replace(known, max_tokens=name), f"gets its budget as `{name}`")
    if not _REFUSES.search(refusal.said):
        return None
    named = [
        one
        for one in body
        if one not in _NEEDED and re.search(rf"(?<![\w-]){re.escape(one)}(?![\w-])", refusal.said)
    ]
    if not named:
        return None
    without = tuple(dict.fromkeys([*known.without, *named]))
    return Fix(replace(known, without=without), f"is asked without `{'`, `'.join(named)}`")


def _one_tool(refusal: Refusal, body: dict[str, Any], known: RequestLimits) -> Fix | None:
    tools = cast(list[dict[str, Any]], body.get("tools") or [])
    names = [str((one.get("function") or one).get("name", "")) for one in tools]
    at = _TOOL_AT.search(refusal.said)
    bad = [names[int(at[1])]] if at and int(at[1]) < len(names) else []
    if not bad and _ABOUT_TOOLS.search(refusal.said):
        bad = [n for n in names if re.search(rf"(?<![\w-]){re.escape(n)}(?![\w-])", refusal.said)]
    if not bad:
        return None
    refused = tuple(dict.fromkeys([*known.refused_tools, *bad]))
    text = f"is asked without the tool {', '.join(bad)}, whose description its host refuses,"
    return Fix(replace(known, refused_tools=refused), text)


def _decoded(body: bytes) -> dict[str, Any]:
    value: object = msgspec.json.decode(body)
    return cast(dict[str, Any], value) if isinstance(value, dict) else {}


def with_limits(model: ModelProfile, limits: RequestLimits) -> ModelProfile:
    """Return a model's profile with what its host was seen to refuse."""
    names = model.names
    if limits.max_tokens:
        names = replace(names, max_tokens=limits.max_tokens)
    return replace(
        model,
        without=(*model.without, *limits.without),
        refused_tools=(*model.refused_tools, *limits.refused_tools),
        tools=model.tools and limits.tools,
        images=model.images and limits.images,
        most_pictures=model.most_pictures if limits.most_pictures is None else limits.most_pictures,
        streams=model.streams and limits.streams,
        blank_reasoning=model.blank_reasoning or limits.blank_reasoning,
        names=names,
    )
