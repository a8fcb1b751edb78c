"""The kubelet's CRI client: deadlines, checks of answers, records instead of messages.

Every call has the deadline of CRI-006; every answer is checked (CRI-008) before it becomes a
record; every failure is one exception, `CriCallError`, whose text is what events and waiting
messages show. What must never happen here: a call without a stated deadline, a message that
leaves this folder, a retry (retries are the callers' rules).
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from typing import Final, TypeVar

import grpc
from kubecri.v1 import api_pb2 as cri

from refkubelet.cri import convert, usage
from refkubelet.cri.listings import (
    Listings,
    container_list_request,
    sandbox_list_request,
)
from refkubelet.cri.operations import NotCounted, Operations
from refkubelet.cri.records import (
    EMPTY,
    ContainerRecord,
    ExecResult,
    ImageRecord,
    ListedContainer,
    ListedSandbox,
    RuntimeConditions,
    RuntimeVersion,
    SandboxRecord,
)
from refkubelet.cri.target import (
    INVALID_ANSWER,
    BytesTarget,
    CriCallError,
    CriTarget,
    Message,
    call_error,
)
from refkubelet.cri.usage import ContainerUsage, ImageFilesystems, SandboxUsage

T = TypeVar("T")

WANTED_VERSION: Final = "0.1.0"
STATUS_REQUEST: Final = cri.StatusRequest()


class CriClient:
    """One method per RPC the kubelet uses. Raises `CriCallError`, nothing else.

    `request_timeout_s` is runtimeRequestTimeout (default 120 s); `operations` counts the calls.
    Upstream: staging/src/k8s.io/cri-client/pkg/remote_runtime.go, remote_image.go.
    """

    def __init__(
        self,
        target: CriTarget,
        request_timeout_s: float = 120.0,
        operations: Operations | None = None,
    ) -> None:
        self.target = target
        self.request_timeout_s = request_timeout_s
        self.operations = operations or NotCounted()
        self._bytes = target.call_bytes if isinstance(target, BytesTarget) else self._as_bytes
        self._sandboxes = Listings(cri.ListPodSandboxResponse, "items", convert.listed_sandbox)
        self._status_data: bytes | None = None
        self._status: RuntimeConditions
        kind = cri.ListContainersResponse
        self._containers = Listings(kind, "containers", convert.listed_container)

    # -- runtime ------------------------------------------------------------------------------

    async def version(self, version: str = "") -> RuntimeVersion:
        """All four fields of the answer must be there (CRI-002)."""
        answer = await self._call("Version", cri.VersionRequest(version=version))
        return self._checked("Version", lambda: convert.runtime_version(answer))

    async def status(self) -> RuntimeConditions:
        """Asked all the time, and nearly always answered as before."""
        data = await self._call_bytes("Status", STATUS_REQUEST)
        if data != self._status_data:
            answer = cri.StatusResponse.FromString(data)
            conditions = self._checked("Status", lambda: convert.runtime_conditions(answer))
            self._status_data, self._status = data, conditions
        return self._status

    async def cgroup_driver(self) -> str | None:
        """`systemd` or `cgroupfs`, "" when it does not tell; None: the runtime lacks the call
        (CRI-133)."""
        try:
            answer = await self._call("RuntimeConfig", cri.RuntimeConfigRequest())
        except CriCallError as error:
            if error.unimplemented:
                return None
            raise
        if not answer.HasField("linux"):
            return ""
        return "cgroupfs" if answer.linux.cgroup_driver == cri.CGROUPFS else "systemd"

    async def update_pod_cidr(self, pod_cidr: str) -> None:
        """Tell the runtime the addresses of the node's pods: one range, or several with commas
        (NODE-014)."""
        network = cri.NetworkConfig(pod_cidr=pod_cidr)
        config = cri.RuntimeConfig(network_config=network)
        request = cri.UpdateRuntimeConfigRequest(runtime_config=config)
        await self._call("UpdateRuntimeConfig", request)

    # -- sandboxes ----------------------------------------------------------------------------

    async def run_pod_sandbox(self, config: Message, runtime_handler: str = "") -> str:
        """The sandbox's id. Deadline: twice the request timeout (CRI-006)."""
        request = cri.RunPodSandboxRequest(config=config, runtime_handler=runtime_handler)
        with self.operations.of_sandbox(runtime_handler):
            answer = await self._call("RunPodSandbox", request, 2 * self.request_timeout_s)
            return self._non_empty("RunPodSandbox", "pod_sandbox_id", answer.pod_sandbox_id)

    async def stop_pod_sandbox(self, sandbox_id: str) -> None:
        """A sandbox that does not exist counts as stopped (CRI-009)."""
        request = cri.StopPodSandboxRequest(pod_sandbox_id=sandbox_id)
        await self._call_unless_gone("StopPodSandbox", request)

    async def remove_pod_sandbox(self, sandbox_id: str) -> None:
        request = cri.RemovePodSandboxRequest(pod_sandbox_id=sandbox_id)
        await self._call("RemovePodSandbox", request)

    async def pod_sandbox_status(self, sandbox_id: str) -> SandboxRecord:
        request = cri.PodSandboxStatusRequest(pod_sandbox_id=sandbox_id)
        answer = await self._call("PodSandboxStatus", request)
        return self._checked("PodSandboxStatus", lambda: convert.sandbox_record(answer.status))

    async def list_pod_sandboxes(
        self, *, uid: str = "", ready_only: bool = False
    ) -> tuple[ListedSandbox, ...]:
        """In the runtime's order. `uid` "" lists the sandboxes of all pods (CRI-082); that list is
        the same object again while nothing changes."""
        request = sandbox_list_request(uid, ready_only)
        if uid:
            return self._sandboxes.convert(await self._call("ListPodSandbox", request))
        answer = await self._call_bytes("ListPodSandbox", request)
        return await self._sandboxes.records(answer, alive_only=ready_only)

    # -- containers ---------------------------------------------------------------------------

    async def create_container(
        self, sandbox_id: str, config: Message, sandbox_config: Message
    ) -> str:
        """The container's id. `sandbox_config` is never left out: older runtimes crash on that
        (CRI-052)."""
        request = cri.CreateContainerRequest(
            pod_sandbox_id=sandbox_id, config=config, sandbox_config=sandbox_config
        )
        answer = await self._call("CreateContainer", request)
        return self._non_empty("CreateContainer", "container_id", answer.container_id)

    async def start_container(self, container_id: str) -> None:
        await self._call("StartContainer", cri.StartContainerRequest(container_id=container_id))

    async def stop_container(self, container_id: str, timeout_s: int) -> None:
        """Deadline: the timeout plus the request timeout (CRI-006). A container that does not
        exist counts as stopped (CRI-009)."""
        request = cri.StopContainerRequest(container_id=container_id, timeout=timeout_s)
        await self._call_unless_gone("StopContainer", request, timeout_s + self.request_timeout_s)

    async def update_container_resources(self, container_id: str, resources: Message) -> None:
        """Change the resources of a running container; zero fields stay as they are (CRI-121)."""
        request = cri.UpdateContainerResourcesRequest(container_id=container_id, linux=resources)
        await self._call("UpdateContainerResources", request)

    async def update_pod_sandbox_resources(
        self, sandbox_id: str, overhead: Message, resources: Message
    ) -> None:
        """Tell what the pod's cgroup is going to be limited to (CRI-122)."""
        request = cri.UpdatePodSandboxResourcesRequest(
            pod_sandbox_id=sandbox_id, overhead=overhead, resources=resources
        )
        await self._call("UpdatePodSandboxResources", request)

    async def remove_container(self, container_id: str) -> None:
        await self._call("RemoveContainer", cri.RemoveContainerRequest(container_id=container_id))

    async def reopen_container_log(self, container_id: str) -> None:
        """Let the runtime open the log file anew, after it was renamed (GC-203)."""
        request = cri.ReopenContainerLogRequest(container_id=container_id)
        await self._call("ReopenContainerLog", request)

    async def list_containers(
        self, *, uid: str = "", running_only: bool = False
    ) -> tuple[ListedContainer, ...]:
        """In the runtime's order; `uid` "" and identity as in `list_pod_sandboxes` (CRI-082)."""
        request = container_list_request(uid, running_only)
        if uid:
            return self._containers.convert(await self._call("ListContainers", request))
        answer = await self._call_bytes("ListContainers", request)
        return await self._containers.records(answer, alive_only=running_only)

    async def container_status(self, container_id: str, sandbox_id: str = "") -> ContainerRecord:
        """`sandbox_id` is copied into the record: the answer does not carry it."""
        request = cri.ContainerStatusRequest(container_id=container_id)
        answer = await self._call("ContainerStatus", request)
        return self._checked(
            "ContainerStatus", lambda: convert.container_record(answer.status, sandbox_id)
        )

    async def exec_sync(
        self, container_id: str, command: Sequence[str], timeout_s: int = 0
    ) -> ExecResult:
        """Run a command in the container. `timeout_s` 0 means no limit and no deadline."""
        request = cri.ExecSyncRequest(
            container_id=container_id, cmd=list(command), timeout=timeout_s
        )
        deadline_s = timeout_s + self.request_timeout_s if timeout_s > 0 else None
        answer = await self._call_until("ExecSync", request, deadline_s)
        return ExecResult(answer.exit_code, bytes(answer.stdout), bytes(answer.stderr))

    async def container_events(self) -> AsyncGenerator[Message, None]:
        """The raw events of the runtime from now on (CRI-140); no deadline."""
        stream = self.target.stream("GetContainerEvents", cri.GetEventsRequest())
        with self.operations.of("GetContainerEvents"):
            try:
                async for message in stream:
                    yield message
            except grpc.RpcError as error:
                raise call_error("GetContainerEvents", error) from None
            finally:
                if isinstance(stream, AsyncGenerator):
                    await stream.aclose()

    async def list_container_stats(self, sandbox_id: str = "") -> tuple[ContainerUsage, ...]:
        """Of all containers, or of those in one sandbox (CRI-123)."""
        only = cri.ContainerStatsFilter(pod_sandbox_id=sandbox_id)
        request = cri.ListContainerStatsRequest(filter=only)
        answer = await self._call("ListContainerStats", request)
        return tuple(usage.container_usage(stats) for stats in answer.stats)

    async def list_sandbox_stats(self) -> tuple[SandboxUsage, ...]:
        request = cri.ListPodSandboxStatsRequest(filter=cri.PodSandboxStatsFilter())
        answer = await self._call("ListPodSandboxStats", request)
        return tuple(usage.sandbox_usage(stats) for stats in answer.stats)

    # -- images -------------------------------------------------------------------------------

    async def image_status(
        self, image: str, annotations: Mapping[str, str] = EMPTY
    ) -> ImageRecord | None:
        """None when the image is absent. An image without id or size is an error (BACK-203)."""
        spec = cri.ImageSpec(image=image, annotations=dict(annotations))
        answer = await self._call("ImageStatus", cri.ImageStatusRequest(image=spec))
        if not answer.HasField("image"):
            return None
        return self._checked("ImageStatus", lambda: convert.image_record(answer.image))

    async def pull_image(
        self,
        image: str,
        sandbox_config: Message,
        *,
        annotations: Mapping[str, str] = EMPTY,
        auth: Message | None = None,
    ) -> str:
        """The image's reference, never empty (CRI-008). No deadline (CRI-006)."""
        request = cri.PullImageRequest(
            image=cri.ImageSpec(image=image, annotations=dict(annotations)),
            auth=auth,
            sandbox_config=sandbox_config,
        )
        answer = await self._call_until("PullImage", request, None)
        return self._non_empty("PullImage", "image_ref", answer.image_ref)

    async def list_images(self) -> tuple[ImageRecord, ...]:
        """Images the runtime lists without an id are left out."""
        answer = await self._call("ListImages", cri.ListImagesRequest())
        complete = [image for image in answer.images if image.id and image.size]
        return tuple(convert.image_record(image) for image in complete)

    async def remove_image(self, image: str) -> None:
        request = cri.RemoveImageRequest(image=cri.ImageSpec(image=image))
        await self._call("RemoveImage", request)

    async def image_fs_info(self) -> ImageFilesystems:
        """Where images and containers are; the kubelet uses the first of each (CRI-098)."""
        answer = await self._call("ImageFsInfo", cri.ImageFsInfoRequest())
        return ImageFilesystems(
            tuple(usage.filesystem_usage(row) for row in answer.image_filesystems),
            tuple(usage.filesystem_usage(row) for row in answer.container_filesystems),
        )

    # -- one way out ---------------------------------------------------------------------------

    def _call(
        self, method: str, request: Message, deadline_s: float | None = None
    ) -> Awaitable[Message]:
        """With the given deadline, or the request timeout."""
        return self._call_until(method, request, deadline_s or self.request_timeout_s)

    async def _call_until(self, method: str, request: Message, deadline_s: float | None) -> Message:
        began_s = self.operations.began_s()
        try:
            return await self.target.call(method, request, timeout_s=deadline_s)
        except grpc.RpcError as error:
            raise self._failed(method, error) from None
        finally:
            self.operations.ended(method, began_s)

    async def _call_bytes(self, method: str, request: Message) -> bytes:
        """The answer as bytes, with the request timeout."""
        began_s = self.operations.began_s()
        try:
            return await self._bytes(method, request, timeout_s=self.request_timeout_s)
        except grpc.RpcError as error:
            raise self._failed(method, error) from None
        finally:
            self.operations.ended(method, began_s)

    def _failed(self, method: str, error: grpc.RpcError) -> CriCallError:
        self.operations.failed(method)
        return call_error(method, error)

    async def _as_bytes(self, method: str, request: Message, *, timeout_s: float | None) -> bytes:
        answer = await self.target.call(method, request, timeout_s=timeout_s)
        return bytes(answer.SerializeToString())

    async def _call_unless_gone(
        self, method: str, request: Message, deadline_s: float | None = None
    ) -> None:
        try:
            await self._call(method, request, deadline_s)
        except CriCallError as error:
            if not error.not_found:
                raise

    def _checked(self, method: str, make: Callable[[], T]) -> T:
        try:
            return make()
        except ValueError as error:
            self.operations.failed(method)
            raise CriCallError(method, INVALID_ANSWER, str(error)) from None

    def _non_empty(self, method: str, field: str, value: str) -> str:
        if not value:
            self.operations.failed(method)
            raise CriCallError(method, INVALID_ANSWER, f"the answer has no {field}")
        return value
