"""Errors that a user of the mount or of the projection can mend."""

from __future__ import annotations

from pathlib import Path


class OutsideError(Exception):
    """The mount or projection cannot be; the text is the whole message, in one line."""


def require_empty(directory: Path, what: str) -> None:
    """Check that `directory` is an empty directory; `what`: what texts call it. Raises
    OutsideError."""
    try:
        entry = next(iter(sorted(directory.iterdir())), None)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise OutsideError(f"{what} {directory}: {reason}; give an empty directory") from None
    if entry is not None:
        raise OutsideError(f"{what} {directory}: has {entry.name} in it; give an empty directory")
