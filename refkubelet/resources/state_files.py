"""Reading and writing the state files of the managers, and what is wrong with one.

A file is replaced as a whole, so that a kubelet that is killed leaves the old one or the new one.
Upstream: pkg/kubelet/checkpointmanager; pkg/kubelet/util/store/filestore.go.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import TypeVar

import msgspec

from refkubelet.resources.errors import StateFileError

log = logging.getLogger(__name__)

T = TypeVar("T")


def read_state(path: Path, shape: type[T]) -> T | None:
    """The file's content; None: there is no file. Raises `StateFileError`."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=shape)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise StateFileError(str(error)) from None


def create_state(path: Path, state: msgspec.Struct) -> None:
    """Write the first file of a node. Raises `StateFileError`."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _replace(path, state)
    except OSError as error:
        raise StateFileError(str(error)) from None


def store_state(path: Path, state: msgspec.Struct) -> None:
    """Write the file; a failure is logged, as pods are running already."""
    try:
        _replace(path, state)
    except OSError as error:
        log.error("cannot write the state to %s: %s", path, error)


def _replace(path: Path, state: msgspec.Struct) -> None:
    hidden = path.with_name(f".{path.name}.new")
    hidden.write_bytes(msgspec.json.encode(state))
    os.replace(hidden, path)
