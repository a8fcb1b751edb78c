"""Makes sure that the images of image volumes are present, before any container starts (LIFE-130
step 5).

A failure does not end the sync: only the containers that mount the volume fail later, with the
reason of the image step.
Upstream: kuberuntime_manager.go: getImageVolumes, toKubeContainerImageVolumes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kubecri.v1 import api_pb2 as cri
from lightkube.models.core_v1 import Secret

from refkubelet.kuberuntime.images.manager import ImageError, ImageManager, ImageRequest
from refkubelet.model.objects import Container, Pod
from refkubelet.model.pod import annotations as pod_annotations

VolumeImages = Mapping[str, "Any | ImageError"]
"""By volume name: the ImageSpec to mount, or the error of the image step."""


def has_image_volumes(pod: Pod) -> bool:
    """Whether any volume of the pod is an image."""
    return any(v.image is not None for v in pod.spec.volumes or ())


async def volume_images(
    images: ImageManager, pod: Pod, sandbox_config: Any, secrets: tuple[Secret, ...]
) -> VolumeImages:
    """Do the image step for every image volume, one after the other; its events are the pod's."""
    result: dict[str, Any | ImageError] = {}
    for volume in pod.spec.volumes or ():
        if volume.image is None:
            continue
        name, policy = volume.image.reference or "", volume.image.pullPolicy or ""
        request = ImageRequest(
            pod, name, policy, sandbox_config=sandbox_config, pull_secrets=secrets
        )
        try:
            ref = await images.ensure_image(request)
        except ImageError as error:
            result[volume.name] = error
            continue
        result[volume.name] = cri.ImageSpec(
            image=ref, user_specified_image=name, annotations=dict(pod_annotations(pod))
        )
    return result


def failures_of(container: Container, images: VolumeImages) -> list[ImageError]:
    """The errors of image volumes that the container mounts, in the order of its mounts."""
    entries = [images.get(mount.name) for mount in container.volumeMounts or ()]
    return [entry for entry in entries if isinstance(entry, ImageError)]
