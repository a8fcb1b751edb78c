"""One runtime for the kubelet, made of the runtimes of its tenants.

A call about a pod goes to the runtime of the pod's tenant, which records it and applies the rules
of its case. Lists are those of all tenants, one after the other. What is about no pod, as the
version of the runtime, is answered by a runtime without pods.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Final, cast

from google.protobuf.message import Message

UID: Final = "io.kubernetes.pod.uid"
SINCE: Final = ("kubernetes.io/config.hash", "kubernetes.io/config.seen")
"""Annotations by which a kubelet's question for an image tells the pod that it is asked for."""
LISTS: Final = frozenset(
    {
        "ListPodSandbox", "ListContainers", "ListContainerStats", "ListPodSandboxStats",
        "ListPodSandboxMetrics",
    }
)  # fmt: skip
"""What is listed of pods."""


class CriRouter:
    """A `CriTarget`. `common` answers what is about no pod."""

    def __init__(self, common: Any) -> None:
        self._common = common
        self._targets: dict[str, Any] = {}
        self._places: dict[str, Any] = {}
        """ID of a sandbox or a container, UID of a pod, annotations of a pod -> the target of its
        tenant."""

    def enter(self, namespace: str, target: Any) -> None:
        """From now on `target` has the pods of that namespace."""
        self._targets[namespace] = target

    def leave(self, namespace: str) -> None:
        """Forget the pods of that namespace."""
        target = self._targets.pop(namespace)
        self._places = {name: place for name, place in self._places.items() if place is not target}

    async def call(
        self, method: str, request: Message, *, timeout_s: float | None = None
    ) -> Message:
        """Answer one unary call."""
        asked: Any = request
        if method in LISTS:
            return await self._list(method, asked, timeout_s)
        target = self._place_of(method, asked)
        answer: Any = await target.call(method, request, timeout_s=timeout_s)
        if method == "CreateContainer":  # its tenant may have left meanwhile
            self._places[answer.container_id] = target
        elif method == "RunPodSandbox":
            self._places[answer.pod_sandbox_id] = target
        result: Message = answer
        return result

    async def call_bytes(
        self, method: str, request: Message, *, timeout_s: float | None = None
    ) -> bytes:
        """The same, with the answer as bytes."""
        return (await self.call(method, request, timeout_s=timeout_s)).SerializeToString()

    def stream(
        self, method: str, request: Message, *, timeout_s: float | None = None
    ) -> AsyncIterator[Message]:
        """Answer one stream, as a runtime without pods: a kubelet that is shared asks for none."""
        stream: AsyncIterator[Message] = self._common.stream(method, request, timeout_s=timeout_s)
        return stream

    async def _list(self, method: str, request: Any, timeout_s: float | None) -> Message:
        """What all tenants list, or the one whose pod is asked for."""
        asked = request.filter if "filter" in request.DESCRIPTOR.fields_by_name else None
        first, *others = self._asked(asked)
        answer: Any = await first.call(method, request, timeout_s=timeout_s)
        if not others:
            return cast(Message, answer)
        whole: Message = type(answer)()
        whole.MergeFrom(answer)  # lists of several messages are put one behind the other
        for target in others:
            whole.MergeFrom(await target.call(method, request, timeout_s=timeout_s))
        return whole

    def _asked(self, asked: Any) -> list[Any]:
        """The targets that a list with that filter is of."""
        if asked is not None:
            names = [asked.id, getattr(asked, "pod_sandbox_id", ""), asked.label_selector.get(UID)]
            for name in filter(None, names):
                return [self._places.get(name, self._common)]
        return [self._common, *self._targets.values()]

    def _place_of(self, method: str, request: Any) -> Any:
        """The target that a call is for."""
        match method:
            case "RunPodSandbox":
                return self._learn(request.config)
            case "PullImage":
                namespace = request.sandbox_config.metadata.namespace
                return self._targets.get(namespace, self._common)
            case "ImageStatus":
                return self._places.get(_told(request.image.annotations), self._common)
        for name in ("container_id", "pod_sandbox_id"):
            if name in request.DESCRIPTOR.fields_by_name:
                return self._places.get(getattr(request, name), self._common)
        return self._common

    def _learn(self, config: Any) -> Any:
        """The target of a pod of which a sandbox is made."""
        target = self._targets.get(config.metadata.namespace, self._common)
        self._places[config.metadata.uid] = target
        if told := _told(config.annotations):
            self._places[told] = target
        return target


def _told(annotations: Any) -> str:
    """What tells a pod by its annotations; "" when nothing does."""
    return " ".join(annotations[name] for name in SINCE if name in annotations)
