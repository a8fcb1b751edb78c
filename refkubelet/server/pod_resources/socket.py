"""The socket of the pod-resources API (CG-085), v1 and v1alpha1.

At most 100 calls per second are answered, with bursts of ten, so that a monitor cannot keep the
kubelet busy. A call in the first seconds waits until every source has told its pods, so that nobody
takes a node that has just started for an empty one. grpc is imported when the server starts; nodes
in virtual time do not need it.
Upstream: pkg/kubelet/server/server.go: ListenAndServePodResources; pkg/kubelet/apis/grpc.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from refkubelet.model.token_bucket import TokenBucket
from refkubelet.server.pod_resources.answers import PodResourcesLister, UnknownPod
from refkubelet.telemetry.server_metrics import PodResourcesMetrics
from simclock import Clock

log = logging.getLogger(__name__)

DIRECTORY: Final = "pod-resources"
SOCKET: Final = "kubelet.sock"
PER_S: Final = 100.0
BURST: Final = 10
PATIENCE_S: Final = 5.0
"""How long after the start a call waits for the pods at most; an API server that is away must not
leave monitors without an answer."""
LOOK_S: Final = 0.05
V1: Final = "v1"
V1ALPHA1: Final = "v1alpha1"
LIST: Final = "list"
GET_ALLOCATABLE: Final = "get_allocatable"
GET: Final = "get"


class PodResourcesServer:
    """Serves `resources` on `<root_dir>/pod-resources/kubelet.sock`. `all_known`: whether every
    source has told its pods."""

    def __init__(
        self,
        root_dir: Path,
        resources: PodResourcesLister,
        clock: Clock,
        *,
        all_known: Callable[[], bool] = lambda: True,
        metrics: PodResourcesMetrics | None = None,
    ) -> None:
        self._path = root_dir / DIRECTORY / SOCKET
        self._resources = resources
        self._clock = clock
        self._all_known = all_known
        self._metrics = metrics or PodResourcesMetrics()
        self._patient_until_s = 0.0
        self._bucket = TokenBucket(BURST, PER_S)
        self._server: Any = None

    async def start(self) -> None:
        """Serve. If the socket cannot be made, that is logged, and the kubelet runs without it."""
        import grpc.aio
        from kubecri.podresources import api_pb2_grpc
        from kubecri.podresources_v1alpha1 import api_pb2_grpc as alpha_grpc

        server = grpc.aio.server()
        api_pb2_grpc.add_PodResourcesListerServicer_to_server(self._service(), server)
        alpha_grpc.add_PodResourcesListerServicer_to_server(self._alpha_service(), server)
        try:
            self._path.parent.mkdir(mode=0o750, parents=True, exist_ok=True)
            self._path.unlink(missing_ok=True)
            server.add_insecure_port(f"unix:{self._path}")
        except (OSError, RuntimeError) as error:
            log.error("cannot serve the pod-resources API at %s: %s", self._path, error)
            return
        self.begin()
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

    def begin(self) -> None:
        """The kubelet starts now: for some seconds calls wait for the pods."""
        self._patient_until_s = self._clock.monotonic_s() + PATIENCE_S

    async def known(self) -> None:
        """Wait until every source has told its pods, but not for ever."""
        while not self._all_known() and self._clock.monotonic_s() < self._patient_until_s:
            await self._clock.sleep(LOOK_S)

    async def _answered(
        self, context: Any, version: str, method: str, answer: Callable[[], Any]
    ) -> Any:
        """The answer to one call, counted (SRV-039.4)."""
        import grpc

        if not self.allows():
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "rejected by rate limit")
        self._metrics.total.inc(version)
        if version == V1:
            self._metrics.calls[method].inc(version)
        await self.known()
        try:
            return answer()
        except UnknownPod as error:
            self._metrics.errors[method].inc(version)
            await context.abort(grpc.StatusCode.UNKNOWN, str(error))

    def _service(self) -> Any:
        """The methods of v1 as grpc calls them."""
        from kubecri.podresources import api_pb2_grpc

        resources, answered = self._resources, self._answered

        class Lister(api_pb2_grpc.PodResourcesListerServicer):
            async def List(self, request: Any, context: Any) -> Any:
                return await answered(context, V1, LIST, resources.list)

            async def GetAllocatableResources(self, request: Any, context: Any) -> Any:
                return await answered(context, V1, GET_ALLOCATABLE, resources.allocatable)

            async def Get(self, request: Any, context: Any) -> Any:
                names = request.pod_name, request.pod_namespace
                return await answered(context, V1, GET, lambda: resources.get(*names))

        return Lister()

    def _alpha_service(self) -> Any:
        """The method of v1alpha1 as grpc calls it."""
        from kubecri.podresources_v1alpha1 import api_pb2_grpc

        resources, answered = self._resources, self._answered

        class Lister(api_pb2_grpc.PodResourcesListerServicer):
            async def List(self, request: Any, context: Any) -> Any:
                return await answered(context, V1ALPHA1, LIST, resources.list_alpha)

        return Lister()
