"""Which sysctls a sandbox can have: those of its own namespaces, in the words of runc. Pure."""

from __future__ import annotations

from typing import Final

from criapi.v1 import api_pb2 as pb

_OF_IPC: Final = frozenset(
    f"kernel.{name}" for name in ("msgmax", "msgmnb", "msgmni", "sem", "shmall", "shmmax", "shmmni")
) | {"kernel.shm_rmid_forced"}
_MACHINE: Final = 'sysctl "{}" is not in a separate kernel namespace'


def refusal(config: pb.PodSandboxConfig) -> str:
    """Why the sandbox cannot have its sysctls; "": it can."""
    options = config.linux.security_context.namespace_options
    for name in config.linux.sysctls:
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
