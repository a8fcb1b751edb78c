"""The `info` of verbose statuses: what containerd tells beside the contract, as plain data.

Rules: CRI-043, CRI-085. Only keys whose values the fake knows.
"""

from __future__ import annotations

from typing import Any

from fakecri.core.image_store.images import Image
from fakecri.core.objects import Container, Sandbox, State
from fakecri.recording.plain import plain


def of_sandbox(sandbox: Sandbox) -> dict[str, Any]:
    """For PodSandboxStatus."""
    return {
        "pid": 1 if sandbox.ready else 0,
        "processStatus": "running" if sandbox.ready else "deleted",
        "netNamespaceClosed": not sandbox.ready,
        "runtimeHandler": sandbox.runtime_handler,
        "config": plain(sandbox.config),
    }


def of_container(container: Container) -> dict[str, Any]:
    """For ContainerStatus."""
    return {
        "sandboxID": container.sandbox.id,
        "pid": container.run.pid if container.state is State.RUNNING else 0,
        "removing": False,
        "snapshotKey": container.id,
        "config": plain(container.config),
        "runtimeSpec": runtime_spec(container),
    }


def of_image(image: Image) -> dict[str, Any]:
    """For ImageStatus."""
    user = image.username or ("" if image.uid is None else str(image.uid))
    return {"imageSpec": {"config": {"User": user, "StopSignal": image.stop_signal}}}


def runtime_spec(container: Container) -> dict[str, Any]:
    """The part of the OCI specification that follows from the create request."""
    config = container.config
    return {
        "process": {
            "args": [*config.command, *config.args],
            "env": [f"{pair.key}={pair.value.decode(errors='replace')}" for pair in config.envs],
            "cwd": config.working_dir or "/",
        },
        "annotations": dict(config.annotations),
        "linux": {"resources": plain(container.resources)},
    }
