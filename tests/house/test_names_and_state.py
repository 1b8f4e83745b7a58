"""No state in modules, no vague names."""

import ast
from collections.abc import Iterator

from tests.support.package_source import modules

VAGUE = ("util", "helper", "manager")
CONTAINERS = ast.List | ast.Dict | ast.Set | ast.ListComp | ast.DictComp | ast.SetComp
MAKERS = {"list", "dict", "set", "bytearray", "deque", "defaultdict", "Counter", "OrderedDict"}


def module_variables(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    for node in tree.body:
        if isinstance(node, ast.Assign):
            yield from ((ast.unparse(target), node.value) for target in node.targets)
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            yield ast.unparse(node.target), node.value


def is_container(value: ast.expr) -> bool:
    made = isinstance(value, ast.Call) and ast.unparse(value.func).split(".")[-1] in MAKERS
    return made or isinstance(value, CONTAINERS)


def test_modules_keep_no_state() -> None:
    """A container with an upper-case name is a constant; `global` has no excuse."""
    kept = [
        f"{module.name} keeps {name}"
        for module in modules()
        for name, value in module_variables(module.tree)
        if is_container(value) and not name.isupper() and name != "__all__"
    ]
    assert kept == []
    nodes = [(module.name, node) for module in modules() for node in ast.walk(module.tree)]
    assert [name for name, node in nodes if isinstance(node, ast.Global)] == []


def defined_names(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name


def test_names_say_what_things_are() -> None:
    names = [module.name for module in modules()]
    names += [f"{m.name}.{name}" for m in modules() for name in defined_names(m.tree)]
    assert [name for name in names if any(vague in name.lower() for vague in VAGUE)] == []


def test_public_class_names_are_unique() -> None:
    """A name stands for one thing, so that a reader never asks which one is meant."""
    places: dict[str, list[str]] = {}
    for module in modules():
        for node in module.tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(module.name)
    assert {name: found for name, found in places.items() if len(found) > 1} == {}
