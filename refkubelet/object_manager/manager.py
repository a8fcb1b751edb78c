"""Knows which pods refer to which ConfigMaps and Secrets, and gives these to who asks (NODE-207).

A pod is registered at each of its syncs and unregistered when it is over. Only what a registered
pod refers to can be read. How objects are kept up to date is the store's business:
`watched.WatchedObjects` (strategy Watch) or `fetched.FetchedObjects` (Cache and Get).
Upstream: pkg/kubelet/util/manager: cache_based_manager.go; pkg/kubelet/secret, configmap.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar

from lightkube.models.core_v1 import ConfigMap, Secret

from refkubelet.api.client import ApiError
from refkubelet.api.kinds import CONFIG_MAPS, SECRETS, Kind
from refkubelet.model.objects import Pod
from refkubelet.model.pod import uid
from refkubelet.object_manager.references import config_maps_of, secrets_of

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

Key = tuple[str, str]
"""Namespace and name of an object."""


class ObjectStore(Protocol[T_co]):
    """Keeps the objects of one kind that somebody refers to."""

    def add(self, key: Key) -> None:
        """One more pod refers to the object; it may be known already."""

    def remove(self, key: Key) -> None:
        """No pod refers to it any more."""

    async def get(self, key: Key) -> T_co:
        """The object. Raises `ApiError`, which is `not_found` if there is none."""


def not_registered(key: Key) -> ApiError:
    """The error for an object to which no registered pod refers."""
    return ApiError(0, "NotRegistered", f'object "{key[0]}"/"{key[1]}" not registered')


class ObjectManager(Generic[T]):
    """The objects of one kind. `references_of`: the names of those that a pod refers to."""

    def __init__(
        self, store: ObjectStore[T], references_of: Callable[[Pod], tuple[str, ...]]
    ) -> None:
        self._store = store
        self._references_of = references_of
        self._of_pods: dict[str, frozenset[Key]] = {}
        self._users: dict[Key, int] = {}

    def register_pod(self, pod: Pod) -> None:
        """The pod refers to what its spec names, and to nothing else."""
        namespace = pod.metadata.namespace or ""
        names = self._references_of(pod)
        before = self._of_pods.get(uid(pod))
        if not names and before is None:
            return
        current = frozenset((namespace, name) for name in names)
        if current != before:
            self._of_pods[uid(pod)] = current
            self._change(current, before or frozenset(), names, namespace)

    def unregister_pod(self, pod: Pod) -> None:
        """The pod refers to nothing any more."""
        before = self._of_pods.pop(uid(pod), None)
        if before is not None:
            self._change(frozenset(), before, (), "")

    def _change(
        self, now: frozenset[Key], before: frozenset[Key], names: tuple[str, ...], namespace: str
    ) -> None:
        for key in ((namespace, name) for name in names):  # in the order of the spec
            if key not in before:
                self._users[key] = self._users.get(key, 0) + 1
                self._store.add(key)
        for key in sorted(before - now):
            self._users[key] -= 1
            if not self._users[key]:
                del self._users[key]
                self._store.remove(key)

    async def get(self, namespace: str, name: str) -> T:
        """The object as it is known. Raises `ApiError` with upstream's text."""
        key = (namespace, name)
        if key not in self._users:
            raise not_registered(key)
        return await self._store.get(key)


class PodObjects:
    """The ConfigMaps and Secrets of pods: reads them as the API client does."""

    def __init__(self, config_maps: ObjectStore[ConfigMap], secrets: ObjectStore[Secret]) -> None:
        self._of_kind: dict[Kind[Any], ObjectManager[Any]] = {
            SECRETS: ObjectManager(secrets, secrets_of),
            CONFIG_MAPS: ObjectManager(config_maps, config_maps_of),
        }

    def register_pod(self, pod: Pod) -> None:
        """Called at each sync of a pod that is not ending."""
        for manager in self._of_kind.values():
            manager.register_pod(pod)

    def unregister_pod(self, pod: Pod) -> None:
        """Called when the pod is over."""
        for manager in self._of_kind.values():
            manager.unregister_pod(pod)

    async def get(self, kind: Kind[T], name: str, namespace: str = "") -> T:
        """A ConfigMap or Secret. Raises `ApiError`."""
        manager: ObjectManager[T] = self._of_kind[kind]
        return await manager.get(namespace, name)
