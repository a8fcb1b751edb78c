"""What create requests mean, and what of them is refused: names, labels, sysctls, log paths. Pure.

What must never happen here: two pods or containers that differ get one name (CRI-024).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import grpc
from kubecri.v1 import api_pb2 as pb

from fakecri.core.lookups.lookup import shown
from fakecri.errors import CgroupRefused, CriError, unknown

_LONGEST_LABEL_BYTES: Final = 4096
_OF_IPC: Final = frozenset(
    f"kernel.{name}" for name in ("msgmax", "msgmnb", "msgmni", "sem", "shmall", "shmmax", "shmmni")
) | {"kernel.shm_rmid_forced"}
_MACHINE: Final = 'sysctl "{}" is not in a separate kernel namespace'


def sandbox_name(pod: pb.PodSandboxMetadata) -> str:
    """What no other sandbox may be called (CRI-024)."""
    return f"{pod.name}_{pod.namespace}_{pod.uid}_{pod.attempt}"


def container_name(container: pb.ContainerMetadata, pod: pb.PodSandboxMetadata) -> str:
    """What no other container may be called (CRI-024); the pod as the create request has it."""
    return f"{container.name}_{pod.name}_{pod.namespace}_{pod.uid}_{container.attempt}"


def require_short_labels(labels: Mapping[str, str]) -> None:
    """A label of more than 4096 bytes is refused, in the words of containerd."""
    for key in labels:
        value = labels[key]
        if 4 * (len(key) + len(value)) <= _LONGEST_LABEL_BYTES:
            continue  # whatever its characters are
        if len(key.encode()) + len(value.encode()) > _LONGEST_LABEL_BYTES:
            raise CriError(
                grpc.StatusCode.INVALID_ARGUMENT,
                "failed to create containerd container: create container failed validation: "
                "containers.Labels: label key and value greater than maximum size (4096 bytes), "
                f"key: {key[:64]}: invalid argument",
            )


def require_possible(config: pb.ContainerConfig) -> None:
    """A group without a user, and a recursive read-only mount that is not read-only and private,
    are refused, as the contract says (CRI-054)."""
    security = config.linux.security_context
    if security.HasField("run_as_group") and not (
        security.HasField("run_as_user") or security.run_as_username
    ):
        group = security.run_as_group.value
        raise unknown(
            f'failed to generate user string: user group "{group}" is specified without user'
        )
    for mount in config.mounts:
        private = mount.propagation == pb.PROPAGATION_PRIVATE
        if mount.recursive_read_only and not (mount.readonly and private):
            need = "private propagation" if mount.readonly else "a read-only mount"
            raise unknown(
                f'failed to mount "{shown(mount.container_path)}": recursive read-only needs {need}'
            )


def sysctl_refusal(config: pb.PodSandboxConfig) -> str:
    """Why the sandbox cannot have its sysctls, in the words of runc; "": it can.

    It can have those of the namespaces that are its own, not those of the machine.
    """
    sysctls = config.linux.sysctls
    if not sysctls:
        return ""
    options = config.linux.security_context.namespace_options
    for name in sysctls:
        plain = name.replace("/", ".")
        if plain in _OF_IPC or plain.startswith("fs.mqueue."):
            if options.ipc == pb.NODE:
                return f'sysctl "{name}" is not allowed in the hosts ipc namespace'
        elif plain.startswith("net."):
            if options.network == pb.NODE:
                return f'sysctl "{name}" not allowed in host network namespace'
        elif plain != "kernel.domainname":
            return _MACHINE.format(name)
    return ""


def failed_start(refused: CgroupRefused | str) -> str:
    """What a start says that runc refuses."""
    begun = "" if isinstance(refused, str) else "unable to start container process: "
    return (
        "failed to create containerd task: failed to create shim task: OCI runtime create failed: "
        f"runc create failed: {begun}{refused}: unknown"
    )


def log_path(request: pb.CreateContainerRequest) -> str:
    """Where the container logs; "" for no log (CRI-100)."""
    directory, path = request.sandbox_config.log_directory, request.config.log_path
    return f"{directory}/{path}" if directory and path else ""
