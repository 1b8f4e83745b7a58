"""What a wire type looks like, as values that any language can be written from."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal


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


Shape = Scalar | Choice | Ref | ListOf | OneOf


@dataclass(frozen=True)
class WireField:
    """`default` is what absence means, None where that says nothing."""

    name: str
    shape: Shape
    required: bool
    default: Any = None


@dataclass(frozen=True)
class WireStruct:
    """A JSON object. `tag` is the value of its `type`.

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


def names_in(shapes: Iterable[Shape]) -> Iterator[str]:
    """The names that shapes refer to, in order."""
    for shape in shapes:
        match shape:
            case Ref(name):
                yield name
            case ListOf(item):
                yield from names_in([item])
            case OneOf(options):
                yield from names_in(options)
            case _:
                pass
