"""Removes one container: its logs, the link to them, the container itself (GC-005)."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from refkubelet.cri.client import CriClient
from refkubelet.cri.target import CriCallError
from refkubelet.host.untrusted_files import listed


class LogRemovalError(Exception):
    """The container's log could not be deleted, so the container was kept for a later try."""


async def remove_container(
    client: CriClient, container_id: str, links_dir: Path | None, *, keep_logs: bool = False
) -> None:
    """Delete the log with its rotated files, then the link, then the container; with `keep_logs`
    only the container. A container that does not exist counts as removed. Raises `CriCallError`,
    `LogRemovalError`."""
    if not keep_logs:
        try:
            record = await client.container_status(container_id)
        except CriCallError as error:
            if error.not_found:
                return
            raise
        _remove_logs(record.log_path, container_id, links_dir)
    await client.remove_container(container_id)


def _remove_logs(log_path: str, container_id: str, links_dir: Path | None) -> None:
    try:
        if log_path:
            directory, name = os.path.split(log_path)
            _remove(directory, lambda file: file.startswith(name))
        if links_dir is not None:
            ending = f"-{container_id}.log"
            _remove(str(links_dir), lambda file: file.endswith(ending))
    except OSError as error:
        raise LogRemovalError(
            f"cannot delete the log of container {container_id}: {error}"
        ) from error


def _remove(directory: str, wanted: Callable[[str], bool]) -> None:
    """Delete the wanted files of the directory, if it can be read. Raises OSError."""
    try:
        files = listed(os.path.realpath(directory))
    except OSError:
        return
    for file in sorted(filter(wanted, files)):
        with suppress(FileNotFoundError):
            os.unlink(os.path.join(directory, file))
