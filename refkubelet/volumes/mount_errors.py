"""Why a volume cannot be mounted, as events tell it."""

from __future__ import annotations

from typing import Final

from refkubelet.api.client import ApiError

SET_UP: Final = "SetUp failed"
MOUNT_DEVICE: Final = "MountDevice failed"
WAIT_FOR_ATTACH: Final = "WaitForAttach failed"
AFFINITY: Final = "NodeAffinity check failed"
NEW_MOUNTER: Final = "NewMounter initialization failed"
OPTIONS: Final = "MountOptionSupport check failed"
WHILE_EXPANDING: Final = "Setup failed while expanding volume"


class MountFailed(Exception):
    """A volume cannot be mounted. `step`: what failed of it, as events tell."""

    def __init__(self, step: str, why: str) -> None:
        super().__init__(why)
        self.step = step


class NotAttached(Exception):
    """The volume is not attached to this node yet: it is waited for, and nobody is told."""


class NotMeasured(Exception):
    """The driver of a volume does not tell its size now."""


def in_words(error: Exception) -> str:
    """What an event tells of an error."""
    if isinstance(error, ApiError):
        return error.message
    if not isinstance(error, OSError) or not error.strerror:
        return str(error)
    where = f"{error.filename}: " if error.filename else ""
    return f"{where}{error.strerror[:1].lower()}{error.strerror[1:]}"
