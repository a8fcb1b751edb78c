"""The files of a container: of its image, of the create request, of the kernel; in memory.

With the option `host_mounts` mounts of host paths that are there show the files of this machine.
"""

from __future__ import annotations

import errno
import os
import posixpath
from typing import Final

from kubecri.v1 import api_pb2 as pb

from fakecri import fakesh
from fakecri.core.identities import identity_of
from fakecri.core.image_store.image_volumes import files_in
from fakecri.core.image_store.images import Image
from fakecri.core.objects import Container
from fakecri.programs.kernel_files import kernel_files, network_files

_FOR_ALL: Final = ("/tmp", "/dev")
_KERNEL: Final = ("/proc", "/sys")
_NOT_DIRECTORIES: Final = (
    "/dev/termination-log",
    "/etc/hosts",
    "/etc/resolv.conf",
    "/etc/hostname",
)


def files_of(container: Container) -> fakesh.Files:
    """The files of a container; made when they are first asked for."""
    if container.inside.files is None:
        container.inside.files = _made(container)
    assert isinstance(container.inside.files, fakesh.Files)
    return container.inside.files


def _made(container: Container) -> fakesh.Files:
    files = fakesh.with_users(
        fakesh.Files(lambda path: _refusal(container, path)), container.image.accounts
    )
    for name in fakesh.PROGRAMS:
        files.put(f"/bin/{name}", b"")
    texts = {**network_files(container), **kernel_files(container)}
    for path, text in texts.items():
        files.put(path, text.encode())
    if container.config.working_dir.startswith("/"):
        files.put_directory(_absolute(container.config.working_dir))
    for mount in container.config.mounts:
        place = _absolute(mount.container_path)
        if mount.HasField("image"):
            _put_image(
                files, place, container.image.volumes[mount.container_path], mount.image_sub_path
            )
        elif container.inside.host_mounts and os.path.exists(mount.host_path):
            files.mount(place, _volume(container, mount))
        elif place in _NOT_DIRECTORIES:
            files.put(place, texts.get(place, "").encode())
        else:
            files.put_directory(place)
    if not container.config.linux.security_context.privileged:
        for path in container.config.linux.security_context.masked_paths:
            files.mask(_absolute(path))
    return files


def _volume(container: Container, mount: pb.Mount) -> fakesh.HostDirectory:
    return fakesh.HostDirectory(
        root=mount.host_path,
        identity=identity_of(container),
        read_only=mount.readonly,
        recursive=mount.recursive_read_only,
    )


def _put_image(files: fakesh.Files, place: str, image: Image, sub_path: str) -> None:
    for name, data in files_in(image, sub_path).items():
        path = posixpath.normpath(posixpath.join(place, name))
        if data is None:
            files.put_directory(path)
        else:
            files.put(path, data)


def _refusal(container: Container, path: str) -> int:
    """The errno of writing to a file or directory; 0: it may be written."""
    security = container.config.linux.security_context
    for mount in container.config.mounts:
        if _is_in(path, _absolute(mount.container_path)):
            return errno.EROFS if mount.readonly or mount.HasField("image") else 0
    if any(_is_in(path, _absolute(one)) for one in security.readonly_paths):
        return 0 if security.privileged else errno.EROFS
    if any(_is_in(path, top) for top in _KERNEL) and not security.privileged:
        return errno.EROFS
    if security.readonly_rootfs and not _is_in(path, "/dev"):
        return errno.EROFS
    own = identity_of(container).uid == 0 or any(_is_in(path, top) for top in _FOR_ALL)
    return 0 if own else errno.EACCES


def _absolute(path: str) -> str:
    return "/" + posixpath.normpath(f"/{path}").lstrip("/")


def _is_in(path: str, directory: str) -> bool:
    return path == directory or path.startswith(directory.rstrip("/") + "/")
