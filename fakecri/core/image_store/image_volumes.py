"""Images as volumes: what a runtime refuses, in the words of containerd 2.1, and what it tells of
those that it mounts (CRI-099). No I/O.

The fake's images hold the directories of `TOP`, and the paths that their registry entry names.
"""

from __future__ import annotations

import posixpath
from typing import Final

import grpc
from kubecri.v1 import api_pb2 as pb

from fakecri.core.image_store.images import Image, ImageStore
from fakecri.core.lookups.lookup import shown
from fakecri.errors import CriError, unknown
from fakecri.process.accounts import text_of

TOP: Final = ("bin", "etc", "root", "tmp", "var")
_PROGRAMS: Final = ("bin/busybox", "bin/cat", "bin/ls", "bin/sh")
_BEGUN: Final = "failed to mount image volume: "


def resolve_image_volumes(config: pb.ContainerConfig, images: ImageStore) -> dict[str, Image]:
    """Each image that is mounted gets its `image_ref`, which is its id; the images by place. Raises
    CriError for one that cannot be mounted."""
    by_place = dict[str, Image]()
    for mount in config.mounts:
        if mount.HasField("image"):
            image = by_place[mount.container_path] = _image_of(mount, images)
            mount.image.image_ref = image.id
    return by_place


def files_in(image: Image, sub_path: str = "") -> dict[str, bytes | None]:
    """What is in an image below `sub_path`: files by their path relative to it, "." for a file that
    is named itself; None: a directory."""
    prefix, files = posixpath.normpath(f"/{sub_path}").strip("/"), dict[str, bytes | None]()
    for path, data in _whole(image).items():
        if not prefix or f"{path}/".startswith(f"{prefix}/"):
            files[posixpath.relpath(path, prefix or ".")] = data
    return files


def _whole(image: Image) -> dict[str, bytes | None]:
    accounts = image.accounts
    return {
        **dict.fromkeys(TOP),
        **dict.fromkeys(_PROGRAMS, b""),
        "etc/passwd": text_of(accounts.passwd),
        "etc/group": text_of(accounts.group),
        **dict.fromkeys((path.strip("/") for path in image.paths), b""),
    }


def _image_of(mount: pb.Mount, images: ImageStore) -> Image:
    if mount.host_path:
        raise unknown(f"{_BEGUN}hostpath must be empty while mount image: {_mount(mount)}")
    if not mount.readonly:
        raise unknown(f"{_BEGUN}readonly must be true while mount image: {_mount(mount)}")
    name = mount.image.image
    if not name:
        raise unknown(f"{_BEGUN}image not specified in: {_spec(mount.image)}")
    image = images.find(name)
    if image is None:
        text = f'{_BEGUN}failed to resolve image "{shown(name)}": not found'
        raise CriError(grpc.StatusCode.NOT_FOUND, text)
    if mount.image_sub_path and not _has(image, mount.image_sub_path):
        path = shown(mount.image_sub_path)
        raise unknown(f'{_BEGUN}there is no "{path}" in image "{shown(name)}"')
    return image


def _has(image: Image, sub_path: str) -> bool:
    place = posixpath.normpath(sub_path).strip("/")
    if place.startswith(".."):
        return False
    return place == "." or any(f"{path}/".startswith(f"{place}/") for path in _whole(image))


def _mount(mount: pb.Mount) -> str:
    """As Go prints it."""
    propagation = pb.MountPropagation.Name(mount.propagation)
    return (
        f"&Mount{{ContainerPath:{mount.container_path},HostPath:{mount.host_path},"
        f"Readonly:{_flag(mount.readonly)},SelinuxRelabel:{_flag(mount.selinux_relabel)},"
        f"Propagation:{propagation},UidMappings:[]*IDMapping{{}},GidMappings:[]*IDMapping{{}},"
        f"RecursiveReadOnly:{_flag(mount.recursive_read_only)},Image:{_spec(mount.image)},}}"
    )


def _flag(value: bool) -> str:
    return "true" if value else "false"


def _spec(image: pb.ImageSpec) -> str:
    pairs = "".join(f"{key}: {value}," for key, value in sorted(image.annotations.items()))
    return (
        f"&ImageSpec{{Image:{image.image},Annotations:map[string]string{{{pairs}}},"
        f"UserSpecifiedImage:{image.user_specified_image},RuntimeHandler:{image.runtime_handler},}}"
    )
