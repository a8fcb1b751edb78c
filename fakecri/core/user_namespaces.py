"""What a runtime refuses of user namespaces, in the words of containerd 2.1 and runc. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kubecri.v1 import api_pb2 as pb

from fakecri.errors import unknown

_IDS: Final = 1 << 32


def check_sandbox(sandbox_id: str, options: pb.NamespaceOption) -> None:
    """Check the user namespace that a sandbox is to have. Raises CriError for mappings that are
    wrong."""
    if not options.HasField("userns_options"):
        return
    users, on_host = options.userns_options, options.network == pb.NODE
    begun = f'failed to start sandbox "{sandbox_id}": '
    if users.mode == pb.POD and not on_host:
        _check_for_network(sandbox_id, users)
    if why := _problem(users):
        raise unknown(f"{begun}failed to generate sandbox container spec: {why}")
    if users.mode != pb.POD:
        return
    if on_host:
        raise unknown(
            f"{begun}failed to generate sandbox container spec: failed to pin user namespace: "
            "failed to open netns(): open : no such file or directory"
        )
    for word, mappings in (("uid", users.uids), ("gid", users.gids)):
        if mappings[0].container_id:
            raise unknown(
                f"{begun}failed to create containerd task: failed to create shim task: OCI runtime "
                "create failed: runc create failed: user namespaces enabled, but no mapping found "
                f"for {word} 0"
            )


def _check_for_network(sandbox_id: str, users: pb.UserNamespace) -> None:
    """The network is set up in the user namespace, before anything else."""
    begun = f'failed to create network namespace for sandbox "{sandbox_id}": '
    for word, mappings in (("uid", users.uids), ("gid", users.gids)):
        if len(mappings) != 1:
            raise unknown(
                f"{begun}required only one {word} mapping, but got {len(mappings)} {word} "
                "mapping(s)"
            )
    for mapping in (users.uids[0], users.gids[0]):
        if not mapping.length or max(mapping.host_id, mapping.container_id) + mapping.length > _IDS:
            raise unknown(
                f"{begun}failed to start noop process for unshare: fork/exec /proc/self/exe: "
                "invalid argument"
            )


def check_container(
    container_id: str, config: pb.ContainerConfig, sandbox: pb.PodSandboxConfig
) -> None:
    """Check the user namespace that a container is to have. Raises CriError for mappings that are
    wrong, or others than those of its sandbox."""
    options = config.linux.security_context.namespace_options
    around = sandbox.linux.security_context.namespace_options
    own = options.userns_options if options.HasField("userns_options") else None
    outer = around.userns_options if around.HasField("userns_options") else None
    if own is None and outer is None:
        return
    begun = f'failed to generate container "{container_id}" spec: failed to generate spec opts: '
    why = "" if own is None else _problem(own)
    if why:
        raise unknown(begun + why)
    if own != outer:
        raise unknown(
            f"{begun}user namespace config for sandbox is different from container. Sandbox userns "
            f"config: {_shown(outer)} - Container userns config: {_shown(own)}"
        )


def _problem(users: pb.UserNamespace) -> str:
    """What is wrong whatever the network is; "": nothing."""
    begun, mode = "user namespace configuration: ", _mode(users)
    if users.mode == pb.NODE:
        if not users.uids and not users.gids:
            return ""
        return (
            f'{begun}can\'t use user namespace mode "NODE" with mappings. '
            f"Got {len(users.uids)} UID mappings and {len(users.gids)} GID mappings"
        )
    if users.mode != pb.POD:
        return f'{begun}unsupported user namespace mode: "{mode}"'
    for word, mappings in (("UID", users.uids), ("GID", users.gids)):
        if len(mappings) > 1:
            return (
                f"{begun}{word} mapping: only one mapping line supported, got {len(mappings)} "
                "mapping lines"
            )
        if mappings and not mappings[0].length:
            return f"{begun}{word} mapping: invalid mapping length: 0"
    if not users.uids or not users.gids:
        return f'{begun}can\'t use user namespace mode "POD" without UID and GID mappings'
    return ""


def _mode(users: pb.UserNamespace) -> str:
    modes = pb.NamespaceMode.values()
    return pb.NamespaceMode.Name(users.mode) if users.mode in modes else str(users.mode)


def _shown(users: pb.UserNamespace | None) -> str:
    """As Go prints it."""
    if users is None:
        return "nil"
    uids, gids = _rows(users.uids), _rows(users.gids)
    return f"&UserNamespace{{Mode:{_mode(users)},Uids:{uids},Gids:{gids},}}"


def _rows(mappings: Sequence[pb.IDMapping]) -> str:
    rows = (
        f"&IDMapping{{HostId:{m.host_id},ContainerId:{m.container_id},Length:{m.length},}},"
        for m in mappings
    )
    return "[]*IDMapping{" + "".join(rows) + "}"
