"""CheckpointContainer: an archive of a container's configuration and status (CRI-135).

The fake has no memory pages to save; the archive has the JSON files that a runtime puts beside
them, under the names that checkpoint tools read. What must never happen here: half an archive
stays under its final name.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Mapping
from typing import Any

from kubecri.v1 import api_pb2 as pb

from fakecri.calls import verbose
from fakecri.core.messages import container_status
from fakecri.core.objects import Container, State
from fakecri.core.runtime import Core
from fakecri.errors import unknown
from fakecri.recording.plain import plain
from simclock import format_rfc3339


def checkpoint(
    core: Core, request: pb.CheckpointContainerRequest
) -> pb.CheckpointContainerResponse:
    """Write the archive to `location` (mode 0600). Raises CriError: unknown id, not RUNNING, no
    location, or a file that cannot be written."""
    container = core.find_container(request.container_id)
    if container.state is not State.RUNNING:
        raise unknown(
            f"container {container.id} is in CONTAINER_{container.state.name} state. "
            "only CONTAINER_RUNNING containers can be checkpointed"
        )
    if not request.location:
        raise unknown(f"container {container.id}: no location for the checkpoint was given")
    try:
        _write(request.location, archive(core, container))
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise unknown(
            f"failed to write the checkpoint of container {container.id} to {request.location}: "
            f"{why}"
        ) from None
    return pb.CheckpointContainerResponse()


def archive(core: Core, container: Container) -> bytes:
    """The tar file: `config.dump`, `spec.dump`, `status.dump`, each JSON."""
    now_ns = core.now_ns()
    status = container_status(container, core.images).status
    files = {
        "config.dump": {
            "id": container.id,
            "name": container.name,
            "rootfsImageRef": container.image.ref,
            "rootfsImageName": container.config.image.image,
            "runtime": container.sandbox.runtime_handler,
            "createdTime": format_rfc3339(container.created_at_ns, digits=9),
            "checkpointedTime": format_rfc3339(now_ns, digits=9),
        },
        "spec.dump": verbose.runtime_spec(container),
        "status.dump": plain(status),
    }
    return _packed(files, now_ns // 1_000_000_000)


def _packed(files: Mapping[str, dict[str, Any]], time_s: int) -> bytes:
    # Takes 3 ms to import, and hardly a client makes checkpoints.
    import tarfile

    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, content in files.items():
            data = json.dumps(content, indent=2, sort_keys=True).encode()
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode, entry.mtime = len(data), 0o600, time_s
            tar.addfile(entry, io.BytesIO(data))
    return buffer.getvalue()


def _write(location: str, data: bytes) -> None:
    part = f"{location}.part"
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with open(descriptor, "wb") as file:
        file.write(data)
    os.replace(part, location)
