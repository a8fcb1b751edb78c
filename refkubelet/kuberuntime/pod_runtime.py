"""A pod's settings of the runtime: the handler, a user namespace, recursive read-only mounts.

`spec.runtimeClassName` names a RuntimeClass of the API server, which has the handler for
RunPodSandbox. The runtime's Status says whether a handler supports user namespaces
(`spec.hostUsers: false`) and recursive read-only mounts. What must never happen here: a pod that
asks for isolation runs without it; a request to the API server for a pod that needs none.
Upstream: pkg/kubelet/runtimeclass/runtimeclass_manager.go, pkg/kubelet/kubelet_pods.go
(resolveRecursiveReadOnly), pkg/kubelet/userns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from lightkube.models.core_v1 import VolumeMount

from kubeobjects.golang.strconv import quoted
from refkubelet.api.client import ApiError, ObjectReader
from refkubelet.api.kinds import RUNTIME_CLASSES
from refkubelet.cri.records import (
    DEFAULT_RUNTIME,
    HandlerFeatures,
    PodRuntime,
    PodRuntimeError,
)
from refkubelet.kuberuntime.user_namespaces import UserNamespaces
from refkubelet.model.objects import Pod
from refkubelet.model.pod import all_containers, has_user_namespace

NOTHING_SPECIAL: Final = HandlerFeatures()


class PodRuntimes:
    """Makes the `PodRuntime` of pods. `classes` None: standalone, so there are no RuntimeClasses
    and, as in upstream, no recursive read-only mounts. `features`: of the runtime's handlers, by
    name; empty for a runtime that does not report them (containerd before 2.0)."""

    def __init__(
        self,
        classes: ObjectReader | None,
        features: Callable[[], Mapping[str, HandlerFeatures]],
        users: UserNamespaces,
    ) -> None:
        self._classes = classes
        self._features = features
        self._users = users
        self._known: dict[str, str] = {}

    async def of(self, pod: Pod) -> PodRuntime:
        """The pod's settings; called at every sync. Raises `PodRuntimeError`."""
        if not asks_for_something(pod):
            return DEFAULT_RUNTIME
        handler = await self._handler(pod)
        features = self._features().get(handler, NOTHING_SPECIAL)
        users = None
        if has_user_namespace(pod):
            if not features.user_namespaces:
                raise PodRuntimeError(no_user_namespaces(handler))
            users = self._users.of(pod)
        recursive = self._classes is not None and features.recursive_read_only_mounts
        return PodRuntime(handler, users, recursive)

    def read_only_is_recursive(self, pod: Pod) -> bool:
        """Whether the pod's handler supports recursive read-only mounts; False while the handler is
        unknown."""
        name = class_name(pod)
        handler = self._known.get(name) if name else ""
        return (
            self._classes is not None
            and handler is not None
            and (self._features().get(handler, NOTHING_SPECIAL).recursive_read_only_mounts)
        )

    async def _handler(self, pod: Pod) -> str:
        """The handler of the pod's RuntimeClass; "" without one. If the server does not answer, the
        last answer counts. Raises `PodRuntimeError`."""
        name = class_name(pod)
        if not name:
            return ""
        if self._classes is None:
            raise PodRuntimeError(not_found(name))
        try:
            runtime_class = await self._classes.get(RUNTIME_CLASSES, name)
        except ApiError as error:
            if error.not_found:
                raise PodRuntimeError(not_found(name)) from error
            if name in self._known:
                return self._known[name]
            raise PodRuntimeError(f"failed to lookup RuntimeClass {name}: {error}") from error
        self._known[name] = runtime_class.handler
        return runtime_class.handler


def class_name(pod: Pod) -> str:
    """The name of the pod's RuntimeClass; "": it has none."""
    return pod.spec.runtimeClassName or ""


def asks_for_something(pod: Pod) -> bool:
    """Whether the pod's settings may differ from `DEFAULT_RUNTIME`."""
    return (
        bool(class_name(pod))
        or has_user_namespace(pod)
        or any(mount.recursiveReadOnly for mount in _mounts(pod))
    )


def _mounts(pod: Pod) -> Iterator[VolumeMount]:
    for container in all_containers(pod):
        yield from container.volumeMounts or ()


def not_found(name: str) -> str:
    """Upstream's text for a RuntimeClass that does not exist."""
    return f"runtimeclass.node.k8s.io {quoted(name)} not found"


def no_user_namespaces(handler: str) -> str:
    subject = f"RuntimeClass handler {quoted(handler)}" if handler else "runtime"
    return f"can't set `spec.hostUsers: false`, {subject} does not support user namespaces"
