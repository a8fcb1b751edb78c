"""Helpers of the cases about the collection of images: images that the node has before any pod
wants them, what they take on disk, and which ones the kubelet removed."""

from collections.abc import Callable, Mapping
from typing import Any

from kubecri.v1 import api_pb2 as cri

from kubelet_conformance.harness.manifests import PodPlan, container, pod
from kubelet_conformance.harness.node import Node

PERIOD_S = 300.0  # GC-101


async def preload(node: Node, *names: str) -> None:
    """Bring images into the runtime's store behind the kubelet's back: `app` as `app:1` of the
    case's registry."""
    registry = await node.runtime.registry()
    for name in names:
        await registry.add(f"{name}:1")
        spec = cri.ImageSpec(image=f"{registry.open_host}/{name}:1")
        await node.runtime.direct.call("PullImage", cri.PullImageRequest(image=spec))


async def user_of(node: Node, name: str, **fields: Any) -> PodPlan:
    """A pod of that name, whose container has an image of that name from the case's registry."""
    registry = await node.runtime.registry()
    await registry.add(f"{name}:1")
    main = container("main", image=f"{registry.open_host}/{name}:1", **fields)
    return pod(name, main, grace_s=1)


def change_images(**changes: Mapping[str, Any]) -> Callable[[Any], None]:
    """A change of the answer to ListImages: the fields (`size`, `pinned`) of images by name."""

    def change(answer: Any) -> None:
        for image in answer.images:
            for field, values in changes.items():
                for name in _names(image):
                    if name in values:
                        setattr(image, field, values[name])

    return change


def _names(image: Any) -> list[str]:
    """The names of an image without registry and without the tag `:1`: `app`, `busybox:2`."""
    return [tag.rpartition("/")[2].removesuffix(":1") for tag in image.repo_tags]


def gone(node: Node) -> list[str]:
    """The names of the images that the kubelet asked the runtime to remove, in order."""
    names = {
        image.id: _names(image)[0]
        for call in node.calls("ListImages")
        for image in (call.response.images if call.response else ())
        if image.repo_tags
    }
    removed = [call.request.image.image for call in node.calls("RemoveImage")]
    return [names.get(image, image) for image in removed]


async def image_disk_bytes(node: Node) -> int:
    """The size of the file system that the images are on."""
    summary = await node.kubelet.summary()
    return int(summary["node"]["runtime"]["imageFs"]["capacityBytes"])
