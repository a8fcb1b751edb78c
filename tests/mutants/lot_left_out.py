"""What mutants by lot leave alone: what does nothing, or nothing but help who reads or watches.

- texts that stand alone (docstrings), imports, `pass`, `global`
- annotations, aliases of types, `cast`'s type, `TypeVar` and its like, `if TYPE_CHECKING:`
- keywords of class statements (`frozen=True`), `__all__`, `__slots__`
- `assert`: it is there for the type checker
- `__repr__`: it is for debuggers
- calls of a logger, and the loggers themselves; that a line of the log is missing is nothing that a
  rule is about
- what stands between the braces of an f-string: Python 3.11 does not know where

All else is drawn. Nothing is on this list because it would not be noticed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

OF_TYPES: Final = {"TypeVar", "NewType", "ParamSpec", "TypeVarTuple", "Literal"}
LOGGERS: Final = {"log", "_log", "logging"}
NAMES: Final = {"__all__", "__slots__"}
GENERIC: Final = {"dict", "list", "set", "frozenset", "tuple", "type"}


def parts(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """The nodes below one that are drawn from, each with the name of the field it is in."""
    if left_out(node):
        return
    skipped = NOT_DRAWN.get(type(node), ())
    for field, value in ast.iter_fields(node):
        if field in skipped:
            continue
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, ast.AST) and not left_out(each):
                if _is_call_of(node, {"cast"}) and field == "args" and each is value[0]:
                    continue
                yield field, each


NOT_DRAWN: Final[dict[type[ast.AST], tuple[str, ...]]] = {
    ast.FunctionDef: ("returns", "type_params"),
    ast.AsyncFunctionDef: ("returns", "type_params"),
    ast.ClassDef: ("bases", "keywords", "type_params"),
    ast.AnnAssign: ("annotation",),
    ast.arg: ("annotation",),
    ast.JoinedStr: ("values",),
}


def left_out(node: ast.AST) -> bool:
    """Whether nothing in it is drawn."""
    match node:
        case ast.Import() | ast.ImportFrom() | ast.Assert() | ast.Pass() | ast.Global():
            return True
        case ast.Expr(ast.Constant()) | ast.Nonlocal():
            return True
        case ast.If(ast.Name("TYPE_CHECKING")):
            return True
        case ast.FunctionDef(name="__repr__"):
            return True
        case ast.Assign([ast.Name(name)]) if name in NAMES:
            return True
        case ast.Subscript(ast.Name(name) | ast.Attribute(attr=name)):
            return name in GENERIC or (name[:1].isupper() and not name.isupper())
        case ast.Call():
            return is_log(node) or _is_call_of(node, OF_TYPES)
    return False


def is_log(node: ast.AST) -> bool:
    """Whether it is a call of a logger, or makes one."""
    match node:
        case ast.Expr(call):
            return is_log(call)
        case ast.Call(ast.Attribute(ast.Name(name))):
            return name in LOGGERS
        case ast.Call(ast.Attribute(ast.Attribute(attr=name))):
            return name in LOGGERS
    return False


def _is_call_of(node: ast.AST, names: set[str]) -> bool:
    match node:
        case ast.Call(ast.Name(name) | ast.Attribute(attr=name)):
            return name in names
    return False
