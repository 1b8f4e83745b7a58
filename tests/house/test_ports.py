"""A port needs two real implementations, or a reason why it is one (rule 8)."""

import ast
from collections.abc import Iterator

from tests.support.package_source import FUNCTIONS, modules

# Ports with fewer than two implementations in the package, and why each is a port all the same.
REASONS: dict[str, str] = {}

Members = dict[str, set[str]]


def classes() -> Iterator[ast.ClassDef]:
    for module in modules():
        yield from (node for node in ast.walk(module.tree) if isinstance(node, ast.ClassDef))


def bases(node: ast.ClassDef) -> set[str]:
    return {ast.unparse(base).split("[")[0].split(".")[-1] for base in node.bases}


def members(node: ast.ClassDef) -> set[str]:
    """Methods and declared attributes, without those of Python's own."""
    names = {item.name for item in node.body if isinstance(item, FUNCTIONS)}
    names |= {
        item.target.id
        for item in node.body
        if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)
    }
    for item in ast.walk(node):  # `self.name = …` is how most attributes are declared
        if isinstance(item, ast.Attribute) and isinstance(item.ctx, ast.Store):
            names.add(item.attr)
    return {name for name in names if name == "__call__" or not name.startswith("__")}


def inherited(name: str, own: Members, parents: Members) -> set[str]:
    found = set(own.get(name, ()))
    for parent in parents.get(name, set()) - {name}:
        found |= inherited(parent, own, parents)
    return found


def implementations() -> dict[str, set[str]]:
    """Each port of the package with the classes that have all its members."""
    ports = {node.name: members(node) for node in classes() if "Protocol" in bases(node)}
    own = {node.name: members(node) for node in classes()}
    parents = {node.name: bases(node) for node in classes()}
    return {
        port: {
            name for name in own if name not in ports and wanted <= inherited(name, own, parents)
        }
        for port, wanted in ports.items()
        if wanted != {"__call__"}  # the type of a function: any may be passed
    }


def test_a_port_has_two_implementations_or_a_reason() -> None:
    single = {port for port, found in implementations().items() if len(found) < 2}
    assert sorted(single - REASONS.keys()) == [], "one implementation: use its class"
    assert sorted(REASONS.keys() - single) == [], "on the list, but gone"
