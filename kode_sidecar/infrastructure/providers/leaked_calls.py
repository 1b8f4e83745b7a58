"""Reads tool calls that a host left in the text, in the formats of the models' templates. Sans-IO.

Kimi K2: `<|tool_calls_section_begin|>`, then per call `<|tool_call_begin|>` `functions.NAME:INDEX`
`<|tool_call_argument_begin|>` JSON `<|tool_call_end|>`, then `<|tool_calls_section_end|>`.
DeepSeek: the same with its own signs, the name behind `<｜tool▁sep｜>`, the JSON in a fence or not.
Qwen and GLM: `<tool_call>` with JSON, with `<function=NAME>` and `<parameter=…>`, or with the name
and `<arg_key>`, `<arg_value>`. Mistral: `[TOOL_CALLS]` with a list, or with `NAME[ARGS]` JSON.
MiniMax and others: `<invoke name="NAME">` with `<parameter name="…">`, in a tag of their own.
gpt-oss: `<|channel|>commentary to=functions.NAME<|message|>` JSON `<|call|>`, or without marks.
(Chat templates of the model cards.) A host should parse these calls; some do not.
So are names that a model wrote in a wrapping.
"""

import json
import re
from collections.abc import Callable, Iterable, Set
from typing import Any, NamedTuple, cast

_KIMI = ("<|tool_calls_section_begin|>", "<|tool_call_begin|>")
_DEEPSEEK = ("<｜tool▁calls▁begin｜>", "<｜tool▁call▁begin｜>")
_HARMONY = ("<|start|>assistant", "<|channel|>")
# Their marks are not printed.
BARE_HARMONY = ("commentary to=functions.", "analysis to=functions.")
_INVOKES = (
    "<minimax:tool_call>",
    "<function_calls>",
    "<antml:function_calls>",
    "<｜DSML｜function_calls>",
    "<invoke name=",
)
# People write these, too: they count only at the start of a line, with nothing after the calls.
PLAIN = ("<tool_call>", "[TOOL_CALLS]", *_INVOKES, *BARE_HARMONY)
_SIGNS = (*_KIMI, *_DEEPSEEK, *_HARMONY)
BRACKETED = (*_SIGNS, *(one for one in PLAIN if one[0] in "<["))
BEGIN = re.compile(
    "|".join(map(re.escape, _SIGNS))
    + "|"
    + "|".join(rf"(?:\A|(?<=\n)){re.escape(marker)}" for marker in PLAIN)
)
_KIMI_CALL = re.compile(
    r"<\|tool_call_begin\|>\s*(?P<id>(?:functions\.)?(?P<name>[\w-]+?)(?::\d+)?)\s*"
    r"(?:<\|tool_call_argument_begin\|>|(?=\{))(?P<arguments>.*?)(?P<end><\|tool_call_end\|>|\Z)",
    re.DOTALL,
)
_KIMI_HEADLESS = re.compile(
    r"<\|tool_call_begin\|>\s*(?P<inner>\{.*?\})\s*<\|tool_call_end\|>", re.DOTALL
)
_KIMI_SECTION = re.compile(r"<\|tool_calls_section_(?:begin|end)\|>")
_DEEPSEEK_CALL = re.compile(
    r"<｜tool▁call▁begin｜>(?:function<｜tool▁sep｜>)?\s*(?P<name>[\w-]+)\s*"
    r"(?:<｜tool▁sep｜>)?\s*(?:```json\s*)?(?P<arguments>.*?)\s*(?:```\s*)?<｜tool▁call▁end｜>",
    re.DOTALL,
)
_DEEPSEEK_SECTION = re.compile(r"<｜tool▁calls▁(?:begin|end)｜>")
_TAGGED = re.compile(r"<tool_call>\s*(?P<inner>.*?)\s*</tool_call>", re.DOTALL)
_FUNCTION = re.compile(r"<function=(?P<name>[\w-]+)>(?P<inner>.*?)</function>", re.DOTALL)
_PARAMETER = re.compile(r"<parameter=(?P<key>[^>\s]+)>\n?(?P<value>.*?)\n?</parameter>", re.DOTALL)
_ARGUMENT = re.compile(
    r"<arg_key>\s*(?P<key>.*?)\s*</arg_key>\s*<arg_value>(?P<value>.*?)</arg_value>", re.DOTALL
)
_MISTRAL = re.compile(r"\[TOOL_CALLS\]\s*(?P<name>[\w-]+)\[ARGS\]\s*(?=\{)")
_TAG = r"(?:minimax:|antml:|｜DSML｜)?"
_INVOKE = re.compile(
    rf"<{_TAG}invoke name=\"(?P<name>[^\"]+)\">(?P<inner>.*?)</{_TAG}invoke>", re.DOTALL
)
_INVOKED_WITH = re.compile(
    rf"<{_TAG}parameter name=\"(?P<key>[^\"]+)\"(?P<text> string=\"true\")?[^>]*>"
    rf"(?P<value>.*?)</{_TAG}parameter>",
    re.DOTALL,
)
_INVOKE_FRAME = re.compile(rf"</?{_TAG}(?:tool_call|function_calls)>")
_HARMONY_CALL = re.compile(
    r"(?:<\|start\|>)?(?:assistant)?(?:\s*to=(?P<before>[\w.-]+)\s*)?<\|channel\|>"
    r"(?:analysis|commentary)(?:\s*to=(?P<name>[\w.-]+))?\s*(?:<\|constrain\|>)?\s*(?:json|code)?\s*"
    r"<\|message\|>(?P<arguments>.*?)\s*(?:<\|call\|>|<\|end\|>|\Z)",
    re.DOTALL,
)
_BARE_CALL = re.compile(
    r"(?:assistant)?(?:commentary|analysis) to=(?P<name>[\w.-]+)\s*(?:json|code)?\s*(?=\{)"
)


class LeakedCall(NamedTuple):
    """A call as the model wrote it, with its own id if it wrote one."""

    tool_use_id: str
    name: str
    arguments: str


Read = Callable[[str], tuple[list[LeakedCall], str]]
_NONE: tuple[list[LeakedCall], str] = ([], "")


def _kimi(text: str) -> tuple[list[LeakedCall], str]:
    if headless := list(_KIMI_HEADLESS.finditer(text)):
        values = [_object(match["inner"]) or {} for match in headless]
        rest = _KIMI_SECTION.sub("", _KIMI_HEADLESS.sub("", text)).strip()
        return _all(_of_object(at, one) for at, one in enumerate(values)), rest
    found = list(_KIMI_CALL.finditer(text))
    rest = _KIMI_SECTION.sub("", _KIMI_CALL.sub("", text))
    if "<|tool_call" in rest or not all(m["end"] or _object(m["arguments"]) for m in found):
        return _NONE
    return [LeakedCall(m["id"], m["name"], m["arguments"]) for m in found], rest.strip()


def _deepseek(text: str) -> tuple[list[LeakedCall], str]:
    found = list(_DEEPSEEK_CALL.finditer(text))
    rest = _DEEPSEEK_SECTION.sub("", _DEEPSEEK_CALL.sub("", text)).strip()
    if "<｜tool" in rest or any(_object(m["arguments"]) is None for m in found):
        return _NONE
    return [_numbered(at, m["name"], m["arguments"]) for at, m in enumerate(found)], rest


def _tagged(text: str) -> tuple[list[LeakedCall], str]:
    inners = [match["inner"] for match in _TAGGED.finditer(text)]
    calls = [_call_in(at, inner) for at, inner in enumerate(inners)]
    if _TAGGED.sub("", text).strip():
        return _NONE
    return [call for call in calls if call is not None], "" if None not in calls else text


def _call_in(at: int, inner: str) -> LeakedCall | None:
    value = _object(inner)
    if value is not None:
        return _of_object(at, value)
    function = _FUNCTION.fullmatch(inner)
    pairs = _PARAMETER if function else _ARGUMENT
    name = function["name"] if function else inner.split("<arg_key>")[0].strip()
    body = function["inner"] if function else inner[len(inner.split("<arg_key>")[0]) :]
    if not name or pairs.sub("", body).strip():
        return None
    values = {match["key"]: _value(match["value"]) for match in pairs.finditer(body)}
    return _numbered(at, name, json.dumps(values, ensure_ascii=False))


def _invoked(text: str) -> tuple[list[LeakedCall], str]:
    found = list(_INVOKE.finditer(text))
    if _INVOKE_FRAME.sub("", _INVOKE.sub("", text)).strip():
        return _NONE
    calls: list[LeakedCall] = []
    for at, match in enumerate(found):
        if _INVOKED_WITH.sub("", match["inner"]).strip():
            return _NONE
        values = {
            one["key"]: one["value"] if one["text"] else _value(one["value"])
            for one in _INVOKED_WITH.finditer(match["inner"])
        }
        calls.append(_numbered(at, match["name"], json.dumps(values, ensure_ascii=False)))
    return calls, ""


def _harmony(text: str) -> tuple[list[LeakedCall], str]:
    found = list(_HARMONY_CALL.finditer(text))
    if _HARMONY_CALL.sub("", text).strip() or not all(_object(m["arguments"]) for m in found):
        return _NONE
    names = [match["before"] or match["name"] or "" for match in found]
    return [
        _numbered(at, name.removeprefix("functions."), match["arguments"])
        for at, (name, match) in enumerate(zip(names, found, strict=True))
    ], ""


def _mistral(text: str) -> tuple[list[LeakedCall], str]:
    if not _MISTRAL.match(text):
        try:
            listed = json.loads(text.removeprefix("[TOOL_CALLS]"), strict=False)
        except (ValueError, RecursionError):
            return _NONE
        items = cast(list[Any], listed) if isinstance(listed, list) else []
        return _all(
            _of_object(at, cast(dict[str, Any], item) if isinstance(item, dict) else {})
            for at, item in enumerate(items)
        ), ""
    return _rows(_MISTRAL, text)


def _bare_harmony(text: str) -> tuple[list[LeakedCall], str]:
    return _rows(_BARE_CALL, text)


def _rows(head: re.Pattern[str], text: str) -> tuple[list[LeakedCall], str]:
    """Read calls that are a head with the name, and JSON behind it."""
    found: list[LeakedCall] = []
    at = 0
    while match := head.match(text, at):
        try:
            _, at = json.JSONDecoder(strict=False).raw_decode(text, match.end())
        except (ValueError, RecursionError):
            return _NONE
        name = match["name"].removeprefix("functions.")
        found.append(_numbered(len(found), name, text[match.end() : at]))
    return (found, "") if not text[at:].strip() else _NONE


def _all(calls: Iterable[LeakedCall | None]) -> list[LeakedCall]:
    """Return the calls; none if one of them could not be read."""
    found = list(calls)
    return [] if None in found else [call for call in found if call is not None]


def _of_object(at: int, value: dict[str, Any]) -> LeakedCall | None:
    name, arguments = value.get("name"), value.get("arguments", value.get("parameters", {}))
    if not isinstance(name, str) or not isinstance(arguments, dict | str):
        return None
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return _numbered(at, name, text)


def _numbered(at: int, name: str, arguments: str) -> LeakedCall:
    return LeakedCall(f"functions.{name}:{at}", name, arguments)


def _value(text: str) -> Any:
    """Decode a value as JSON; a string, or what is no JSON, stays the text as it is."""
    try:
        value = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return text
    return text if isinstance(value, str) else value


def _object(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return None
    return cast(dict[str, Any], value) if isinstance(value, dict) else None


_READERS: tuple[tuple[str, Read], ...] = (
    *((marker, _deepseek) for marker in _DEEPSEEK),
    ("<tool_call>", _tagged),
    ("[TOOL_CALLS]", _mistral),
    *((marker, _invoked) for marker in _INVOKES),
    *((marker, _harmony) for marker in _HARMONY),
    *((marker, _bare_harmony) for marker in BARE_HARMONY),
)


def read_calls(text: str, tool_names: frozenset[str]) -> tuple[list[LeakedCall], str]:
    """Return the calls in a text, and the rest of the text.

    If a call is cut off or a tool is not on offer, all of it is text.
    """
    read = next((read for marker, read in _READERS if text.startswith(marker)), _kimi)
    calls, rest = read(text)
    if not calls or any(call.name not in tool_names for call in calls):
        return [], text
    return calls, rest


# What models and gateways write around a name: a namespace before it, a number or marks behind it.
_MARKS = re.compile(r"<[|｜].*", re.DOTALL)
_BEFORE = re.compile(
    r"(?:functions?|tools?|default_api|multi_tool_use|namespace)[.:/]", re.IGNORECASE
)
_BEHIND = re.compile(r"[:#]\d+|\(\)")


def known_name(name: str, tool_names: Set[str]) -> str:
    """Return the tool that a name plainly means, or the name as it is.

    A name on offer stays; so does one that could mean two tools.
    """
    if name in tool_names or not tool_names:
        return name
    plain = _MARKS.sub("", name).strip().strip("`\"'").strip()
    if match := _BEFORE.match(plain):
        plain = plain[match.end() :]
    plain = _BEHIND.sub("", plain).strip()
    if plain in tool_names:
        return plain
    alike = _letters(plain)
    found = [one for one in tool_names if _letters(one) == alike] if alike else []
    return found[0] if len(found) == 1 else name


def _letters(name: str) -> str:
    return re.sub(r"[\s_-]+", "", name).lower()
