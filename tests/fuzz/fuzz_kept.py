"""What the fuzzer has found so far: for each target the texts that reach most of its reader, in
`tests/data/fuzz-kept/<target>.zip`. The fuzzer begins with them, and the plain tests read them.
"""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Final

KEPT: Final = Path(__file__).parents[1] / "data" / "fuzz-kept"
SAME_DATE: Final = (1980, 1, 1, 0, 0, 0)
"""Of all files in an archive, so that the same texts make the same archive."""


def kept_texts(name: str) -> list[bytes]:
    """The texts of that target; none if nothing was kept."""
    archive = KEPT / f"{name}.zip"
    if not archive.exists():
        return []
    with zipfile.ZipFile(archive) as opened:
        return [opened.read(each) for each in sorted(opened.namelist())]


def keep(name: str, texts: Iterable[bytes]) -> int:
    """Write the archive of that target anew; returns how many texts are in it."""
    KEPT.mkdir(parents=True, exist_ok=True)
    named = {hashlib.sha1(text, usedforsecurity=False).hexdigest(): text for text in texts}
    with zipfile.ZipFile(KEPT / f"{name}.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for each in sorted(named):
            archive.writestr(zipfile.ZipInfo(each, SAME_DATE), named[each], zipfile.ZIP_DEFLATED)
    return len(named)
