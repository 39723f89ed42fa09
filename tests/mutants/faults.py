"""Small faults in a module, by its syntax tree: another comparison, off by one, the other extreme, the other branch."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator
from dataclasses import dataclass

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
_PAIRS = (("min", "max"), ("minimum", "maximum"), ("any", "all"), ("argmin", "argmax"))
NAMES = dict(_PAIRS) | {other: one for one, other in _PAIRS}
WORDS = {"left": "right", "right": "left"}
"""Sides of `searchsorted`."""

_AROUND = 30
"""Characters shown on either side of a change."""

_LARGEST = 64
"""Larger numbers are sizes and budgets: one more or less decides nothing."""


@dataclass(frozen=True)
class Fault:
    """A fault: where, what stood there, what stands there now, the whole module with it, and how it is made again."""

    path: str
    function: str
    line: int
    before: str
    after: str
    text: str
    number: int
    way: int
    last: int

    @property
    def name(self) -> str:
        """What it is called in docs/testing.md: no line number, so that it lasts."""
        return f"{self.path} {self.function}: {self.before} -> {self.after}"


class _Place:
    """A node of the tree, with the nodes around it."""

    def __init__(self, node: ast.AST, function: str, statement: ast.stmt) -> None:
        self.node, self.function, self.statement = node, function, statement


def sites(text: str) -> list[tuple[int, int]]:
    """Every place of a module that can be changed, by its number, with the number of each way to change it."""
    found = enumerate(places(ast.parse(text)))
    return [(number, way) for number, place in found for way in range(_ways(place.node))]


def fault(path: str, text: str, number: int, way: int) -> Fault:
    """Change one place of a module in one way; annotations, docstrings and messages are no places."""
    tree = ast.parse(text)
    place = next(itertools.islice(places(tree), number, None))
    line, last = place.statement.lineno, place.statement.end_lineno or place.statement.lineno
    before = ast.unparse(place.statement)
    _change(place.node, way)
    after = ast.unparse(place.statement)
    whole = ast.unparse(ast.fix_missing_locations(tree))
    return Fault(path, place.function, line, *_shown(before, after), whole, number, way, last)


def changed(text: str, number: int, way: int) -> ast.Module:
    """Change one place of a module in one way: its syntax tree, each node on the line where it stood."""
    tree = ast.parse(text)
    _change(next(itertools.islice(places(tree), number, None)).node, way)
    return ast.fix_missing_locations(tree)


def places(tree: ast.Module) -> Iterator[_Place]:
    """Every node that may be changed, in order."""

    def walk(node: ast.AST, function: str, statement: ast.stmt | None) -> Iterator[_Place]:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            function = f"{function}.{node.name}".strip(".")
        if isinstance(node, ast.stmt):
            statement = node
        if isinstance(node, (ast.Import, ast.ImportFrom)) or _is_text(node) or _is_for_types(node):
            return
        if statement is not None and function:
            yield _Place(node, function, statement)
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list", "type_params", "bases"):
                continue
            for below in value if isinstance(value, list) else [value]:
                if isinstance(below, ast.AST):
                    yield from walk(below, function, statement)

    yield from walk(tree, "", None)


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _is_for_types(node: ast.AST) -> bool:
    """Calls that say how something is shown or typed, messages, and sizes (`1 << 16`): one more decides nothing.

    `strict=True` asserts that two rows are equally long: while they are, nothing comes of it.
    """
    if isinstance(node, ast.keyword) and node.arg == "strict":
        return True
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.LShift) and isinstance(node.right, ast.Constant):
        return isinstance(node.left, ast.Constant)
    if isinstance(node, ast.If) and isinstance(node.test, ast.Name):
        return node.test.id == "TYPE_CHECKING"
    return isinstance(node, (ast.JoinedStr, ast.Raise, ast.Assert, ast.Subscript)) and not (
        isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load) and not _is_type(node)
    )


def _is_type(node: ast.Subscript) -> bool:
    return isinstance(node.value, ast.Name) and node.value.id in ("list", "dict", "tuple", "set", "Sequence", "Mapping")


def _ways(node: ast.AST) -> int:
    """In how many ways a node can be changed."""
    if isinstance(node, ast.Compare):
        return len(node.ops)
    if isinstance(node, ast.Constant):
        value = node.value
        number = type(value) is int and abs(value) <= _LARGEST
        return 2 if number else int(isinstance(value, bool) or (isinstance(value, str) and value in WORDS))
    return int(
        isinstance(node, (ast.BoolOp, ast.If, ast.IfExp, ast.While))
        or (isinstance(node, (ast.BinOp, ast.AugAssign)) and type(node.op) in ARITHMETIC)
        or (isinstance(node, ast.Name) and node.id in NAMES)
        or (isinstance(node, ast.Attribute) and node.attr in NAMES)
        or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert))
    )


def _change(node: ast.AST, way: int) -> None:
    """Change a node in place."""
    if isinstance(node, ast.Compare):
        node.ops[way] = COMPARISONS[type(node.ops[way])]()
    elif isinstance(node, ast.Constant):
        value = node.value
        if isinstance(value, bool):
            node.value = not value
        else:
            node.value = WORDS[value] if isinstance(value, str) else value + (1, -1)[way]  # type: ignore[operator]
    elif isinstance(node, ast.BoolOp):
        node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
    elif isinstance(node, (ast.BinOp, ast.AugAssign)):
        node.op = ARITHMETIC[type(node.op)]()
    elif isinstance(node, ast.Name):
        node.id = NAMES[node.id]
    elif isinstance(node, ast.Attribute):
        node.attr = NAMES[node.attr]
    elif isinstance(node, ast.UnaryOp):
        node.op = ast.UAdd()
    elif isinstance(node, (ast.If, ast.IfExp, ast.While)):
        node.test = ast.UnaryOp(ast.Not(), node.test)


def _shown(before: str, after: str) -> tuple[str, str]:
    """What differs, of a statement before and after, with a little of what stands around it."""
    pairs = zip(before.split("\n"), after.split("\n"), strict=False)
    old, new = next((a.strip(), b.strip()) for a, b in pairs if a != b)
    same = _common(old, new)
    tail = _common(old[same:][::-1], new[same:][::-1])
    start = max(same - _AROUND, 0)
    return old[start : len(old) - max(tail - _AROUND, 0)], new[start : len(new) - max(tail - _AROUND, 0)]


def _common(one: str, other: str) -> int:
    """How many characters two texts begin with alike."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))
