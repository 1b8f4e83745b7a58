"""The package's own source, parsed: what imports what, for the tests of the house rules."""

import ast
from collections.abc import Iterator, Set
from dataclasses import dataclass
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "kode_sidecar"
LAYERS = ("core", "infrastructure", "agent", "jobs", "servers", "terminal", "devtools")
"""The seven packages, from the lowest to the highest."""

FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Module:
    """`name` leaves the layer out: `kernel.turn_loop`, `errors`, `kernel` for its `__init__`.

    `layer` is one of `LAYERS`, "" for what lies beside them.
    """

    name: str
    path: Path
    tree: ast.Module
    layer: str

    @property
    def room(self) -> str:
        return self.name.split(".")[0]

    @property
    def docstring(self) -> str:
        return ast.get_docstring(self.tree) or ""


@dataclass(frozen=True)
class Import:
    """`target` is the module imported, `httpx.ssl` or `kode_sidecar.kernel.contracts`.

    A module of ours stands without its layer, as in `Module.name`. `room` is the room of ours it
    leads to, None for other packages and for our version. `late` means inside a function,
    `typing_only` under `if TYPE_CHECKING`, which never runs.
    """

    source: Module
    target: str
    line: int
    late: bool
    typing_only: bool = False

    @property
    def package(self) -> str:
        return self.target.split(".")[0]

    @property
    def room(self) -> str | None:
        parts = self.target.split(".")
        return parts[1] if parts[0] == PACKAGE.name and len(parts) > 1 else None

    @property
    def inner_path(self) -> tuple[str, ...]:
        """Where in that room: empty for its `__init__`."""
        return tuple(self.target.split(".")[2:])

    @property
    def leaves_its_room(self) -> bool:
        return self.room is not None and self.room != self.source.room

    def by_a_door(self, doors: Set[str]) -> bool:
        """Whether the room is entered by its `__init__`, its contracts or one of `doors`."""
        inner = ".".join(self.inner_path)
        return inner in ("", "contracts") or f"{self.room}.{inner}" in doors

    def __str__(self) -> str:
        return f"{self.source.name}:{self.line} imports {self.target}"


@cache
def modules() -> tuple[Module, ...]:
    """All modules of the package, sorted by path."""
    found: list[Module] = []
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        if len(parts) > 1 and parts[-1] == "__init__":
            parts = parts[:-1]
        layer = parts[0] if parts[0] in LAYERS else ""
        if parts == (layer,):
            continue  # the `__init__` of a layer holds its docstring alone
        tree = ast.parse(path.read_text(encoding="utf-8"))
        found.append(Module(".".join(parts[1:] if layer else parts), path, tree, layer))
    return tuple(found)


@cache
def layer_of(room: str) -> str:
    """The layer that a room lies in, "" for single files beside the layers."""
    return next(module.layer for module in modules() if module.room == room)


def without_layer(target: str) -> str:
    """`kode_sidecar.core.kernel.contracts` as `kode_sidecar.kernel.contracts`."""
    package, *rest = target.split(".")
    ours = package == PACKAGE.name and rest and rest[0] in LAYERS
    return ".".join((package, *(rest[1:] if ours else rest)))


@cache
def imports() -> tuple[Import, ...]:
    """All imports of the package, also those under `if TYPE_CHECKING`."""
    return tuple(found for module in modules() for found in _imports_of(module))


def _imports_of(module: Module) -> Iterator[Import]:
    ours = {f"{PACKAGE.name}.{other.name}" for other in modules()}
    functions = [node for node in ast.walk(module.tree) if isinstance(node, FUNCTIONS)]
    late = {id(node) for function in functions for node in ast.walk(function)}
    checked = [node for node in ast.walk(module.tree) if isinstance(node, ast.If)]
    checked = [node for node in checked if ast.unparse(node.test) == "TYPE_CHECKING"]
    typing_only = {id(node) for block in checked for node in ast.walk(block)}
    for node in ast.walk(module.tree):
        is_late, is_typing = id(node) in late, id(node) in typing_only
        if isinstance(node, ast.Import):
            for alias in node.names:
                name = without_layer(alias.name)
                yield Import(module, name, node.lineno, is_late, is_typing)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module.name}:{node.lineno}: a relative import"
            for alias in node.names:
                named = without_layer(str(node.module))
                whole = f"{named}.{alias.name}"
                target = whole if whole in ours else named
                yield Import(module, target, node.lineno, is_late, is_typing)
