"""The calls that take time: StopContainer, PullImage, and a StartContainer that hangs.

ExecSync is in `exec_sync.py`. What must never happen here: a deadline that passes kills a container
(CRI-064), or an image appears whose pull was given up.
"""

from __future__ import annotations

import asyncio

import grpc
from criapi.v1 import api_pb2 as pb

from fakecri.clockwork.clockwork import Clockwork
from fakecri.core import running
from fakecri.core.containers import fail_to_start, prepare_start, start_container
from fakecri.core.objects import State
from fakecri.core.runtime import Core
from fakecri.errors import CriError, status_code, unknown
from simtime import Clock


class SlowCalls:
    """Plays them on a core; `clockwork` says when what they wait for has happened."""

    def __init__(self, core: Core, clock: Clock, clockwork: Clockwork) -> None:
        self._core = core
        self._clock = clock
        self._clockwork = clockwork

    async def stop_container(self, request: pb.StopContainerRequest) -> pb.StopContainerResponse:
        """CRI-060..064: signal, wait, kill. A deadline before the time-out kills nothing."""
        core = self._core
        try:
            container = core.find_container(request.container_id)
        except CriError as error:
            if error.code() is grpc.StatusCode.NOT_FOUND:
                return pb.StopContainerResponse()
            raise
        if container.state is State.RUNNING and request.timeout > 0:
            running.signal(core, container)
            await self._clockwork.exit_of(container, within_s=float(request.timeout))
        if container.id in core.containers:  # it may have been removed meanwhile
            running.kill(core, container)
        return pb.StopContainerResponse()

    def start_at_once(self, request: pb.StartContainerRequest) -> pb.StartContainerResponse | None:
        """StartContainer, but for one that hangs: None."""
        container = self._core.find_container(request.container_id)
        prepare_start(self._core, container)
        if container.plan.start_hangs is not None:
            return None
        start_container(self._core, container)
        return pb.StartContainerResponse()

    async def start_container(self, request: pb.StartContainerRequest) -> pb.StartContainerResponse:
        """A StartContainer that hangs. When its caller gives up, the container has failed to
        start (CRI-056)."""
        core, container = self._core, self._core.find_container(request.container_id)
        if container.starting:  # CRI-055
            raise unknown(
                f'failed to set starting state for container "{container.id}": '
                "container is already in starting state"
            )
        hangs = container.plan.start_hangs
        container.starting = True
        try:
            if hangs is not None:
                await self._wait(hangs.for_s)
        except asyncio.CancelledError:
            if container.state is State.CREATED:
                fail_to_start(core, container, "failed to create containerd task: context canceled")
            raise
        finally:
            container.starting = False
        start_container(core, core.find_container(container.id))
        return pb.StartContainerResponse()

    async def pull_image(self, request: pb.PullImageRequest) -> pb.PullImageResponse:
        """CRI-092, CRI-096: takes the registry's time, then the image is there."""
        images, name = self._core.images, request.image.image
        source = images.look_up_in_registry(name, request.auth)
        if source.pull_s > 0:
            await self._wait(source.pull_s)
        if source.error:
            raise CriError(status_code(source.error_code), source.error)
        return pb.PullImageResponse(image_ref=images.add(name, source).id)

    async def _wait(self, duration_s: float) -> None:
        """Let so much time pass; infinity: until the caller gives up."""
        if duration_s == float("inf"):
            await asyncio.get_running_loop().create_future()
        await self._clock.sleep(duration_s)
