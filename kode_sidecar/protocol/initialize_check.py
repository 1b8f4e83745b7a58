"""Checks `initializationOptions.kode` as `protocol.initialize` types it, without msgspec.

Plain data and the standard library: the front door asks. A test holds it to the schema.
"""

from kode_sidecar.errors import KodeError

Object = dict[str, object]
Leaf = type | tuple[str, ...] | list[type]
"""A JSON type, one of some words, or a list of one type."""

Shape = Leaf | dict[str, Leaf]
"""The same, or an object with these members."""

PATH = "$.initializationOptions.kode"

_OPTIONS: dict[str, Shape] = {
    "protocolVersions": [str],
    "client": {"name": str, "version": str},
    "locale": str,
    "trusted": bool,
    "settings": {
        "mode": ("review", "ask", "auto", "plan"),
        "agent": str,
        "model": str,
        "locale": str,
        "fileEncoding": str,
    },
    "delivery": {"maxInlineBytes": int},
    "capabilities": {
        "permission": dict,
        "ask": dict,
        "changeSetReview": dict,
        "openDocument": dict,
    },
}
_REQUIRED = frozenset({"name"})  # in an object that is there; else null is as good as absent


def check_options(options: object) -> None:
    """Raises KodeError `InvalidParams` that names the first place with a wrong value."""
    _check_members(options, _OPTIONS, PATH)


def invalid(path: str, wrong: str = "wrong type") -> KodeError:
    """An `InvalidParams` about one place."""
    return KodeError("InvalidParams", f"{wrong} at `{path}`", details={"path": path})


def as_object(value: object) -> Object:
    """`value` if it is a JSON object, else an empty one."""
    if isinstance(value, dict):
        return value  # type: ignore[reportUnknownVariableType]
    return {}


def as_list(value: object) -> list[object]:
    """`value` if it is a JSON array, else an empty one."""
    return value if isinstance(value, list) else []  # type: ignore[reportUnknownVariableType]


def _check(value: object, shape: Shape, path: str) -> None:
    if isinstance(shape, dict):
        _check_members(value, shape, path)
    elif isinstance(shape, tuple):
        if value not in shape:
            raise invalid(path, f"expected one of {', '.join(shape)}")
    elif isinstance(shape, list):
        items = as_list(value)
        if items is not value:
            raise invalid(path)
        for index, item in enumerate(items):
            _check(item, shape[0], f"{path}[{index}]")
    elif type(value) is not shape:  # to Python a boolean is an integer, to JSON it is not
        raise invalid(path)


def _check_members(value: object, members: dict[str, Shape] | dict[str, Leaf], path: str) -> None:
    options = as_object(value)
    if options is not value:
        raise invalid(path)
    for name, shape in members.items():
        member = options.get(name)
        if member is not None:
            _check(member, shape, f"{path}.{name}")
        elif name in _REQUIRED:
            raise invalid(f"{path}.{name}", "missing or null")
