"""The faces of packages: names that are imported when they are first used.

    if TYPE_CHECKING:  # what readers, editors and mypy follow
        from fakecri.streaming.server import StreamingServer as StreamingServer
    else:
        __getattr__, __dir__ = face(__name__, {"server": "StreamingServer"})

What takes long to import and few fakes need (programs, sockets, cgroups) is used through the face
of its package, `from fakecri import streaming` and `streaming.StreamingServer`; an annotation with
it imports nothing. A face shows what is below it, so imports stay without circles, those for types
included. `tests/project/test_imports.py` holds the two lists of a face to each other.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def face(
    package: str, names_of: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package. `names_of`: by module below it, the
    names that it has, with blanks between them. They are its `__all__`, if it has no other."""
    home_of = {
        name: f"{package}.{home}" for home, names in names_of.items() for name in names.split()
    }
    namespace = vars(sys.modules[package])

    def get(name: str) -> Any:
        if name == "__all__":
            return sorted(home_of)
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = namespace[name] = getattr(import_module(home_of[name]), name)
        return value

    return get, lambda: sorted({*namespace, *home_of})
