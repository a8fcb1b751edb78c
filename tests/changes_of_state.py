"""What functions change of what they are given, read off their source.

`Changes(modules).of(name)` tells for a module which of its public functions and classes change an
argument, their own object (after it was made) or the module: an assignment to an attribute or an
item, `del`, a method that changes (append, update, an event's set, ...), or a call of another
function of these modules that does. What a function makes itself it may change, and so may what is
private to a module (`_Pass`, `_collect`) change what the module has made: only what reaches an
argument of something public counts. Names that are bound to parts of an argument count as the
argument; types are known from annotations alone.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

FunctionNode: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
Kind: TypeAlias = ast.expr | None
"""How a type is written; None: it is not."""
CHANGING: Final = {
    *("add", "append", "appendleft", "clear", "discard", "difference_update", "extend"),
    *("extendleft", "insert", "intersection_update", "pop", "popitem", "popleft", "put_nowait"),
    *("remove", "reverse", "rotate", "set", "set_result", "setdefault", "sort"),
    *("update", "write", "cancel"),
}
"""Methods that change their object, of the types that Python brings."""
PARTS: Final = {"get", "items", "values", "keys", "setdefault"}
"""Methods that answer with parts of their object."""
HOLDING: Final = {"enumerate", "reversed", "sorted", "list", "tuple", "zip"}
"""Functions whose results hold the very objects that are in their last argument."""
MAKING: Final = {"__init__", "__post_init__", "__new__", "__set_name__"}
"""What may set the attributes of its object."""
MODULE: Final = "the module"


@dataclass(slots=True)
class Function:
    """One function or method, and what it changes: its parameters, or `MODULE`."""

    module: str
    node: FunctionNode
    owner: str = ""
    """The class of a method."""
    changed: dict[str, int] = field(default_factory=dict)
    """With the line where."""

    @property
    def parameters(self) -> list[str]:
        """In order, those with a star at the end."""
        arguments = self.node.args
        names = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        more = [one for one in (arguments.vararg, arguments.kwarg) if one]
        return [one.arg for one in (*names, *more)]

    @property
    def is_static(self) -> bool:
        """Whether a method has neither object nor class as its first parameter."""
        return any(isinstance(d, ast.Name) and d.id == "staticmethod" for d in self.decorators)

    @property
    def decorators(self) -> list[ast.expr]:
        """Those of the function."""
        return self.node.decorator_list

    @property
    def is_public(self) -> bool:
        """Whether it can be called from outside its module."""
        names = [self.node.name, *self.owner.split(".")]
        return not any(name.startswith("_") and not name.endswith("__") for name in names)


class Changes:
    """Of all functions of these modules (by name). Reads everything; looks at nothing else."""

    def __init__(
        self, modules: Mapping[str, ast.Module], remembering: Collection[str] = ()
    ) -> None:
        """`remembering`: functions (`module.Class.method`) that keep what they have worked out, so
        that nobody can tell the second call from the first."""
        self._imports = {name: dict(_imported(tree)) for name, tree in modules.items()}
        self._globals = {name: set(_bound_at_top(tree)) for name, tree in modules.items()}
        self._functions: dict[tuple[str, str], Function] = {}
        for name, tree in modules.items():
            for function in _functions(name, tree):
                key = (
                    f"{function.owner}.{function.node.name}"
                    if function.owner
                    else function.node.name
                )
                self._functions[name, key] = function
        self._attributes = {
            (name, kind.name): dict(_attributes(kind))
            for name, tree in modules.items()
            for kind in tree.body
            if isinstance(kind, ast.ClassDef)
        }
        readings = [
            _Reading(self, function)
            for (module, key), function in self._functions.items()
            if f"{module}.{key}" not in remembering
        ]
        told = {reading.function.node.name for reading in readings}
        while told:  # until no call brings anything new
            told = {r.function.node.name for r in readings if r.calls & told and r.run()}

    def of(self, module: str) -> list[str]:
        """`function: what it changes, line`, of what is public in the module."""
        return [
            f"{key}: {what}, line {line}"
            for (name, key), function in self._functions.items()
            if name == module and function.is_public
            for what, line in function.changed.items()
            if not (what == "self" and function.node.name in MAKING)
        ]

    def find(self, module: str, name: str) -> Function | None:
        """The function that a name means in a module, or the method that `Class.method` does."""
        kind, dot, method = name.partition(".")
        home, _, own = self._imports.get(module, {}).get(kind, f"{module}.{kind}").rpartition(".")
        return self._functions.get((home, f"{own}{dot}{method}"))

    def kind_of(self, module: str, shown: Kind, attribute: str) -> tuple[str, Kind]:
        """The type of an attribute of what has a type; and the module in which that is said."""
        name = class_of(shown)
        home, _, own = self._imports.get(module, {}).get(name, f"{module}.{name}").rpartition(".")
        return home, self._attributes.get((home, own), {}).get(attribute)

    def is_global(self, module: str, name: str) -> bool:
        """Whether a module binds that name at its top."""
        return name in self._globals.get(module, ())


def class_of(kind: Kind) -> str:
    """The class that an annotation names, also in `X | None`; "" if it is no plain name."""
    while isinstance(kind, ast.BinOp):
        kind = kind.left
    return kind.id if isinstance(kind, ast.Name) else ""


class _Reading:
    """Finds what a function changes; reads it again when more is known of what it calls."""

    def __init__(self, world: Changes, function: Function) -> None:
        self._world = world
        self.function = self._function = function
        self._nodes = [node for node in _in_order(function.node) if isinstance(node, LOOKED_AT)]
        self.calls = {function.node.name}
        """The names that it calls, and its own, so that it is read at least once."""
        for node in self._nodes:
            match node:
                case ast.Call(func=ast.Name(id=name)) | ast.Call(func=ast.Attribute(attr=name)):
                    self.calls.add(name)
        self._given = {name: name for name in function.parameters}
        self._kinds = {
            one.arg: one.annotation
            for one in (*function.node.args.args, *function.node.args.kwonlyargs)
        }
        self._own: set[str] = set()

    def run(self) -> bool:
        """Whether more is known now."""
        before = len(self._function.changed)
        for _ in range(2):  # a name may be bound below its use, in a loop
            for node in self._nodes:
                self._look(node)
        return len(self._function.changed) > before

    def _look(self, node: ast.AST) -> None:
        match node:
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    self._bind(target, value)
            case ast.AnnAssign(target=target, value=value) if value is not None:
                self._bind(target, value)
            case ast.NamedExpr(target=target, value=value):
                self._bind(target, value)
            case (
                ast.For(target=target, iter=value)
                | ast.AsyncFor(target=target, iter=value)
                | ast.comprehension(target=target, iter=value)
            ):
                if isinstance(value, ast.Call) and isinstance(value.func, ast.Name):
                    value = value.args[-1] if value.func.id in HOLDING and value.args else value
                self._bind(target, value)
            case ast.AugAssign(target=ast.Attribute() | ast.Subscript() as target):
                self._note(target, node)
            case ast.AugAssign(target=ast.Name(id=name)) if self._is_list(name):
                self._note(node.target, node)
            case ast.Delete(targets=targets):
                for target in targets:
                    if not isinstance(target, ast.Name):
                        self._note(target, node)
            case ast.Global():
                self._function.changed.setdefault(MODULE, node.lineno)
            case ast.Call():
                self._call(node)

    def _is_list(self, name: str) -> bool:
        """Whether a parameter is annotated as something that `+=` and `|=` change in place."""
        kind = self._kinds.get(name)
        shown = ast.unparse(kind) if kind is not None else ""
        return shown.partition("[")[0] in ("list", "set", "dict", "deque", "bytearray", "Counter")

    def _bind(self, target: ast.expr, value: ast.expr) -> None:
        match target:
            case ast.Attribute() | ast.Subscript():
                self._note(target, target)
            case ast.Name(id=name):
                root = self._root(value)
                self._own.add(name)
                if root is None:
                    if name not in self._function.parameters:
                        self._given.pop(name, None)
                else:
                    self._given.setdefault(name, root)
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                values: list[ast.expr] = [value] * len(parts)
                if isinstance(value, ast.Tuple) and len(value.elts) == len(parts):
                    values = value.elts
                for part, one in zip(parts, values, strict=True):
                    self._bind(part, one)
            case ast.Starred(value=inner):
                self._bind(inner, value)

    def _root(self, value: ast.expr | None) -> str | None:
        """The parameter that an expression is, or is a part of; `MODULE` for what the module
        binds; None for what was made here."""
        match value:
            case ast.Name(id=name):
                if name in self._given:
                    return self._given[name]
                known = name not in self._own and self._world.is_global(self._function.module, name)
                return MODULE if known else None
            case ast.Attribute(value=inner) | ast.Subscript(value=inner) | ast.Await(value=inner):
                return self._root(inner)
            case ast.NamedExpr(value=inner):
                return self._root(inner)
            case ast.IfExp(body=first, orelse=second):
                return self._root(first) or self._root(second)
            case ast.BoolOp(values=values):
                return next((root for one in values if (root := self._root(one))), None)
            case ast.Call(func=ast.Attribute(value=inner, attr=name)) if name in PARTS:
                return self._root(inner)
            case ast.Call(func=ast.Name(id="cast"), args=[_, last]):
                return self._root(last)
        return None

    def _note(self, changed: ast.expr, where: ast.AST) -> None:
        root = self._root(changed)
        if root is not None:
            self._function.changed.setdefault(root, getattr(where, "lineno", 0))

    def _call(self, call: ast.Call) -> None:
        match call.func:
            case ast.Name(id="next") if call.args:
                self._note(call.args[0], call)
            case ast.Name(id="setattr" | "delattr") if call.args:
                self._note(call.args[0], call)
            case ast.Name(id=name):
                self._pass_on(self._world.find(self._function.module, name), call.args, call)
            case ast.Attribute(value=inner, attr=name):
                self._call_method(call, inner, name)

    def _call_method(self, call: ast.Call, inner: ast.expr, name: str) -> None:
        module = self._function.module
        if isinstance(inner, ast.Name) and inner.id == "object" and name == "__setattr__":
            self._note(call.args[0], call)
            return
        if isinstance(inner, ast.Name) and inner.id in ("self", "cls") and self._function.owner:
            method = self._world.find(module, f"{self._function.owner}.{name}")
        else:
            home, kind = self._kind(inner)
            method = self._world.find(home, f"{class_of(kind)}.{name}") if kind else None
        if method is not None:
            arguments = call.args if method.is_static else [inner, *call.args]
            self._pass_on(method, arguments, call)
        elif name in CHANGING:
            self._note(inner, call)

    def _kind(self, value: ast.expr) -> tuple[str, Kind]:
        """The type of an expression as annotations tell, and the module in which it is said."""
        module = self._function.module
        match value:
            case ast.Name(id="self") if self._function.owner:
                return module, ast.Name(self._function.owner)
            case ast.Name(id=name):
                return module, self._kinds.get(name)
            case ast.Attribute(value=inner, attr=attribute):
                home, kind = self._kind(inner)
                return self._world.kind_of(home, kind, attribute)
        return module, None

    def _pass_on(self, callee: Function | None, arguments: list[ast.expr], call: ast.Call) -> None:
        """What the callee changes of its parameters, the caller changes of what it hands on."""
        if callee is None:
            return
        handed = dict(zip(callee.parameters, arguments, strict=False))
        handed |= {word.arg: word.value for word in call.keywords if word.arg}
        for name in callee.changed:
            if name == MODULE:
                self._function.changed.setdefault(MODULE, call.lineno)
            elif name in handed:
                self._note(handed[name], call)


LOOKED_AT: Final = (
    *(ast.Assign, ast.AnnAssign, ast.NamedExpr, ast.For, ast.AsyncFor, ast.comprehension),
    *(ast.AugAssign, ast.Delete, ast.Global, ast.Call),
)


def _attributes(kind: ast.ClassDef) -> Iterator[tuple[str, Kind]]:
    """The attributes of a class with their types: annotated, or made of a class or a parameter in
    `__init__`."""
    for node in kind.body:
        match node:
            case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation):
                yield name, annotation
            case ast.FunctionDef(name="__init__", args=arguments):
                given = {
                    one.arg: one.annotation for one in (*arguments.args, *arguments.kwonlyargs)
                }
                for inner in ast.walk(node):
                    match inner:
                        case ast.AnnAssign(target=ast.Attribute(attr=name), annotation=annotation):
                            yield name, annotation
                        case ast.Assign(
                            targets=[ast.Attribute(attr=name)],
                            value=ast.Call(func=ast.Name() as made),
                        ):
                            yield name, made
                        case ast.Assign(
                            targets=[ast.Attribute(attr=name)], value=ast.Name(id=source)
                        ):
                            yield name, given.get(source)


def _in_order(node: ast.AST) -> Iterator[ast.AST]:
    """All of a function but inner classes, as it stands in the source."""
    for child in ast.iter_child_nodes(node):
        yield child
        if not isinstance(child, ast.ClassDef):
            yield from _in_order(child)


def _functions(module: str, tree: ast.Module) -> Iterator[Function]:
    """All functions and methods; those inside of a function are a part of it."""

    def inside(nodes: list[ast.stmt], owner: str) -> Iterator[Function]:
        for node in nodes:
            match node:
                case ast.FunctionDef() | ast.AsyncFunctionDef():
                    yield Function(module, node, owner)
                case ast.ClassDef(name=name, body=body):
                    yield from inside(body, f"{owner}.{name}" if owner else name)
                case ast.If(body=body, orelse=more):
                    yield from inside([*body, *more], owner)

    yield from inside(tree.body, "")


def _imported(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                yield alias.asname or alias.name, f"{node.module}.{alias.name}"


def _bound_at_top(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        match node:
            case ast.Assign(targets=targets):
                yield from (target.id for target in targets if isinstance(target, ast.Name))
            case ast.AnnAssign(target=ast.Name(id=name)):
                yield name
