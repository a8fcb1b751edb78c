"""Makes cgroups and fills them, for the contract of the cgroup file system."""

from __future__ import annotations

from typing import Any, Final

UNLIMITED: Final = "9223372036854771712\n"


def group(side: Any, tree: str, name: str = "g") -> Any:
    """A new cgroup below this side's own."""
    path = side.tree(tree) / name
    path.mkdir()
    return path


def put(process: Any, path: Any) -> None:
    (path / "cgroup.procs").write_text(str(process.pid))


def equal(seen: Any, wanted: Any) -> None:
    assert seen == wanted
