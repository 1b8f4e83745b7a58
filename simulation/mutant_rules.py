"""Faults made by rule: a comparison turned round, a call left out, an `and` for an `or`."""

import ast
import hashlib
from collections.abc import Iterator
from pathlib import Path

from simulation.mutants import PACKAGE, Mutant

ROOMS = ("agent/edits", "agent/event_log", "infrastructure/records", "core/kernel", "agent/turns")
# What no story and no test of these rooms is about.
_LEFT_OUT = {"retired_models", "json_log", "memory_store", "run_records", "inspection", "compactor"}


def generated(count: int, seed: int) -> list[Mutant]:
    """Return so many drawn from all that the rules make of these rooms.

    Each is drawn by what it is, not by its place: as long as a line is as it was, so is its lot.
    """
    found = [
        mutant
        for room in ROOMS
        for path in sorted((PACKAGE / room).glob("*.py"))
        if path.stem not in _LEFT_OUT
        for mutant in _of_file(path)
    ]
    found.sort(
        key=lambda one: hashlib.sha256(
            f"{seed} {one.room}/{Path(one.file).name} {one.old} {one.new}".encode()
        ).digest()
    )
    return found[:count]


def _of_file(path: Path) -> Iterator[Mutant]:
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    for node in ast.walk(ast.parse(text)):
        line = getattr(node, "lineno", 0)
        if not line or node.end_lineno != line:  # type: ignore[attr-defined]
            continue
        changed = _changed(node)
        old = lines[line - 1]
        if changed is None or text.count(old) != 1:
            continue
        new = f"{old[: node.col_offset]}{changed}{old[node.end_col_offset :]}"  # type: ignore[attr-defined]
        file = path.relative_to(PACKAGE).as_posix()
        if new != old:
            yield Mutant(f"{file}:{line} `{changed}`", file, old, new)


_FLIPPED: dict[type[ast.cmpop], ast.cmpop] = {
    ast.Eq: ast.NotEq(),
    ast.NotEq: ast.Eq(),
    ast.Lt: ast.LtE(),
    ast.LtE: ast.Lt(),
    ast.Gt: ast.GtE(),
    ast.GtE: ast.Gt(),
    ast.Is: ast.IsNot(),
    ast.IsNot: ast.Is(),
    ast.In: ast.NotIn(),
    ast.NotIn: ast.In(),
}


def _changed(node: ast.AST) -> str | None:
    """Return what stands in the place of this node in a mutant; None: nothing is made of it."""
    match node:
        case ast.Compare(ops=[op]):
            return ast.unparse(ast.Compare(node.left, [_FLIPPED[type(op)]], node.comparators))
        case ast.BoolOp(op=op, values=values):
            other = ast.And() if isinstance(op, ast.Or) else ast.Or()
            return f"({ast.unparse(ast.BoolOp(other, values))})"
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return ast.unparse(operand)
        case ast.Expr(value=ast.Call() | ast.Await()):
            return "pass"
        case ast.Return(value=ast.Constant(value=bool() as value)):
            return f"return {not value}"
        case _:
            return None
