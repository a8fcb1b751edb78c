"""The files of `--config-dir`: which are read, and in which order (CFG-003).

Upstream: cmd/kubelet/app/server.go: mergeKubeletConfigurations.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from msgspec import inspect

from kubeobjects.strict.reader import extra_of, fields_of
from refkubelet.config.schema.errors import ConfigErrors

SUFFIX: Final = ".conf"


def drop_in_files(directory: str | Path) -> tuple[list[str], list[str]]:
    """The drop-ins of a directory and what lies below it, and the files beside them, which are not
    read because they do not end in `.conf`.

    In each directory files and directories come by name, a directory with all that is in it; links
    to directories are not entered. Raises ConfigErrors for a directory that cannot be read.
    """
    taken: list[str] = []
    skipped: list[str] = []
    _walk(str(directory), taken, skipped)
    return taken, skipped


def _walk(directory: str, taken: list[str], skipped: list[str]) -> None:
    try:
        with os.scandir(directory) as entries:
            found = sorted(entries, key=lambda e: os.fsencode(e.name))
    except OSError as e:
        reason = (e.strerror or str(e)).lower()
        raise ConfigErrors(
            [f"--config-dir: cannot read the directory of drop-ins {directory}: {reason}"]
        ) from None
    for entry in found:
        if entry.is_dir(follow_symlinks=False):
            _walk(entry.path, taken, skipped)
        else:
            (taken if entry.name.endswith(SUFFIX) else skipped).append(entry.path)


def with_absolute_paths(
    shape: inspect.StructType, value: Mapping[str, Any], directory: Path
) -> dict[str, Any]:
    """A file's mapping with its relative paths resolved against `directory` (CFG-002)."""
    fields = fields_of(shape)
    found = dict(value)
    for name, item in value.items():
        kind = fields[name].type if name in fields else None
        if isinstance(item, str) and item and "path" in extra_of(kind):
            found[name] = str(directory / item)
        elif isinstance(kind, inspect.StructType) and isinstance(item, dict):
            found[name] = with_absolute_paths(kind, item, directory)
    return found
