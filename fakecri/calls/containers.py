"""Calls about containers: create, start, stop, remove, status, logs (CRI-050..086, CRI-105).

A stop takes time, and so does a start that hangs; everything else is a function of the core. What
must never happen here: a deadline that passes kills a container (CRI-064).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any, Final

from google.protobuf.message import Message
from kubecri.v1 import api_pb2 as pb

from fakecri.calls import verbose
from fakecri.clockwork.clockwork import Clockwork, pass_time
from fakecri.core import running
from fakecri.core.cgroups import resources
from fakecri.core.containers import (
    create_container,
    fail_to_start,
    prepare_start,
    remove_container,
    start_container,
)
from fakecri.core.messages import container_status
from fakecri.core.objects import Container, State
from fakecri.core.runtime import Core
from fakecri.errors import found_or_none, unknown
from simclock import Clock


def _create_container(core: Core, request: pb.CreateContainerRequest) -> pb.CreateContainerResponse:
    return pb.CreateContainerResponse(container_id=create_container(core, request).id)


def _remove_container(core: Core, request: pb.RemoveContainerRequest) -> pb.RemoveContainerResponse:
    container: Container | None = found_or_none(core.find_container, request.container_id)
    if container is not None:
        remove_container(core, container)
    return pb.RemoveContainerResponse()


def _container_status(core: Core, request: pb.ContainerStatusRequest) -> pb.ContainerStatusResponse:
    container = core.find_container(request.container_id)
    response = container_status(container, core.images)
    if request.verbose:
        response.info["info"] = json.dumps(verbose.of_container(container))
    return response


def _update_container_resources(
    core: Core, request: pb.UpdateContainerResourcesRequest
) -> pb.UpdateContainerResourcesResponse:
    container = core.find_container(request.container_id, "UpdateContainerResources")
    if container.run.cgroup is not None:
        container.run.cgroup.limit(request.linux)
    resources.update(container.resources, request.linux)
    running.limits_changed(core, container)
    return pb.UpdateContainerResourcesResponse()


def _reopen_container_log(
    core: Core, request: pb.ReopenContainerLogRequest
) -> pb.ReopenContainerLogResponse:
    container = core.find_container(request.container_id)
    if container.state is not State.RUNNING:
        raise unknown("container is not running")
    running.open_log(core, container)
    return pb.ReopenContainerLogResponse()


class StartsAndStops:
    """StartContainer and StopContainer; `clockwork` says when a container has ended."""

    def __init__(self, core: Core, clock: Clock, clockwork: Clockwork) -> None:
        self._core = core
        self._clock = clock
        self._clockwork = clockwork

    def stop_at_once(self, request: pb.StopContainerRequest) -> pb.StopContainerResponse | None:
        """StopContainer (CRI-060..062), but for a container that takes time to end: None, and it
        has got its signal."""
        container: Container | None = found_or_none(self._core.find_container, request.container_id)
        if container is None:
            return pb.StopContainerResponse()
        if container.state is State.RUNNING and request.timeout > 0:
            running.signal(self._core, container)
            self._clockwork.pump()
            if container.state is State.RUNNING:
                return None
        running.kill(self._core, container)
        return pb.StopContainerResponse()

    async def stop_container(self, request: pb.StopContainerRequest) -> pb.StopContainerResponse:
        """A StopContainer of a container that takes time to end: wait, then kill. A deadline before
        the time-out kills nothing (CRI-064)."""
        core, container = self._core, self._core.find_container(request.container_id)
        await self._clockwork.exit_of(container, within_s=float(request.timeout))
        if container.id in core.containers:  # it may have been removed meanwhile
            running.kill(core, container)
        return pb.StopContainerResponse()

    def start_at_once(self, request: pb.StartContainerRequest) -> pb.StartContainerResponse | None:
        """StartContainer, but for one that hangs: None."""
        container = self._core.find_container(request.container_id)
        prepare_start(self._core, container)
        if container.run.plan.start_hangs is not None:
            return None
        start_container(self._core, container)
        return pb.StartContainerResponse()

    async def start_container(self, request: pb.StartContainerRequest) -> pb.StartContainerResponse:
        """A StartContainer that hangs. When its caller gives up, the container has failed to
        start (CRI-056)."""
        core, container = self._core, self._core.find_container(request.container_id)
        if container.run.starting:  # CRI-055
            raise unknown(
                f'failed to set starting state for container "{container.id}": '
                "container is already in starting state"
            )
        hangs = container.run.plan.start_hangs
        container.run.starting = True
        try:
            if hangs is not None:
                await pass_time(self._clock, hangs.for_s)
        except asyncio.CancelledError:
            if container.state is State.CREATED:
                fail_to_start(core, container, "failed to create containerd task: context canceled")
            raise
        finally:
            container.run.starting = False
        start_container(core, core.find_container(container.id))
        return pb.StartContainerResponse()


HANDLERS: Final[dict[str, Callable[[Core, Any], Message]]] = {
    "CreateContainer": _create_container,
    "RemoveContainer": _remove_container,
    "ContainerStatus": _container_status,
    "UpdateContainerResources": _update_container_resources,
    "ReopenContainerLog": _reopen_container_log,
}
