"""Makes this process import a mutant instead of refkubelet: its changes are applied in memory.

The modules that a mutant changes are compiled from the changed text; nothing is written to disk,
and no cached byte code is read for them. For processes that run nothing else afterwards.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Mapping, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType
from typing import Any

Texts = Mapping[str, str | ast.Module]
"""Modules that differ: file below the root -> its text, or what was made of it."""
ABOVE = {
    "refkubelet": ("kubelet_conformance",),
    "fakecri": ("kubelet_conformance",),
    "kubeobjects": ("fakecri", "fakekubeapi", "refkubelet", "kubelet_conformance"),
}
"""What imports names of these packages, so that it must be imported anew as well."""


class ChangedLoader(SourceFileLoader):
    """Compiles a module from another text than its file's."""

    def __init__(self, name: str, path: str, text: str | ast.Module) -> None:
        super().__init__(name, path)
        self.text = text

    def get_code(self, fullname: str) -> CodeType:
        """The changed module, compiled."""
        return compile(self.text, self.path, "exec", dont_inherit=True)


class MutantFinder(MetaPathFinder):
    """Finds the modules that a mutant changes, and gives them the loader above."""

    def __init__(self, texts: Texts) -> None:
        self._texts = {module_of(file): text for file, text in texts.items()}
        self.unseen = set(self._texts)
        """The modules that were not imported so far."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """As the finders of `sys.meta_path` do; None for all modules that are not changed."""
        if name not in self._texts:
            return None
        spec: Any = PathFinder.find_spec(name, path, target)
        if spec is None or spec.origin is None:
            return None
        self.unseen.discard(name)
        spec.loader = ChangedLoader(name, spec.origin, self._texts[name])
        spec.cached = None
        return spec  # type: ignore[no-any-return]


def module_of(file: str) -> str:
    """Its dotted name.

    >>> module_of("refkubelet/pleg/compute.py"), module_of("refkubelet/pleg/__init__.py")
    ('refkubelet.pleg.compute', 'refkubelet.pleg')
    """
    return file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def become(texts: Texts) -> MutantFinder:
    """From now on this process imports these. Modules of the packages that they belong to, and of
    those above them, are forgotten, so that all of them are imported anew."""
    changed = {file.partition("/")[0] for file in texts}
    forgotten = changed.union(*(ABOVE[package] for package in changed))
    for name in list(sys.modules):
        if name.partition(".")[0] in forgotten:
            del sys.modules[name]
    finder = MutantFinder(texts)
    sys.meta_path.insert(0, finder)
    return finder
