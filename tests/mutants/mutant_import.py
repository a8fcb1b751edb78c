"""Makes this process import a mutant instead of refkubelet: its changes are applied in memory.

The modules that a mutant changes are compiled from the patched text; nothing is written to disk,
and no cached byte code is read for them. For processes that run nothing else afterwards.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType
from typing import Any

from mutant_tables import Hunk, Mutant, applied

ABOVE = {
    "refkubelet": ("kubelet_conformance",),
    "kubeobjects": ("fakecri", "fakekubeapi", "refkubelet", "kubelet_conformance"),
}
"""What imports names of these packages, so that it must be imported anew as well."""


class PatchedLoader(SourceFileLoader):
    """Compiles a module from its file with hunks applied."""

    def __init__(self, name: str, path: str, hunks: Sequence[Hunk]) -> None:
        super().__init__(name, path)
        self.hunks = hunks

    def get_code(self, fullname: str) -> CodeType:
        """The patched module, compiled. Raises MutantError where a hunk does not fit."""
        text = self.get_data(self.path).decode()
        return compile(applied(self.hunks, text), self.path, "exec", dont_inherit=True)


class MutantFinder(MetaPathFinder):
    """Finds the modules that a mutant changes, and gives them the loader above."""

    def __init__(self, mutant: Mutant) -> None:
        self.changes = mutant.modules
        self.found: set[str] = set()

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """As the finders of `sys.meta_path` do; None for all modules that are not changed."""
        if name not in self.changes:
            return None
        spec: Any = PathFinder.find_spec(name, path, target)
        if spec is None or spec.origin is None:
            return None
        self.found.add(name)
        spec.loader = PatchedLoader(name, spec.origin, self.changes[name])
        spec.cached = None
        return spec  # type: ignore[no-any-return]


def become(mutant: Mutant) -> MutantFinder:
    """From now on this process imports the mutant. Modules of the packages that it changes, and of
    those above them, are forgotten, so that all of them are imported anew."""
    changed = {name.partition(".")[0] for name in mutant.modules}
    forgotten = changed.union(*(ABOVE[package] for package in changed))
    for name in list(sys.modules):
        if name.partition(".")[0] in forgotten:
            del sys.modules[name]
    finder = MutantFinder(mutant)
    sys.meta_path.insert(0, finder)
    return finder
