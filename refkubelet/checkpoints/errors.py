"""What can be wrong with a state file. Pure."""

from __future__ import annotations

from typing import Final

CORRUPT: Final = "checkpoint is corrupted"  # upstream's word for a checksum that does not fit


class StateFileError(Exception):
    """The file cannot be used; the text says why, in upstream's words where it has them."""
