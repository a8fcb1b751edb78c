"""Helpers of the runtime tests: records, and a small scripted CRI target."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import grpc
from kubecri.v1 import api_pb2 as cri

from refkubelet.cri.records import (
    ContainerRecord,
    ContainerState,
    RuntimePodStatus,
    SandboxRecord,
    SandboxState,
)
from refkubelet.model.hashes import container_hash
from refkubelet.model.objects import Pod
from refkubelet.model.pod import containers
from refkubelet.model.probe_results import ProbeResult

IMAGE_ID = "sha256:335a2ead27d82eca9f941307b8c2f763e79e190db3a5ef0f572335290a94f128"
UID = "uid-web"


def sandbox(
    attempt: int = 0, *, ready: bool = True, ips: tuple[str, ...] = ("10.0.0.1",), **fields: Any
) -> SandboxRecord:
    state = SandboxState.READY if ready else SandboxState.NOTREADY
    return SandboxRecord(
        id=f"s{attempt}",
        state=state,
        attempt=attempt,
        created_at_ns=100 + attempt,
        has_network=True,
        ips=ips,
        **fields,
    )


def record(
    pod: Pod, name: str, state: str = "running", exit_code: int = 0, **fields: Any
) -> ContainerRecord:
    """A record of a container of the pod, with the hash its spec gives."""
    known = [c for c in containers(pod) if c.name == name]
    attempt = fields.pop("attempt", 0)
    return ContainerRecord(
        id=fields.pop("id", f"{name}-{attempt}"),
        name=name,
        state=ContainerState(state),
        exit_code=exit_code,
        attempt=attempt,
        restart_count=fields.pop("restart_count", attempt),
        hash=fields.pop("hash", container_hash(known[0]) if known else ""),
        created_at_ns=fields.pop("created_at_ns", 1000 + attempt),
        **fields,
    )


def status(
    *containers: ContainerRecord, sandboxes: tuple[SandboxRecord, ...] | None = None
) -> RuntimePodStatus:
    """A status with one READY sandbox unless said otherwise."""
    boxes = (sandbox(),) if sandboxes is None else sandboxes
    newest_first = sorted(containers, key=lambda c: -c.created_at_ns)
    return RuntimePodStatus(
        uid=UID,
        name="web",
        namespace="default",
        ips=("10.0.0.1",),
        sandboxes=boxes,
        containers=tuple(newest_first),
    )


class Probes:
    """Probe results by container id."""

    def __init__(
        self,
        liveness: dict[str, ProbeResult] | None = None,
        startup: dict[str, ProbeResult] | None = None,
    ) -> None:
        self._liveness = liveness or {}
        self._startup = startup or {}

    def liveness(self, container_id: str) -> ProbeResult | None:
        return self._liveness.get(container_id)

    def startup(self, container_id: str) -> ProbeResult | None:
        return self._startup.get(container_id)


class Events:
    """Keeps events as (type, reason, message, field path)."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str, str, str]] = []

    def pod_event(
        self,
        pod: Pod,
        event_type: str,
        reason: str,
        message: str,
        *,
        field_path: str = "",
        annotations: object = None,
    ) -> None:
        self.seen.append((event_type, reason, message, field_path))

    def node_event(self, event_type: str, reason: str, message: str) -> None:
        self.seen.append((event_type, reason, message, ""))

    def reasons(self) -> list[str]:
        return [reason for _, reason, _, _ in self.seen]


class Failure(grpc.RpcError):
    """An RPC error as a target raises it."""

    def __init__(self, code: grpc.StatusCode, details: str) -> None:
        super().__init__(details)
        self._code, self._details = code, details

    def code(self) -> grpc.StatusCode:
        return self._code

    def details(self) -> str:
        return self._details


class Slow:
    """An answer that takes `takes_s` seconds. `most`: how many calls were under way at once."""

    def __init__(self, takes_s: float, answer: Any = None) -> None:
        self.takes_s = takes_s
        self.answer = answer
        self.under_way = self.most = 0

    async def __call__(self, request: Any) -> Any:
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        await asyncio.sleep(self.takes_s)
        self.under_way -= 1
        return self.answer


Answer = Callable[[Any], Any]


class ScriptedTarget:
    """Answers from a table method -> message, exception, or function of the request."""

    def __init__(self, **answers: Any) -> None:
        self.answers: dict[str, Any] = {
            "ImageStatus": cri.ImageStatusResponse(image=cri.Image(id=IMAGE_ID, size=5)),
            "CreateContainer": cri.CreateContainerResponse(container_id="made"),
            "RunPodSandbox": cri.RunPodSandboxResponse(pod_sandbox_id="box"),
            "PodSandboxStatus": cri.PodSandboxStatusResponse(status=box_status("box")),
            **answers,
        }
        self.calls: list[tuple[str, Any, float | None]] = []

    async def call(self, method: str, request: Any, *, timeout_s: float | None = None) -> Any:
        self.calls.append((method, request, timeout_s))
        answer = self.answers.get(method)
        if callable(answer):
            answer = answer(request)
            if hasattr(answer, "__await__"):
                answer = await answer
        if isinstance(answer, Exception):
            raise answer
        return answer if answer is not None else getattr(cri, f"{method}Response")()

    def stream(
        self, method: str, request: Any, *, timeout_s: float | None = None
    ) -> AsyncIterator[Any]:
        raise NotImplementedError

    def methods(self) -> list[str]:
        return [method for method, _, _ in self.calls]

    def requests(self, method: str) -> list[Any]:
        return [request for name, request, _ in self.calls if name == method]


def box_status(sandbox_id: str, ip: str = "10.0.0.1", **fields: Any) -> Any:
    return cri.PodSandboxStatus(
        id=sandbox_id,
        metadata=cri.PodSandboxMetadata(name="web", uid=UID, namespace="default"),
        created_at=1,
        network=cri.PodSandboxNetworkStatus(ip=ip),
        **fields,
    )
