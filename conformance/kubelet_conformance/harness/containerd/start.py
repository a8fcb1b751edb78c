"""Starts a real containerd in a container, waits for it, and cleans up after it.

At the end no container, pod or cgroup is left, and the node of another living run is never removed.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import grpc

from fakecri.cri.endpoint import socket_path
from kubelet_conformance.harness.containerd.cleanup import (
    ROOT_LABEL,
    empty,
    remove_leftovers,
    remove_new_cgroups,
    top_cgroups,
)
from kubelet_conformance.harness.containerd.docker_host import (
    OWNER_LABEL,
    NodeError,
    bind_mode,
    docker_client,
    docker_problem,
    host_capabilities,
    owner_mark,
    privileges,
)
from kubelet_conformance.harness.containerd.image import Report, ensure_image
from kubelet_conformance.harness.containerd.node import ContainerdNode, NodeDirs
from kubelet_conformance.harness.containerd.settings import SHARED_DIR, NodeSettings, write_shared
from kubelet_conformance.harness.containerd.versions import Release, other_version, release_of


@asynccontextmanager
async def start_containerd(
    workdir: Path, *, version: str | None = None, report: Report = lambda _: None
) -> AsyncIterator[ContainerdNode]:
    """A ready containerd with busybox and pause images, until the block ends.

    `workdir`: absolute, made if missing, short enough for a socket path. `version`: 1.6, 1.7 or
    2.1; None: `REFKUBELET_CONTAINERD_VERSION`, else 1.6. `report` gets a line when something takes
    long. Nodes of runs that died are removed first.

    Raises: NodeError with what to do, EndpointError if `workdir` is too long.
    """
    release = release_of(version)
    if problem := docker_problem():
        raise NodeError(problem)
    os.environ.setdefault("TESTCONTAINERS_RYUK_DISABLED", "true")  # Ryuk's image needs a registry
    dirs = NodeDirs(workdir.absolute())
    socket_path(f"unix://{dirs.shared}/containerd.sock")
    with closing(docker_client()) as client:
        remove_leftovers(client)
        tag = ensure_image(client, release, report)
        async with _started(dirs, tag, release, client) as node:
            if not release.is_version(node.version):
                raise NodeError(other_version(release, f"the image {tag}", node.version))
            try:
                yield node
            finally:
                await _remove_pods_if_possible(node, report)


@asynccontextmanager
async def _started(
    dirs: NodeDirs, tag: str, release: Release, client: Any
) -> AsyncIterator[ContainerdNode]:
    """A running node with images, whatever its version is."""
    allowed = host_capabilities()
    settings = NodeSettings(
        restrict_oom_score_adj="SYS_RESOURCE" not in allowed,
        containerd_root=str(dirs.containerd),
        socket_uid=os.getuid(),
        socket_gid=os.getgid(),
        config_version=release.config_version,
    )
    write_shared(dirs.shared, settings)
    cgroups = top_cgroups()
    container = _container(tag, dirs, allowed)
    try:
        _start(container)
        node = ContainerdNode(container.get_wrapped_container(), dirs)
        await node.wait_ready()
        node.load_images()
        await node.wait_images()
        yield node
    finally:
        wrapped = container.get_wrapped_container()
        if wrapped is not None:
            remove_new_cgroups(client, wrapped, cgroups)
            empty(wrapped)
        container.stop()


def _container(tag: str, dirs: NodeDirs, allowed: frozenset[str]) -> Any:
    """The container of the node, not yet started."""
    from testcontainers.core.container import DockerContainer

    mark = owner_mark()
    command = ["/bin/sh", f"{SHARED_DIR}/run.sh", str(dirs.containerd)]
    container = DockerContainer(tag).with_command(command)
    container.with_kwargs(
        cgroupns="host",  # pods' cgroups are where the kubelet outside looks for them
        labels={OWNER_LABEL: mark or "", ROOT_LABEL: str(dirs.containerd)},
        **privileges(allowed),
    )
    container.with_volume_mapping("/sys/fs/cgroup", "/sys/fs/cgroup", "rw")
    container.with_volume_mapping(str(dirs.shared), SHARED_DIR, "rw")
    for directory in (dirs.logs, dirs.kubelet, dirs.containerd):
        directory.mkdir(parents=True, exist_ok=True)
        mode = bind_mode(directory)
        container.with_volume_mapping(str(directory), str(directory), mode)
    return container


def _start(container: Any) -> None:
    import docker.errors

    try:
        container.start()
    except docker.errors.APIError as error:
        raise NodeError(
            f"Docker cannot start the node's container: {error.explanation or error}"
        ) from None


async def _remove_pods_if_possible(node: ContainerdNode, report: Report) -> None:
    try:
        await node.remove_pods()
    except grpc.RpcError as error:  # containerd was left down or broken by the test on purpose
        report(f"pods not removed one by one: {error.code().name}: {error.details()}")
