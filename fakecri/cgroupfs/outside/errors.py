"""What a user of the mount or of the projection can mend, in one line."""

from __future__ import annotations

from pathlib import Path


class OutsideError(Exception):
    """The text is the whole message."""


def require_empty(directory: Path, what: str) -> None:
    """Raises OutsideError unless it is an empty directory."""
    try:
        found = next(iter(sorted(directory.iterdir())), None)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise OutsideError(f"{what} {directory}: {reason}; give an empty directory") from None
    if found is not None:
        raise OutsideError(f"{what} {directory}: has {found.name} in it; give an empty directory")
