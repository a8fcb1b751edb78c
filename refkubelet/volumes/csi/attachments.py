"""Which volumes this node uses and has attached (NODE-217.1 and .2).

A controller attaches a volume when a pod of this node wants it, and says so in the Node's
volumesAttached; it detaches the volume when the Node's volumesInUse does not name it any more. So a
volume is named there before it is touched, until nothing of it is left on the node.
What must never happen here: a volume that is mounted is missing in volumesInUse.
Upstream: pkg/kubelet/volumemanager: GetVolumesInUse, VerifyControllerAttachedVolume;
pkg/volume/csi/csi_attacher.go: WaitForAttach.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

from lightkube.models.storage_v1 import VolumeAttachment

from refkubelet.api.client import ApiError, ObjectReader
from refkubelet.api.kinds import VOLUME_ATTACHMENTS
from refkubelet.model.objects import Node
from refkubelet.volumes.csi.mounts import CsiMount
from refkubelet.volumes.csi.names import attachment_name
from refkubelet.volumes.mount_errors import WAIT_FOR_ATTACH, MountFailed, NotAttached


class VolumeUse:
    """Which pods want which volumes, by their unique names, and what of them is on this node."""

    def __init__(self) -> None:
        self._pods: dict[str, set[str]] = {}
        self._left: frozenset[str] = frozenset()
        self._attachable: set[str] = set()

    def want(self, name: str, pod_uid: str, *, attachable: bool) -> None:
        """A pod wants the volume."""
        self._pods.setdefault(name, set()).add(pod_uid)
        if attachable:
            self._attachable.add(name)

    def is_wanted(self, name: str) -> bool:
        """Whether any pod wants the volume."""
        return name in self._pods

    def has_pod(self, pod_uid: str) -> bool:
        """Whether the pod wants any volume."""
        return any(pod_uid in users for users in self._pods.values())

    def forget_pod(self, pod_uid: str) -> None:
        """The pod wants nothing any more."""
        for name in [n for n, users in self._pods.items() if pod_uid in users]:
            self._pods[name].discard(pod_uid)
            if not self._pods[name]:
                del self._pods[name]

    def keep(self, left: Iterable[str]) -> None:
        """These volumes are staged, or pods have them; of others nothing is left."""
        self._left = frozenset(left)
        self._attachable &= self._left | self._pods.keys()

    def in_use(self, attached: Collection[str]) -> list[str]:
        """The Node's volumesInUse. `attached`: its volumesAttached, which tells of volumes of an
        earlier kubelet whether they are attachable."""
        return sorted((self._left | self._pods.keys()) & (self._attachable | set(attached)))


class Attachments:
    """Whether volumes are attached. `node`: the Node as it is known."""

    def __init__(self, api: ObjectReader, node_name: str, node: Callable[[], Node | None]) -> None:
        self._api = api
        self._node_name = node_name
        self._node = node
        self._reported: frozenset[str] = frozenset()

    def reported(self, names: Iterable[str]) -> None:
        """The Node shows these as volumesInUse."""
        self._reported = frozenset(names)

    def withdrawn(self, names: Iterable[str]) -> None:
        """The Node shall show these alone as volumesInUse: others are not reported any more, from
        before the Node is written."""
        self._reported &= frozenset(names)

    def check(self, name: str) -> None:
        """Raises `NotAttached` until the Node shows the volume as in use, and as attached."""
        if name not in self._reported or name not in attached_volumes(self._node()):
            raise NotAttached(name)

    async def publish_context(self, mount: CsiMount) -> Mapping[str, str]:
        """What the controller says of the attached volume. Raises `MountFailed`."""
        name = attachment_name(mount.handle, mount.driver, self._node_name)
        try:
            attachment = await self._api.get(VOLUME_ATTACHMENTS, name)
        except ApiError as error:
            raise MountFailed(
                WAIT_FOR_ATTACH,
                f"volume {mount.handle} has GET error for volume attachment {name}: "
                f"{error.message}",
            ) from None
        problem = attachment_problem(attachment, mount.handle, name)
        if problem is not None:
            raise MountFailed(WAIT_FOR_ATTACH, problem)
        status = attachment.status
        return dict(status.attachmentMetadata or {}) if status is not None else {}


def attached_volumes(node: Node | None) -> frozenset[str]:
    """The names in the Node's volumesAttached."""
    status = node.status if node is not None else None
    return frozenset(v.name for v in (status.volumesAttached if status is not None else None) or ())


def attachment_problem(attachment: VolumeAttachment, handle: str, name: str) -> str | None:
    """Why the volume cannot be used; None: it is attached."""
    meta, status = attachment.metadata, attachment.status
    if meta is not None and meta.deletionTimestamp is not None:
        return "volume attachment is being deleted"
    if status is not None and status.attached:
        return None
    error = status.attachError if status is not None else None
    if error is not None:
        return error.message or ""
    return f"volume {handle} is not attached for volume attachment {name}"
