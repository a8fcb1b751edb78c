"""Files that the runtime and the kernel make in a container: in /etc, and in /proc."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kubecri.v1 import api_pb2 as pb

from fakecri.core.identities import identity_of
from fakecri.core.objects import Container
from fakecri.core.security import seccomp_mode, security_of
from fakecri.process.security import mask_of

_DEVICE: Final = "/dev/vda"
_OF_ALL: Final = (("proc", "/proc"), ("tmpfs", "/dev"), ("sysfs", "/sys"), ("tmpfs", "/dev/shm"))
_NAMESERVER: Final = "nameserver 127.0.0.53\n"


def network_files(container: Container) -> dict[str, str]:
    """The files in /etc that containerd writes (CRI-045), by path."""
    config = container.sandbox.config
    name, dns = config.hostname or container.pod.name, config.dns_config
    lines = []
    if dns.searches:
        lines.append(f"search {' '.join(dns.searches)}\n")
    lines += [f"nameserver {server}\n" for server in dns.servers]
    if dns.options:
        lines.append(f"options {' '.join(dns.options)}\n")
    own = f"{container.sandbox.ip}\t{name}\n" if container.sandbox.ip else ""
    return {
        "/etc/resolv.conf": "".join(lines) or _NAMESERVER,
        "/etc/hostname": f"{name}\n",
        "/etc/hosts": f"127.0.0.1\tlocalhost\n::1\tlocalhost\n{own}",
    }


def kernel_files(container: Container) -> Mapping[str, str]:
    """Files in /proc, by path: the sysctls of the pod, the ids of its user namespace."""
    linux = container.sandbox.config.linux
    found = {
        f"/proc/sys/{name.replace('.', '/')}": "\t".join(value.split()) + "\n"
        for name, value in linux.sysctls.items()
    }
    found.setdefault("/proc/sys/kernel/shm_rmid_forced", "0\n")
    found.setdefault("/proc/sys/kernel/hostname", network_files(container)["/etc/hostname"])
    users = linux.security_context.namespace_options.userns_options
    for name, mappings in (("uid_map", users.uids), ("gid_map", users.gids)):
        rows = [(m.container_id, m.host_id, m.length) for m in mappings] or [(0, 0, 2**32 - 1)]
        found[f"/proc/self/{name}"] = "".join(f"{a:10} {b:10} {c:10}\n" for a, b, c in rows)
    found["/proc/1/cmdline"] = "".join(f"{word}\0" for word in first_process(container))
    found["/proc/mounts"] = _mounts(container)
    found["/proc/self/status"] = _status(container)
    return found


def pid_owner(container: Container) -> Container | None:
    """The container whose main process has PID 1 for `container`: itself, or the one that `kubectl
    debug --target` names. None: they are the pod's or the node's processes."""
    pids = container.config.linux.security_context.namespace_options
    if pids.pid == pb.TARGET:
        return container.sandbox.containers.get(pids.target_id, container)
    return container if pids.pid == pb.CONTAINER else None


def first_process(container: Container) -> tuple[str, ...]:
    """The words of the process that has PID 1 for `container`."""
    if (owner := pid_owner(container)) is not None:
        return (*owner.config.command, *owner.config.args)
    on_node = container.config.linux.security_context.namespace_options.pid == pb.NODE
    return ("/sbin/init",) if on_node else ("/pause",)


def _mounts(container: Container) -> str:
    """What is mounted: the root, what every container has, and the mounts of the create request."""
    security = container.config.linux.security_context
    rows = [("overlay", "/", "overlay", security.readonly_rootfs)]
    rows += [(kind, place, kind, False) for kind, place in _OF_ALL]
    for mount in container.config.mounts:
        kind = "overlay" if mount.HasField("image") else "ext4"
        rows.append((_DEVICE, mount.container_path.rstrip("/") or "/", kind, mount.readonly))
    return "".join(f"{a} {b} {c} {'ro' if ro else 'rw'},relatime 0 0\n" for a, b, c, ro in rows)


def _status(container: Container) -> str:
    """Users, groups, capabilities and seccomp of every process of a container (CRI-088)."""
    who, security = identity_of(container), security_of(container)
    bounding, own = mask_of(security.bounding), mask_of(security.capabilities)
    mode = seccomp_mode(container)
    context = container.config.linux.security_context
    rows = {
        "State": "R (running)",
        "Uid": "\t".join([str(who.uid)] * 4),
        "Gid": "\t".join([str(who.gid)] * 4),
        "Groups": " ".join(map(str, who.groups)),
        "CapInh": mask_of(frozenset()),
        "CapPrm": own,
        "CapEff": own,
        "CapBnd": bounding,
        "CapAmb": mask_of(frozenset()),
        "NoNewPrivs": str(int(context.no_new_privs and not context.privileged)),
        "Seccomp": str(mode),
        "Seccomp_filters": str(int(mode > 0)),
    }
    return "".join(f"{name}:\t{value}\n" for name, value in rows.items())
