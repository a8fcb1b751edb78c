"""One real runtime for many kubelets: each sees only the pods that were made through its own scope.

A kubelet kills running pods it does not know (LIFE-015) and removes unused images (GC-101), so two
kubelets on one runtime would fight. A `Scope` stands between a kubelet and the shared runtime:
lists show its own sandboxes and containers only, and images stay. No case sees or harms the
containers of another, or leaves some behind.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any, Final

import grpc
from google.protobuf.message import Message
from kubecri.v1 import api_pb2 as cri

KEPT_BACK: Final = frozenset({"RemoveImage"})
"""Calls answered here: what they would remove belongs to every case."""


CLEAN_UP_TRIES: Final = 20
CLEAN_UP_PAUSE_S: Final = 0.5
CLEAN_UP_CALL_S: Final = 15.0


class LeftBehind(Exception):
    """Something of a case is still in the runtime; the text says what and why."""


class Scope:
    """A `CriTarget` over `upstream` that shows only what was made through it."""

    def __init__(self, upstream: Any) -> None:
        self._upstream = upstream
        self._sandboxes: set[str] = set()
        self._containers: set[str] = set()

    async def call(
        self, method: str, request: Message, *, timeout_s: float | None = None
    ) -> Message:
        """Forward one unary call; the answer shows this scope only."""
        if method in KEPT_BACK:
            return cri.RemoveImageResponse()
        answer: Any = await self._upstream.call(method, request, timeout_s=timeout_s)
        match method:
            case "RunPodSandbox":
                self._sandboxes.add(answer.pod_sandbox_id)
            case "CreateContainer":
                self._containers.add(answer.container_id)
            case "ListPodSandbox":
                _keep(answer.items, lambda item: item.id in self._sandboxes)
            case "ListContainers":
                _keep(answer.containers, lambda item: item.pod_sandbox_id in self._sandboxes)
            case "ListContainerStats":
                _keep(answer.stats, lambda item: item.attributes.id in self._containers)
            case "ListPodSandboxStats":
                _keep(answer.stats, lambda item: item.attributes.id in self._sandboxes)
        result: Message = answer
        return result

    def stream(
        self, method: str, request: Message, *, timeout_s: float | None = None
    ) -> AsyncIterator[Message]:
        """Forward one stream; of the runtime's events only those about this scope."""
        stream: AsyncIterator[Message] = self._upstream.stream(method, request, timeout_s=timeout_s)
        return self._own_events(stream) if method == "GetContainerEvents" else stream

    async def _own_events(self, stream: AsyncIterator[Any]) -> AsyncIterator[Message]:
        """A sandbox is known here when its RunPodSandbox has been answered, so its first events
        may be missing; a kubelet learns of it by that answer, too."""
        try:
            async for event in stream:
                if event.pod_sandbox_status.id in self._sandboxes:
                    yield event
        finally:
            if isinstance(stream, AsyncGenerator):
                await stream.aclose()

    async def clean_up(self) -> None:
        """Stop and remove every sandbox made through this scope, with its containers.

        Raises LeftBehind when some could not be removed, after all others have been.
        """
        problems = await asyncio.gather(*(self._remove(s) for s in sorted(self._sandboxes)))
        self._sandboxes.clear()
        left_behind = [problem for problem in problems if problem]
        if left_behind:
            raise LeftBehind("; ".join(left_behind))

    async def _remove(self, sandbox: str) -> str:
        """Stop and remove one sandbox. Returns why that could not be done, "" when it could.

        A call of the dead kubelet may still be under way in the runtime, or a container is just
        ending (`container is in starting state`, `cannot delete running task`), so this is tried
        again.
        """
        stop = cri.StopPodSandboxRequest(pod_sandbox_id=sandbox)
        remove = cri.RemovePodSandboxRequest(pod_sandbox_id=sandbox)
        problem = ""
        for _ in range(CLEAN_UP_TRIES):
            try:
                await self._upstream.call("StopPodSandbox", stop, timeout_s=CLEAN_UP_CALL_S)
                await self._upstream.call("RemovePodSandbox", remove, timeout_s=CLEAN_UP_CALL_S)
                return ""
            except grpc.RpcError as error:
                if error.code() is grpc.StatusCode.NOT_FOUND:
                    return ""
                problem = f"sandbox {sandbox}: {error.code().name}: {error.details()}"
                await asyncio.sleep(CLEAN_UP_PAUSE_S)
        return problem


def _keep(items: Any, wanted: Any) -> None:
    fitting = [item for item in items if wanted(item)]
    del items[:]
    items.extend(fitting)
