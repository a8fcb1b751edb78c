"""The certificate that a kubelet makes for itself when its directory has none.

Making the keys of one is a fifth of what a kubelet's start costs, so the one of the first kubelet
of this process serves all others: they take it for their own of an earlier start.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

FILES: Final = ("kubelet.crt", "kubelet.key")
OWNER_ONLY: Final = 0o600

_kept: dict[Path, dict[str, bytes]] = {}
"""The kubelet's program -> its files by name."""


def lay(program: Path, directory: Path) -> None:
    """Write the files of an earlier kubelet of that program into `directory`, unless it has some or
    there are none."""
    files = _kept.get(program)
    if files is None or any((directory / name).exists() for name in FILES):
        return
    directory.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (directory / name).touch(OWNER_ONLY)
        (directory / name).write_bytes(content)


def keep(program: Path, directory: Path) -> None:
    """Keep the files that a kubelet of that program has made in `directory`, if it has all."""
    if program not in _kept and all((directory / name).is_file() for name in FILES):
        _kept[program] = {name: (directory / name).read_bytes() for name in FILES}
