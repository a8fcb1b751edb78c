"""Calls about images (CRI-090..098). A pull takes time, all others are functions of the core.

What must never happen here: an image appears whose pull was given up.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

from google.protobuf.message import Message
from kubecri.v1 import api_pb2 as pb

from fakecri.calls import verbose
from fakecri.clockwork.clockwork import pass_time
from fakecri.core.messages import image_message
from fakecri.core.runtime import Core
from fakecri.errors import CriError, status_code, unknown
from simclock import Clock


class Pulls:
    """PullImage."""

    def __init__(self, core: Core, clock: Clock) -> None:
        self._core = core
        self._clock = clock

    async def pull_image(self, request: pb.PullImageRequest) -> pb.PullImageResponse:
        """CRI-092, CRI-096: takes the registry's time, then the image is there."""
        images, name = self._core.images, request.image.image
        source = images.look_up_in_registry(name, request.auth)
        if source.pull_s > 0:
            await pass_time(self._clock, source.pull_s)
        if source.error:
            raise CriError(status_code(source.error_code), source.error)
        return pb.PullImageResponse(image_ref=images.add(name, source).id)


def _list_images(core: Core, request: pb.ListImagesRequest) -> pb.ListImagesResponse:
    # The filter is ignored, as containerd does (CRI-094).
    return pb.ListImagesResponse(images=[image_message(i) for i in core.images.images.values()])


def _image_status(core: Core, request: pb.ImageStatusRequest) -> pb.ImageStatusResponse:
    image = core.images.find(_named(request))
    response = pb.ImageStatusResponse(image=image_message(image) if image else None)
    if image and request.verbose:
        response.info["info"] = json.dumps(verbose.of_image(image))
    return response


def _remove_image(core: Core, request: pb.RemoveImageRequest) -> pb.RemoveImageResponse:
    core.images.remove(_named(request))
    return pb.RemoveImageResponse()


def _named(request: pb.ImageStatusRequest | pb.RemoveImageRequest) -> str:
    if not request.image.image:  # malformed ones are just not there, an empty one is an error
        raise unknown('can not resolve "" locally: ambiguous digest string')
    return request.image.image


def _image_fs_info(core: Core, request: pb.ImageFsInfoRequest) -> pb.ImageFsInfoResponse:
    """Writable layers are with the images, unless the node keeps them elsewhere (CRI-098)."""
    usage, node = core.usage(), core.node
    images = (usage.image_bytes, usage.image_inodes)
    layers = (usage.writable_bytes, usage.writable_inodes)
    if node.container_root:
        return pb.ImageFsInfoResponse(
            image_filesystems=[_filesystem(core, node.image_root, *images)],
            container_filesystems=[_filesystem(core, node.container_root, *layers)],
        )
    both = (images[0] + layers[0], images[1] + layers[1])
    return pb.ImageFsInfoResponse(image_filesystems=[_filesystem(core, node.image_root, *both)])


def _filesystem(core: Core, mountpoint: str, used: int, inodes: int) -> pb.FilesystemUsage:
    frozen_ns = core.node.image_fs_time_ns
    return pb.FilesystemUsage(
        timestamp=core.now_ns() if frozen_ns is None else frozen_ns,
        fs_id=pb.FilesystemIdentifier(mountpoint=mountpoint),
        used_bytes=pb.UInt64Value(value=used),
        inodes_used=pb.UInt64Value(value=inodes),
    )


HANDLERS: Final[dict[str, Callable[[Core, Any], Message]]] = {
    "ListImages": _list_images,
    "ImageStatus": _image_status,
    "RemoveImage": _remove_image,
    "ImageFsInfo": _image_fs_info,
}
