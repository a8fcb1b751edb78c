"""Making the directories of pods. They are nearly always there already, so a look comes first.

What must never happen here: a directory that is there gets another mode.
"""

from __future__ import annotations

import os
from typing import Final

LOG_DIRECTORY_MODE: Final = 0o755
DIRECTORY_MODE: Final = 0o750


def make_directory(path: str, mode: int = DIRECTORY_MODE) -> None:
    """The directory is there afterwards, with those above it. Raises OSError."""
    if not os.path.isdir(path):
        os.makedirs(path, mode=mode, exist_ok=True)
