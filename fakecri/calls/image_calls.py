"""ImageService over the core: one function a method. PullImage, which takes time, is in
`slow_calls.py`. Rules: CRI-090..098."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

from criapi.v1 import api_pb2 as pb
from google.protobuf.message import Message

from fakecri.calls import verbose
from fakecri.core.messages import image_message
from fakecri.core.runtime import Core
from fakecri.errors import unknown


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
    usage = core.usage()
    return pb.ImageFsInfoResponse(
        image_filesystems=[
            pb.FilesystemUsage(
                timestamp=core.now_ns(),
                fs_id=pb.FilesystemIdentifier(mountpoint=core.node.image_root),
                used_bytes=pb.UInt64Value(value=usage.image_bytes + usage.writable_bytes),
                inodes_used=pb.UInt64Value(value=100 * len(core.images.images)),
            )
        ]
    )


HANDLERS: Final[dict[str, Callable[[Core, Any], Message]]] = {
    "ListImages": _list_images,
    "ImageStatus": _image_status,
    "RemoveImage": _remove_image,
    "ImageFsInfo": _image_fs_info,
}
