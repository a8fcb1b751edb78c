"""Removes one container: its logs, the link to them, the container itself (GC-005)."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from refkubelet.cri.client import CriClient
from refkubelet.cri.labels import POD_NAME, POD_NAMESPACE
from refkubelet.cri.records import ContainerRecord
from refkubelet.cri.target import CriCallError
from refkubelet.host.untrusted_files import listed
from refkubelet.model.names import UnsafeNameError, log_link


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
        _remove_logs(record, links_dir)
    await client.remove_container(container_id)


def _remove_logs(record: ContainerRecord, links_dir: Path | None) -> None:
    try:
        if record.log_path:
            _remove_rotated(*os.path.split(record.log_path))
        if links_dir is not None:
            _remove_link(record, str(links_dir))
    except OSError as error:
        raise LogRemovalError(f"cannot delete the log of container {record.id}: {error}") from error


def _remove_rotated(directory: str, name: str) -> None:
    """Delete the log of that name and those rotated, if the directory can be read. Raises
    OSError."""
    try:
        files = listed(os.path.realpath(directory))
    except OSError:
        return
    for file in sorted(file for file in files if file.startswith(name)):
        with suppress(FileNotFoundError):
            os.unlink(os.path.join(directory, file))


def _remove_link(record: ContainerRecord, directory: str) -> None:
    """Delete the link by its name: on a large node there are thousands beside it. Raises
    OSError."""
    pod = (record.labels.get(POD_NAMESPACE, ""), record.labels.get(POD_NAME, ""))
    with suppress(FileNotFoundError, NotADirectoryError, UnsafeNameError):
        os.unlink(log_link(directory, *pod, record.name, record.id))
