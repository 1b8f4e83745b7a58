"""The types of the wire as values that any language can be written from.

They are collected from what the method table, the handshake and errors reach. Names are those of
the wire; prose comes from the docstrings of the structs.
"""

import inspect
import re
from dataclasses import dataclass, replace
from functools import partial
from types import NoneType, UnionType
from typing import Any, Literal, TypeGuard, Union, cast, get_args, get_origin

from msgspec import NODEFAULT, Struct, UnsetType
from msgspec.structs import FieldInfo, fields

from kode_sidecar.core.domain import (
    agent_event,
    change_set,
    event_parts,
    message,
    notice_codes,
    question_event,
)
from kode_sidecar.core.domain.error_info import ErrorInfo
from kode_sidecar.core.protocol.change_set import DecideAction
from kode_sidecar.core.protocol.initialize import (
    KodeInitializeOptions,
    KodeInitializeResult,
    UnsupportedVersionInfo,
)
from kode_sidecar.core.protocol.methods import METHODS
from kode_sidecar.core.protocol.process import UsageKey
from kode_sidecar.core.protocol.session import Mode
from kode_sidecar.core.protocol.turn import SegmentOrigin
from kode_sidecar.errors import ERRORS
from protocol.export.open_words import NEAREST


@dataclass(frozen=True)
class Scalar:
    """`any` is any JSON value, `object` a JSON object with any members."""

    name: Literal["string", "integer", "number", "boolean", "null", "any", "object"]


@dataclass(frozen=True)
class Choice:
    """One of these strings."""

    values: tuple[str, ...]


@dataclass(frozen=True)
class Ref:
    """A struct or a named union, by its name."""

    name: str


@dataclass(frozen=True)
class ListOf:
    item: "Shape"


@dataclass(frozen=True)
class OneOf:
    options: tuple["Shape", ...]


@dataclass(frozen=True)
class Open:
    """A word of `known`, or one to come: a reader takes that for `nearest`."""

    known: Choice | Ref
    nearest: str


Shape = Scalar | Choice | Ref | ListOf | OneOf | Open


def nearest_of(shape: Shape) -> str | None:
    """What an unknown word in the shape is taken for; None where there are no open ones."""
    match shape:
        case Open(_, nearest):
            return nearest
        case ListOf(item):
            return nearest_of(item)
        case OneOf(options):
            return next(filter(None, map(nearest_of, options)), None)
        case _:
            return None


@dataclass(frozen=True)
class WireField:
    """`default` is what absence means, None where that says nothing."""

    name: str
    shape: Shape
    required: bool
    default: Any = None


@dataclass(frozen=True)
class WireStruct:
    """A JSON object, with room for `_meta`. `tag` is the value of its `type`.

    `inherited` are the fields of `base`; a base itself never travels.
    """

    name: str
    doc: str
    own: tuple[WireField, ...]
    inherited: tuple[WireField, ...] = ()
    base: str | None = None
    tag: str | None = None
    is_base: bool = False


@dataclass(frozen=True)
class WireUnion:
    """A union with a name. Structs in it are told apart by their `type`."""

    name: str
    doc: str
    shape: Shape


@dataclass(frozen=True)
class WireTypes:
    """All of them, by name, in the order in which they are met."""

    structs: dict[str, WireStruct]
    unions: dict[str, WireUnion]

    def members(self, union: str) -> list[WireStruct]:
        """The structs of a tagged union."""
        shape = self.unions[union].shape
        options = shape.options if isinstance(shape, OneOf) else ()
        return [self.structs[option.name] for option in options if isinstance(option, Ref)]


# Named here because Python forgets the name of a union.
_UNIONS: dict[str, tuple[Any, str]] = {
    "Mode": (
        Mode,
        "What becomes of proposed edits. `review`: they wait, the turn goes on. `ask`: the tool"
        " call waits until they are decided. `auto`: they are applied at once. `plan`: there are"
        " none.",
    ),
    "Block": (message.Block, "A content block. Ignore types you do not know."),
    "PromptBlock": (message.PromptBlock, "What a prompt may hold."),
    "ToolKind": (message.ToolKind, "What a tool call does, for the icon of its card."),
    "ResultContent": (message.ResultContent, "What a tool result may hold."),
    "Role": (message.Role, "Who speaks; `tool` messages hold the results of tool calls."),
    "ResultStatus": (message.ResultStatus, "How a tool call ended."),
    "Attention": (event_parts.Attention, "Why the user is wanted."),
    "Event": (agent_event.Event, "What happens in a session. Ignore types you do not know."),
    "StopReason": (
        agent_event.StopReason,
        "Why a turn ended. After `max_tool_rounds` a turn with empty input goes on; `error` comes"
        " with an `ErrorInfo`; `interrupted` means that the process died.",
    ),
    "ResolvedBy": (
        question_event.ResolvedBy,
        "What answered a question: the user, an earlier answer, the end of the turn, or nobody.",
    ),
    "NoticeCode": (
        notice_codes.NoticeCode,
        "What a notice is about; methods.md says what each one means. More may come.",
    ),
    "ErrorCode": (
        Literal[*ERRORS],
        "The names in the table of errors. More may come.",
    ),
    "NoticeLevel": (agent_event.NoticeLevel, "How urgent a notice is."),
    "ChangeSetState": (
        change_set.ChangeSetState,
        "`decided` when no hunk waits any more, superseded ones left out.",
    ),
    "HunkState": (
        change_set.HunkState,
        "A hunk leaves `proposed` once. `stale`: its file was closed, deleted or went out of step."
        " `conflict`: the text around it changed, nothing was sent. `diverged`: it was sent, but"
        " another text stands there now.",
    ),
    "HunkKind": (change_set.HunkKind, "What a hunk does to its file."),
    "HunkFlag": (change_set.HunkFlag, "What a user should look at before accepting."),
    "SegmentOrigin": (SegmentOrigin, "What a part of a request is."),
    "UsageKey": (UsageKey, "What a sum of usage may be about."),
    "DecideAction": (DecideAction, "`replace` accepts with another text."),
}
_ERROR_CODE = Open(Ref("ErrorCode"), NEAREST["ErrorCode"])
# Texts in Python, for what is on disk may be of another version; their values stand in a table.
_CODES = {
    ("Notice", "code"): Open(Ref("NoticeCode"), NEAREST["NoticeCode"]),
    ("ErrorInfo", "code"): _ERROR_CODE,
    ("UnsupportedVersionInfo", "code"): _ERROR_CODE,
    ("ModelWaiting", "code"): _ERROR_CODE,
}
# What no method of the table has.
_RECEIVED_ELSEWHERE: tuple[type[Struct], ...] = (KodeInitializeOptions,)
_SENT_ELSEWHERE = (KodeInitializeResult, UnsupportedVersionInfo, ErrorInfo)
_BASES: tuple[type[Struct], ...] = (event_parts.EventBase, message.BlockBase)
_SCALARS = {
    str: Scalar("string"),
    int: Scalar("integer"),
    float: Scalar("number"),
    bool: Scalar("boolean"),
    NoneType: Scalar("null"),
    Any: Scalar("any"),
}
_SNAKE_NAME = re.compile(r"`([a-z]+(?:_[a-z0-9]+)+)`")


def wire_types() -> WireTypes:
    """Collect them.

    Raises TypeError for two structs of one name, and for a type that JSON does not have.
    """
    received, sent = _reached(received=True), _reached(received=False)
    classes: dict[type[Struct], None] = {}
    for cls in (*received, *sent):
        classes |= dict.fromkeys([base for base in _BASES if issubclass(cls, base)])
        classes[cls] = None
    wire_names = {info.name: info.encode_name for cls in classes for info in fields(cls)}
    structs: dict[str, WireStruct] = {}
    for cls in classes:
        if cls.__name__ in structs:
            raise TypeError(f"two structs of the wire are named {cls.__name__}")
        structs[cls.__name__] = _struct(cls, wire_names, sent_only=cls not in received)
    unions = {
        name: WireUnion(name, doc, _shape(annotation, named=False))
        for name, (annotation, doc) in _UNIONS.items()
    }
    return WireTypes(structs, unions)


def _reached(*, received: bool) -> dict[type[Struct], None]:
    """The structs that the server receives, or those that it sends."""
    found: dict[type[Struct], None] = {}
    for method in METHODS:
        from_client = method.direction == "client_to_server"
        _reach(method.params if from_client == received else method.result, found)
    loose = _RECEIVED_ELSEWHERE if received else _SENT_ELSEWHERE
    for cls in loose:
        _reach(cls, found)
    return found


def _reach(annotation: Any, found: dict[type[Struct], None]) -> None:
    if not _is_struct(annotation):
        for part in get_args(annotation):
            _reach(part, found)
    elif annotation not in found:
        found[annotation] = None
        for info in fields(annotation):
            _reach(info.type, found)


def _struct(cls: type[Struct], wire_names: dict[str, str], *, sent_only: bool) -> WireStruct:
    config = cls.__struct_config__
    make = partial(_field, cls.__name__, sent_only=sent_only, omits=config.omit_defaults)
    reported = (make(info) for info in fields(cls))
    codes = {name: shape for (owner, name), shape in _CODES.items() if owner == cls.__name__}
    made = tuple(replace(one, shape=codes.get(one.name, one.shape)) for one in reported)
    doc = _prose(cls.__doc__ or "", wire_names)
    if cls in _BASES:
        return WireStruct(cls.__name__, doc, made, is_base=True)
    base = next((base for base in _BASES if issubclass(cls, base)), None)
    shared = [make(info) for info in fields(base)] if base else list[WireField]()
    return WireStruct(
        name=cls.__name__,
        doc=doc,
        own=tuple(field for field in made if field not in shared),
        inherited=tuple(field for field in made if field in shared),
        base=base.__name__ if base else None,
        tag=None if config.tag is None else str(config.tag),
    )


def _opened(shape: Shape, owner: str, field: str) -> Shape:
    """The shape with its words open. Raises KeyError for one that `NEAREST` does not have."""
    match shape:
        case Choice():
            return Open(shape, NEAREST[f"{owner}.{field}"])
        case Ref(name) if name in NEAREST:
            return Open(shape, NEAREST[name])
        case ListOf(item):
            return ListOf(_opened(item, owner, field))
        case OneOf(options):
            return OneOf(tuple(_opened(option, owner, field) for option in options))
        case _:
            return shape


def _field(owner: str, info: FieldInfo, *, sent_only: bool, omits: bool) -> WireField:
    """What only the server sends is always there unless it leaves out defaults, null included.

    msgspec never leaves out what a factory of ours made.
    """
    parts = get_args(info.type) if _is_union(info.type) else (info.type,)
    dropped: set[Any] = {UnsetType}
    if sent_only and omits and info.default is None:
        dropped.add(NoneType)
    kept = tuple(part for part in parts if part not in dropped)
    shape = _shape(kept[0] if len(kept) == 1 else Union[kept])  # noqa: UP007 (made at run time)
    if sent_only:
        shape = _opened(shape, owner, info.encode_name)
    made = info.default_factory not in (NODEFAULT, dict, list)
    always = sent_only and (made or not omits) and UnsetType not in parts
    required = info.required or always
    return WireField(info.encode_name, shape, required, None if required else _default(info))


def _default(info: FieldInfo) -> Any:
    value: object = info.default
    if isinstance(value, tuple):
        return list(cast(tuple[object, ...], value))
    return value if isinstance(value, str | int) and value != "" else None


def _shape(annotation: Any, *, named: bool = True) -> Shape:
    name = next((name for name, (union, _) in _UNIONS.items() if union == annotation), None)
    if named and name is not None:
        return Ref(name)
    if _is_struct(annotation):
        return Ref(annotation.__name__)
    if annotation in _SCALARS:
        return _SCALARS[annotation]
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return Choice(parts)
    if origin is tuple and parts[1:] == (...,):
        return ListOf(_shape(parts[0]))
    if origin is dict and parts == (str, Any):
        return Scalar("object")
    if _is_union(annotation):
        return OneOf(tuple(_shape(part) for part in parts))
    raise TypeError(f"{annotation} has no place on the wire")


def _is_struct(annotation: Any) -> TypeGuard[type[Struct]]:
    return isinstance(annotation, type) and issubclass(annotation, Struct)


def _is_union(annotation: Any) -> bool:
    return get_origin(annotation) in (Union, UnionType)


def _prose(docstring: str, wire_names: dict[str, str]) -> str:
    """A docstring, one line a paragraph, its fields named as on the wire."""
    paragraphs = inspect.cleandoc(docstring).split("\n\n")
    text = "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
    return _SNAKE_NAME.sub(lambda found: f"`{wire_names.get(found[1], found[1])}`", text)
