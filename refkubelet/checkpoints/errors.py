"""What can be wrong with a file that outlives the kubelet, and how the user is told. Pure."""

from __future__ import annotations

import json
from typing import Any, Final

from refkubelet.golang.strconv import quoted

CORRUPT: Final = "checkpoint is corrupted"  # upstream's word for a checksum that does not fit


class CheckpointError(ValueError):
    """The text of a file is not what a kubelet wrote; says what was wanted and what was found."""


class StateFileError(Exception):
    """A file is there and cannot be used; the text says why, in upstream's words where it has
    them. The kubelet must not start with such a file: the wiring makes a `ConfigError` of it."""


def json_value(text: bytes | str) -> Any:
    """The JSON value of what a file holds, which a crash, a full disk or an editor may have
    spoiled. Raises `CheckpointError` for what is not JSON."""
    try:
        return json.loads(text)
    except RecursionError:
        raise CheckpointError("it is nested too deeply") from None
    except ValueError as error:
        raise CheckpointError(str(error)) from None


def drain_and_delete(problem: str, checkpoint: str, path: str) -> str:
    """The text of a start failure: the problem, and what the user can do. `checkpoint` names the
    file: `the CPU manager`."""
    return (
        f"{problem}, please drain this node and delete {checkpoint} checkpoint file "
        f"{quoted(path)} before restarting Kubelet"
    )
