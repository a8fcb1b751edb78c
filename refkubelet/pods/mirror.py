"""Mirror pods: the objects at the API server that represent static pods.

Creating or deleting a mirror may fail, and never affects the static pod (MIRR-021), except that an
API server that does not answer delays its sync by at most `PATIENCE_S`.
Upstream: pkg/kubelet/pod/mirror_client.go; kubelet.go: tryReconcileMirrorPods,
fastStaticPodsRegistration.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

import msgspec

from refkubelet.api.client import ApiClient, ApiError
from refkubelet.api.kinds import PODS
from refkubelet.model.objects import Node, OwnerReference, Pod, to_dict
from refkubelet.model.pod import (
    CONFIG_HASH,
    CONFIG_MIRROR,
    full_name,
    is_being_deleted,
    is_static,
    uid,
)
from refkubelet.model.pod import annotations as annotations_of
from refkubelet.pods.manager import PodManager
from simclock import Clock

log = logging.getLogger(__name__)

PATIENCE_S: Final = 5.0
NODE_POLL_S: Final = 0.1
NO_ANSWER: Final = f"the API server does not answer within {PATIENCE_S:g} s"


class MirrorError(Exception):
    """A mirror pod could not be made; callers log the text and try again."""


def mirror_pod(pod: Pod, node: Node) -> Pod:
    """The object to post for a static pod (MIRR-022, MIRR-023)."""
    assert node.metadata is not None
    owner = OwnerReference(
        apiVersion="v1",
        kind="Node",
        name=node.metadata.name or "",
        uid=node.metadata.uid or "",
        controller=True,
    )
    marks = annotations_of(pod)
    metadata = msgspec.structs.replace(
        pod.metadata,
        annotations={**marks, CONFIG_MIRROR: marks.get(CONFIG_HASH, "")},
        ownerReferences=[owner],
    )
    return msgspec.structs.replace(pod, metadata=metadata)


def is_mirror_of(mirror: Pod, pod: Pod) -> bool:
    """Whether a mirror belongs to this version of the static pod, and is not being deleted
    (MIRR-025)."""
    deleted = is_being_deleted(mirror)
    same = annotations_of(mirror).get(CONFIG_MIRROR) == annotations_of(pod).get(CONFIG_HASH)
    return same and not deleted


class MirrorClient:
    """Makes and deletes mirror pods. `api` None (standalone, SRC-052): does nothing.

    `node` returns the informer's Node object, or None (MIRR-024).
    """

    def __init__(self, api: ApiClient | None, node_name: str, node: Callable[[], Node | None]):
        self._api = api
        self._node_name = node_name
        self._node = node
        self._restoring: set[asyncio.Task[None]] = set()
        self._knew_node = False

    def restore(self, pod: Pod) -> None:
        """Make the mirror of a static pod that has finished, whose worker does not do it any more;
        returns at once (MIRR-030)."""
        task = asyncio.create_task(self.reconcile(pod, None), name=f"mirror of {full_name(pod)}")
        self._restoring.add(task)
        task.add_done_callback(self._restoring.discard)

    async def create_mirror(self, pod: Pod) -> None:
        """Post the mirror of a static pod. Raises `MirrorError` or `ApiError` (409 included:
        MIRR-026)."""
        if self._api is None:
            return
        node = self._node()
        if node is None or node.metadata is None:
            raise MirrorError(f"node {self._node_name} is not known yet")
        self._knew_node = True
        if node.metadata.deletionTimestamp is not None:
            raise MirrorError(f"node {self._node_name} is being deleted")
        if not node.metadata.uid:
            raise MirrorError(f"UID unset for node {self._node_name}")
        body = {"apiVersion": "v1", "kind": "Pod"} | to_dict(mirror_pod(pod, node))
        await self._api.create(PODS, body)

    async def delete_mirror(self, pod_full_name: str, pod_uid: str | None) -> bool:
        """Delete a mirror with grace period 0. `pod_uid`: the precondition, None for orphans
        (MIRR-031).

        Returns whether it was deleted: False if it is missing or has another UID (MIRR-026). Raises
        `ApiError` for every other failure.
        """
        if self._api is None:
            return False
        name, _, namespace = pod_full_name.rpartition("_")
        try:
            await self._api.delete(PODS, name, namespace, grace_period_s=0, uid=pod_uid)
        except ApiError as e:
            if e.not_found or e.conflict:
                return False
            raise
        return True

    async def reconcile(self, pod: Pod, mirror: Pod | None) -> None:
        """Create the mirror of a static pod, or replace an outdated one; failures are only logged
        (MIRR-021, MIRR-025, MIRR-029). `mirror`: its current mirror, or None."""
        if self._api is None or (mirror is not None and is_mirror_of(mirror, pod)):
            return
        try:
            async with asyncio.timeout(PATIENCE_S):
                if mirror is None or await self.delete_mirror(full_name(pod), uid(mirror)):
                    await self.create_mirror(pod)
        except TimeoutError:
            log.warning("mirror of %s: %s", full_name(pod), NO_ANSWER)
        except (ApiError, MirrorError) as e:
            level = logging.WARNING if self._is_trouble(e, mirror) else logging.DEBUG
            log.log(level, "mirror of %s: %s", full_name(pod), e)

    def _is_trouble(self, error: Exception, mirror: Pod | None) -> bool:
        """Whether somebody should look at that. Not at the start: the mirrors are made as soon as
        the node is known, and after a restart a static pod may be synced before the API source has
        its mirror."""
        exists = isinstance(error, ApiError) and error.conflict and mirror is None
        early = isinstance(error, MirrorError) and not self._knew_node
        return not (exists or early)


async def fast_static_pods_registration(
    mirrors: MirrorClient, pods: PodManager, node: Callable[[], Node | None], clock: Clock
) -> None:
    """Make the mirrors of all static pods as soon as the Node object is there (`node`, asked every
    0.1 s; MIRR-028)."""
    while node() is None:
        await clock.sleep(NODE_POLL_S)
    for pod in pods.pods():
        if is_static(pod):
            await mirrors.reconcile(pod, pods.mirror_of(pod))
