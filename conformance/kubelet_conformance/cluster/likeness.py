"""Whether two machines have the same package: what one seed makes is the same only then."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from msgspec import Struct

from simclock.distribution import PACKAGES, own_version

GENERATED: Final = "kubecri"
"""Its files depend on no version of ours."""
SHOWN: Final = 8


class Package(Struct, frozen=True):
    """A package as it is installed."""

    version: str
    files: str
    """A digest of its modules: versions of checkouts say little."""

    def __str__(self) -> str:
        return f"{self.version} (files {self.files[:SHOWN]})"


@cache
def own_package() -> Package:
    """This one."""
    digest = hashlib.sha256()
    for name in PACKAGES:
        spec = find_spec(name)
        places = (spec.submodule_search_locations if spec else None) or ()
        for place in places if name != GENERATED else ():
            for file in sorted(Path(place).rglob("*.py")):
                digest.update(str(file.relative_to(place)).encode() + b"\0")
                digest.update(file.read_bytes())
    return Package(own_version(), digest.hexdigest())
