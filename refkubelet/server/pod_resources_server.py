"""The socket of the pod-resources API (CG-085).

At most 100 calls per second are answered, with bursts of ten, so that a monitor cannot keep the
kubelet busy. grpc is imported when the server starts; nodes in virtual time do not need it.
Upstream: pkg/kubelet/server/server.go: ListenAndServePodResources; pkg/kubelet/apis/grpc.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from refkubelet.model.token_bucket import TokenBucket
from refkubelet.server.pod_resources import PodResourcesLister, UnknownPod
from simclock import Clock

log = logging.getLogger(__name__)

DIRECTORY: Final = "pod-resources"
SOCKET: Final = "kubelet.sock"
PER_S: Final = 100.0
BURST: Final = 10


class PodResourcesServer:
    """Serves `resources` on `<root_dir>/pod-resources/kubelet.sock`."""

    def __init__(self, root_dir: Path, resources: PodResourcesLister, clock: Clock) -> None:
        self._path = root_dir / DIRECTORY / SOCKET
        self._resources = resources
        self._clock = clock
        self._bucket = TokenBucket(BURST, PER_S)
        self._server: Any = None

    async def start(self) -> None:
        """Serve. If the socket cannot be made, that is logged, and the kubelet runs without it."""
        import grpc.aio
        from kubecri.podresources import api_pb2_grpc

        server = grpc.aio.server()
        api_pb2_grpc.add_PodResourcesListerServicer_to_server(self._service(), server)
        try:
            self._path.parent.mkdir(mode=0o750, parents=True, exist_ok=True)
            self._path.unlink(missing_ok=True)
            server.add_insecure_port(f"unix:{self._path}")
        except (OSError, RuntimeError) as error:
            log.error("cannot serve the pod-resources API at %s: %s", self._path, error)
            return
        self._server = server
        await server.start()

    async def stop(self) -> None:
        """Stop serving and remove the socket."""
        server, self._server = self._server, None
        if server is not None:
            await server.stop(None)
            self._path.unlink(missing_ok=True)

    def allows(self) -> bool:
        """Whether one more call may be answered now."""
        return self._bucket.take(self._clock.monotonic_s())

    def _service(self) -> Any:
        """The methods of the API as grpc calls them."""
        import grpc
        from kubecri.podresources import api_pb2_grpc

        resources = self._resources

        async def answered(context: Any, answer: Callable[[], Any]) -> Any:
            if not self.allows():
                await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "rejected by rate limit")
            try:
                return answer()
            except UnknownPod as error:
                await context.abort(grpc.StatusCode.UNKNOWN, str(error))

        class Lister(api_pb2_grpc.PodResourcesListerServicer):
            async def List(self, request: Any, context: Any) -> Any:
                return await answered(context, resources.list)

            async def GetAllocatableResources(self, request: Any, context: Any) -> Any:
                return await answered(context, resources.allocatable)

            async def Get(self, request: Any, context: Any) -> Any:
                names = request.pod_name, request.pod_namespace
                return await answered(context, lambda: resources.get(*names))

        return Lister()
