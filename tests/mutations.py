"""Which single changes of a syntax tree are worth a test: the operators of `tests.mutants`."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

OPERATORS: dict[type, list[type]] = {
    ast.Lt: [ast.LtE, ast.GtE],
    ast.LtE: [ast.Lt, ast.Gt],
    ast.Gt: [ast.GtE, ast.LtE],
    ast.GtE: [ast.Gt, ast.Lt],
    ast.Eq: [ast.NotEq],
    ast.NotEq: [ast.Eq],
    ast.Is: [ast.IsNot],
    ast.IsNot: [ast.Is],
    ast.In: [ast.NotIn],
    ast.NotIn: [ast.In],
    ast.Add: [ast.Sub],
    ast.Sub: [ast.Add],
    ast.Mult: [ast.Div],
    ast.Div: [ast.Mult],
    ast.FloorDiv: [ast.Mult],
    ast.Mod: [ast.FloorDiv],
    ast.Pow: [ast.Mult],
    ast.BitOr: [ast.BitAnd],
    ast.BitAnd: [ast.BitOr],
    ast.And: [ast.Or],
    ast.Or: [ast.And],
}
PAIRS = (
    "min max, minimum maximum, any all, argmin argmax, floor ceil, zeros ones, lower upper, "
    "zeros_like ones_like, startswith endswith, append extend, sin cos, log log1p, exp expm1"
)
NAMES = {a: b for pair in PAIRS.split(", ") for a, b in (pair.split(), pair.split()[::-1])}
#: Keywords without which the result is the same, or only slower.
HARMLESS = {"strict", "dtype", "copy", "stacklevel", "check_finite", "overwrite_a", "overwrite_b"}
#: What the code does not do: types, and what stands above a function.
NOT_CODE = {"annotation", "returns", "decorator_list", "type_comment", "type_params", "bases"}


@dataclass
class Mutant:
    """One change: where in the tree, and how it is called in results and lists."""

    parent: ast.AST
    field: str
    index: int | None
    new: ast.AST
    name: str  # the outermost function, with its class
    early: bool  # whether it runs on import
    digest: str  # of that function
    id: str = ""

    def put(self, node: ast.AST) -> ast.AST:
        """Put a node in its place, and return what was there."""
        if self.index is None:
            old = getattr(self.parent, self.field)
            setattr(self.parent, self.field, node)
        else:
            nodes = getattr(self.parent, self.field)
            old, nodes[self.index] = nodes[self.index], node
        return old


def compiled(tree: ast.Module, mutant: Mutant, path: str) -> Any:
    """Compile a file with one change; the tree stays as it is."""
    old = mutant.put(mutant.new)
    try:
        return compile(ast.fix_missing_locations(tree), path, "exec")
    finally:
        mutant.put(old)


def changes(node: ast.AST) -> Iterator[ast.AST]:
    """What a node can be instead."""
    match node:
        case ast.Compare(left, ops, rights):
            for place, op in enumerate(ops):
                for other in OPERATORS.get(type(op), []):
                    yield ast.Compare(left, [*ops[:place], other(), *ops[place + 1 :]], rights)
        case ast.BinOp(left, op, right):
            for other in OPERATORS.get(type(op), []):
                yield ast.BinOp(left, other(), right)
        case ast.AugAssign(target, op, value):
            yield ast.Assign([target], value)
            for other in OPERATORS.get(type(op), []):
                yield ast.AugAssign(target, other(), value)
        case ast.UnaryOp(ast.Not() | ast.USub(), value):
            yield value
        case ast.BoolOp(op, values):
            yield ast.BoolOp(OPERATORS[type(op)][0](), values)
            for place in range(len(values)):
                left = [*values[:place], *values[place + 1 :]]
                yield ast.BoolOp(op, left) if len(left) > 1 else left[0]
        case ast.Constant(bool() as value):
            yield ast.Constant(not value)
        case ast.Constant(0 | 1 as value):
            yield from (
                (ast.Constant(1 - value), ast.Constant(value * 2)) if value else (ast.Constant(1),)
            )
        case ast.Constant(int() | float() as value):
            yield ast.Constant(value + 1)
            yield ast.Constant(value - 1)
        case ast.Return(ast.expr() as value) if not isinstance(value, ast.Constant):
            yield ast.Return(ast.Constant(None))
        case ast.Raise() | ast.Continue() | ast.Break() | ast.Delete():
            yield ast.Pass()
        case ast.Expr(ast.Call() | ast.Await()) | ast.Assign([ast.Attribute() | ast.Subscript()]):
            yield ast.Pass()
        case ast.Name(name) if name in NAMES:
            yield ast.Name(NAMES[name], ast.Load())
        case ast.Attribute(value, "T" | "mT"):
            yield value
        case ast.Attribute(value, name, ast.Load()) if name in NAMES:
            yield ast.Attribute(value, NAMES[name], ast.Load())
        case ast.Slice(lower, upper, step) if lower or upper:
            if lower:
                yield ast.Slice(None, upper, step)
            if upper:
                yield ast.Slice(lower, None, step)
    match node:
        case ast.Call(function, arguments, keywords):
            for place, keyword in enumerate(keywords):
                if keyword.arg and keyword.arg not in HARMLESS:
                    fewer = [*keywords[:place], *keywords[place + 1 :]]
                    yield ast.Call(function, arguments, fewer)
        case ast.If(ast.Name() | ast.Attribute() | ast.Call() as test, body, other):
            yield ast.If(ast.UnaryOp(ast.Not(), test), body, other)
        case ast.Compare(left, [op], [ast.Constant(str(word))]) if word:
            yield ast.Compare(left, [op], [ast.Constant(word[:-1])])
        case ast.Tuple(parts, ast.Load()) | ast.Set(parts):
            for place, part in enumerate(parts):
                if isinstance(part, ast.Constant) and isinstance(part.value, str) and part.value:
                    cut = ast.Constant(part.value[:-1])
                    with_cut = [*parts[:place], cut, *parts[place + 1 :]]
                    tuple_ = isinstance(node, ast.Tuple)
                    yield ast.Tuple(with_cut, ast.Load()) if tuple_ else ast.Set(with_cut)
        case ast.IfExp(test, body, other):
            yield ast.IfExp(test, other, body)
        case ast.comprehension(target, source, [_, *_], flag):
            yield ast.comprehension(target, source, [], flag)


def mutants_of(tree: ast.Module, file: str) -> list[Mutant]:
    """Every mutant of a file. Its id says what changes, not in which line."""
    found: list[Mutant] = []
    times: dict[str, int] = {}

    def visit(node: ast.AST, name: str, early: bool, owner: ast.AST) -> None:
        for field, value in ast.iter_fields(node):
            if field in NOT_CODE:
                continue
            for index, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
                if not isinstance(child, ast.AST) or is_words(child):
                    continue
                if isinstance(node, ast.keyword) and (
                    node.arg in HARMLESS or isinstance(child, ast.UnaryOp)
                ):
                    continue  # axis=-1: of matrices, 1 is the same
                inside, now, whole = name, early, owner
                if early and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    now = field != "body"  # defaults are made on import
                if now and isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                    inside = f"{name}.{child.name}".lstrip(".")
                    whole = child if not isinstance(child, ast.ClassDef) else owner
                for new in changes(child):
                    before, after = (shown(each) for each in (child, new))
                    key = f"{file}:{inside} `{before}` -> `{after}`"
                    times[key] = times.get(key, 0) + 1
                    label = key if times[key] == 1 else f"{key} #{times[key]}"
                    text = hashlib.sha256(ast.unparse(whole).encode()).hexdigest()[:12]
                    found.append(Mutant(node, field, index, new, inside, now, text, label))
                if not isinstance(child, ast.Raise):
                    visit(child, inside, now, whole)

    visit(tree, "", True, tree)
    return found


def is_words(node: ast.AST) -> bool:
    """Whether a node is a docstring, a message, or for type checkers: no result depends on it."""
    match node:
        case ast.Expr(ast.Constant(str())) | ast.JoinedStr() | ast.Assert():
            return True
        case ast.If(ast.Name("TYPE_CHECKING")):
            return True
        case ast.Call(ast.Name(name) | ast.Attribute(_, name)):
            return name == "warn" or name.endswith(("Error", "Warning"))
    return False


def shown(node: ast.AST) -> str:
    """A node in one line; of a block its head."""
    text = ast.unparse(ast.fix_missing_locations(node)).strip()
    return " ".join(text.split("\n")[0].split())[:160]
