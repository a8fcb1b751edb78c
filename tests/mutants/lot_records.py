"""Which arguments of a call may be left out: fields and parameters that have a default.

A call names a function or record by a word only; where several have this name, all of those that
have the parameter must have a default for it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

Parameters = dict[str, bool]
"""Parameter or field -> whether it has a default."""
CHANGED_COPIES: Final = {"replace"}


class Records:
    """Functions and classes by name."""

    def __init__(self, trees: Iterable[ast.Module]) -> None:
        self._known: dict[str, list[Parameters]] = {}
        self._classes: dict[str, ast.ClassDef] = {}
        nodes = [node for tree in trees for node in ast.walk(tree)]
        self._classes = {node.name: node for node in nodes if isinstance(node, ast.ClassDef)}
        for node in nodes:
            if isinstance(node, ast.ClassDef):
                self._known.setdefault(node.name, []).append(self._fields(node, set()))
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                self._known.setdefault(node.name, []).append(dict(_parameters(node.args)))

    def optional(self, call: ast.Call, messages: set[str]) -> Iterator[ast.keyword]:
        """The keyword arguments that may be left out. `messages`: the names under which the module
        imports protobuf messages, whose fields all may be."""
        match call.func:
            case ast.Attribute(ast.Name(module)) if module in messages:
                yield from (word for word in call.keywords if word.arg)
            case ast.Name(name) | ast.Attribute(attr=name):
                for word in call.keywords:
                    if word.arg and (name in CHANGED_COPIES or self._has_default(name, word.arg)):
                        yield word

    def _has_default(self, name: str, parameter: str) -> bool:
        having = [each[parameter] for each in self._known.get(name, ()) if parameter in each]
        return bool(having) and all(having)

    def _fields(self, node: ast.ClassDef, above: set[str]) -> Parameters:
        """Of a record with those of its bases, or the parameters of its `__init__`."""
        found: Parameters = {}
        for base in node.bases:
            name = base.id if isinstance(base, ast.Name) else ""
            if name in self._classes and name not in above and name != node.name:
                found |= self._fields(self._classes[name], {*above, node.name})
        for part in node.body:
            if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
                found[part.target.id] = part.value is not None
            elif isinstance(part, ast.FunctionDef) and part.name == "__init__":
                found |= dict(_parameters(part.args))
        return found


def _parameters(args: ast.arguments) -> Iterator[tuple[str, bool]]:
    ordered = [*args.posonlyargs, *args.args]
    without = len(ordered) - len(args.defaults)
    yield from ((arg.arg, place >= without) for place, arg in enumerate(ordered))
    pairs = zip(args.kwonlyargs, args.kw_defaults, strict=True)
    yield from ((arg.arg, default is not None) for arg, default in pairs)


def messages_in(tree: ast.Module) -> set[str]:
    """The names under which a module imports protobuf messages."""
    found: Mapping[str, str] = {
        alias.asname or alias.name: alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("kubecri")
        for alias in node.names
    }
    return {name for name, module in found.items() if module.endswith("_pb2")}
