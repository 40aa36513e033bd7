"""What `tools/mutate.py` changes: each small change that can be made inside the functions of a file, in a fixed order.

A change is known by its file, its function, the line as it is written, and what becomes what, not by a line number: it
stays the same change while the rest of the file is edited. Texts, annotations, default values, decorators and what is
said in errors are left alone: whether they are right is read, not tested. So is a call of `super()` by itself.
"""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Div: ast.Mult,
}
_CALLS = {"min": "max", "max": "min", "any": "all", "all": "any"}
# What has no value that could be wrong, or is a text.
_LEFT_ALONE = (ast.JoinedStr, ast.Raise, ast.Assert, ast.arguments)
_FIELDS_LEFT_ALONE = ("annotation", "decorator_list", "returns", "format_spec", "type_params")


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change of one function.

    Attributes:
        file: The file, below `src/compact/`.
        function: The function, with the names of its classes.
        line: The line on which the change is, without what is around it.
        change: What becomes what.
        number: Which of the changes of its file.
        first_line: Where the statement begins.
        last_line: Where it ends, or its condition if it contains others.
    """

    file: str
    function: str
    line: str
    change: str
    number: int
    first_line: int
    last_line: int

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What it is known by."""
        return self.file, self.function, self.line, self.change


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a change goes unnoticed and may."""

    file: str
    function: str
    line: str
    change: str
    why: str

    @property
    def key(self) -> tuple[str, str, str, str]:
        """The change that it explains."""
        return self.file, self.function, self.line, self.change


def mutants_of(source: Path, file: str) -> list[Mutant]:
    """Return every change that can be made in a file, in order of its lines."""
    text = (source / file).read_text(encoding="utf-8")
    lines = text.splitlines()
    found: list[Mutant] = []
    for number, place in enumerate(_places(ast.parse(text))):
        line = lines[place.old.lineno - 1].strip()
        found.append(Mutant(file, place.function, line, place.change, number, *place.statement_lines))
    return found


def mutated(text: str, number: int) -> ast.Module:
    """Return the tree of a file with its change of this number made."""
    tree = ast.parse(text)
    places = list(_places(tree))
    if number >= len(places):
        raise ValueError(f"the file has {len(places)} changes, there is none of number {number}: list them again")
    places[number].make()
    return ast.fix_missing_locations(tree)


def explanations(file: Path) -> list[Explanation]:
    """Return what is known about changes that go unnoticed."""
    data = tomllib.loads(file.read_text(encoding="utf-8"))
    return [Explanation(**one) for one in data.get("survivor", [])]


def as_explanation(mutant: Mutant, why: str = "") -> str:
    """Return the lines for a change in the file of explanations."""
    rows = zip(("file", "function", "line", "change", "why"), (*mutant.key, why), strict=True)
    return "[[survivor]]\n" + "".join(f"{name} = {_quoted(value)}\n" for name, value in rows)


def _quoted(text: str) -> str:
    """Return a TOML string: as it is where that is possible, so that code is read as code."""
    if "'" not in text and text.isprintable():
        return f"'{text}'"
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


@dataclass(frozen=True, slots=True)
class _Place:
    """A node that can be replaced, and by what."""

    function: str
    statement: ast.stmt
    old: ast.expr | ast.stmt
    new: ast.AST
    put: Callable[[ast.AST], None]

    @property
    def change(self) -> str:
        """What becomes what."""
        return f"{ast.unparse(self.old)} → {ast.unparse(self.new)}".replace("\n", " ")

    @property
    def statement_lines(self) -> tuple[int, int]:
        """The lines of the statement, or of its head where others are inside."""
        body: list[ast.stmt] = getattr(self.statement, "body", [])
        end = body[0].lineno - 1 if body else self.statement.end_lineno or self.statement.lineno
        return self.statement.lineno, max(end, self.statement.lineno)

    def make(self) -> None:
        """Make the change in the tree that the node is part of."""
        self.put(self.new)


def _places(tree: ast.Module) -> Iterator[_Place]:
    for name, function in _functions(tree, ""):
        for statement in function.body:
            yield from _in_node(statement, name, statement, _putter(function, "body", function.body.index(statement)))


def _functions(node: ast.Module | ast.ClassDef, prefix: str) -> Iterator[tuple[str, Any]]:
    for child in node.body:
        if isinstance(child, ast.ClassDef):
            yield from _functions(child, f"{prefix}{child.name}.")
        elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield f"{prefix}{child.name}", child


def _putter(parent: ast.AST, field: str, index: int | None) -> Callable[[ast.AST], None]:
    def put(new: ast.AST) -> None:
        if index is None:
            setattr(parent, field, new)
        else:
            getattr(parent, field)[index] = new

    return put


def _in_node(
    node: ast.AST, function: str, statement: ast.stmt, put: Callable[[ast.AST], None], *, is_condition: bool = False
) -> Iterator[_Place]:
    """Yield the changes of a node, then those of what it consists of."""
    if isinstance(node, ast.stmt):
        statement = node
    if isinstance(node, ast.expr | ast.stmt):
        for new in _replacements(node, is_condition=is_condition):
            yield _Place(function, statement, node, ast.copy_location(new, node), put)
    if isinstance(node, _LEFT_ALONE):
        return
    for field, value in ast.iter_fields(node):
        if field in _FIELDS_LEFT_ALONE:
            continue
        children: list[Any] = list(value) if isinstance(value, list) else [value]  # type: ignore[arg-type]
        for index, child in enumerate(children):
            if isinstance(child, ast.AST):
                place = index if isinstance(value, list) else None
                tested = field == "test" or (field == "ifs" and isinstance(node, ast.comprehension))
                yield from _in_node(child, function, statement, _putter(node, field, place), is_condition=tested)


def _replacements(node: ast.expr | ast.stmt, *, is_condition: bool) -> Iterator[ast.expr | ast.stmt]:
    """Yield what can stand in place of a node."""
    match node:
        case ast.Compare(left=left, ops=ops, comparators=comparators):
            for place, op in enumerate(ops):
                changed = [*ops[:place], _COMPARISONS[type(op)](), *ops[place + 1 :]]
                yield ast.Compare(left, changed, comparators)
        case ast.BoolOp(op=op, values=values):
            yield ast.BoolOp(ast.Or() if isinstance(op, ast.And) else ast.And(), values)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield operand
        case ast.Constant(value=bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(value=int(value)):
            yield ast.Constant(value + 1)
        case ast.Expr(value=ast.Call()) if _asks_super(node):
            return  # a function without it cannot be given to those who have it: it closes over its class
        case ast.Expr(value=ast.Call()) | ast.Raise():
            yield ast.Pass()
        case _ if is_condition:
            yield ast.UnaryOp(ast.Not(), node)  # type: ignore[arg-type]
        case _:
            yield from _more_replacements(node)


def _more_replacements(node: ast.expr | ast.stmt) -> Iterator[ast.expr | ast.stmt]:
    """Yield the same for arithmetic, calls, slices and loops."""
    match node:
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARITHMETIC and not _is_text(left, right):
            yield ast.BinOp(left, _ARITHMETIC[type(op)](), right)
        case ast.AugAssign(target=target, op=op, value=value) if type(op) in _ARITHMETIC and not _is_text(value):
            yield ast.AugAssign(target, _ARITHMETIC[type(op)](), value)
        case ast.Call(func=ast.Name(id=name), args=args, keywords=keywords) if name in _CALLS:
            yield ast.Call(ast.Name(_CALLS[name], ast.Load()), args, keywords)
        case ast.Slice(lower=lower, upper=upper, step=step):
            if lower is not None:
                yield ast.Slice(None, upper, step)
            if upper is not None:
                yield ast.Slice(lower, None, step)
        case ast.Continue():
            yield ast.Break()
        case ast.Break():
            yield ast.Continue()
        case _:
            return


def _asks_super(node: ast.AST) -> bool:
    return any(isinstance(one, ast.Name) and one.id == "super" for one in ast.walk(node))


def _is_text(*nodes: ast.expr) -> bool:
    return any(isinstance(n, ast.JoinedStr | ast.List | ast.Tuple) or _is_string(n) for n in nodes)


def _is_string(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)
