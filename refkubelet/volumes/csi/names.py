"""Names and places of CSI volumes (NODE-217, NODE-218, NODE-219). Pure.

Other clients compute the same names: the controller that attaches volumes looks for the name in
volumesInUse, and makes the VolumeAttachment.
Upstream: pkg/volume/csi: getAttachmentName, makeVolumeHandle, makeDeviceMountPath, getTargetPath.
"""

from __future__ import annotations

import hashlib
from typing import Final

from refkubelet.model.names import pod_volume_dir, safe_join

PLUGIN: Final = "kubernetes.io/csi"
CSI_MOUNTS: Final = f"volumes/{PLUGIN.replace('/', '~')}"
"""The directory, in that of a pod, where drivers mount."""


def told(text: str) -> str:
    """An error as the kubelet tells it.

    >>> told("no driver")
    'kubernetes.io/csi: no driver'
    """
    return f"{PLUGIN}: {text}"


def attachment_name(handle: str, driver: str, node_name: str) -> str:
    """The name of the VolumeAttachment of a volume to a node."""
    return f"csi-{_sha256(handle + driver + node_name)}"


def inline_handle(pod_uid: str, volume: str) -> str:
    """The handle of a pod's inline volume."""
    return f"csi-{_sha256(pod_uid + volume)}"


def unique_volume_name(driver: str, handle: str) -> str:
    """The name of a volume in the Node's volumesInUse and volumesAttached.

    >>> unique_volume_name("disk.example", "v-1")
    'kubernetes.io/csi/disk.example^v-1'
    """
    return f"{PLUGIN}/{driver}^{handle}"


def devices_dir(root_dir: str) -> str:
    """Where volumes are staged, by their drivers."""
    return safe_join(root_dir, "plugins", *PLUGIN.split("/"))


def device_dir(root_dir: str, driver: str, handle: str) -> str:
    """The directory of one staged volume. Raises `UnsafeNameError`."""
    return safe_join(devices_dir(root_dir), driver, _sha256(handle))


def staging_path(device: str) -> str:
    """staging_target_path of the volume with that directory."""
    return safe_join(device, "globalmount")


def volume_dir(root_dir: str, pod_uid: str, name: str) -> str:
    """The directory of a pod's volume. `name`: the persistent volume's, or of an inline volume the
    pod's name of it. Raises `UnsafeNameError`."""
    return pod_volume_dir(root_dir, pod_uid, PLUGIN, name)


def target_path(directory: str) -> str:
    """target_path of the volume with that directory."""
    return safe_join(directory, "mount")


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
