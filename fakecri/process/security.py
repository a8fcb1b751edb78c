"""What the kernel lets a process do: its capabilities, the system calls that seccomp refuses."""

from __future__ import annotations

from typing import Final

from msgspec import Struct, field

CAPABILITIES: Final = [
    *("CHOWN", "DAC_OVERRIDE", "DAC_READ_SEARCH", "FOWNER", "FSETID", "KILL", "SETGID"),
    *("SETUID", "SETPCAP", "LINUX_IMMUTABLE", "NET_BIND_SERVICE", "NET_BROADCAST", "NET_ADMIN"),
    *("NET_RAW", "IPC_LOCK", "IPC_OWNER", "SYS_MODULE", "SYS_RAWIO", "SYS_CHROOT"),
    *("SYS_PTRACE", "SYS_PACCT", "SYS_ADMIN", "SYS_BOOT", "SYS_NICE", "SYS_RESOURCE"),
    *("SYS_TIME", "SYS_TTY_CONFIG", "MKNOD", "LEASE", "AUDIT_WRITE", "AUDIT_CONTROL"),
    *("SETFCAP", "MAC_OVERRIDE", "MAC_ADMIN", "SYSLOG", "WAKE_ALARM", "BLOCK_SUSPEND"),
    *("AUDIT_READ", "PERFMON", "BPF", "CHECKPOINT_RESTORE"),
]
"""In the order of their numbers."""


class Security(Struct, frozen=True):
    """By default everything is allowed."""

    bounding: frozenset[str] = frozenset(CAPABILITIES)
    """The capabilities that its programs can have at most."""
    capabilities: frozenset[str] = frozenset(CAPABILITIES)
    """Those that it has."""
    refused_calls: frozenset[str] = field(default_factory=frozenset)
    """Names of system calls that its seccomp profile refuses with EPERM."""
    masked: frozenset[str] = field(default_factory=frozenset)
    """Paths that are masked: nothing can be run from there."""

    def may(self, call: str, capability: str = "") -> bool:
        """Whether a system call is allowed that needs a capability ("": none)."""
        allowed = not capability or capability in self.capabilities
        return allowed and call not in self.refused_calls


def mask_of(names: frozenset[str]) -> str:
    """As /proc/self/status writes a set of capabilities.

    >>> mask_of(frozenset({"CHOWN", "KILL"}))
    '0000000000000021'
    """
    return f"{sum(1 << i for i, name in enumerate(CAPABILITIES) if name in names):016x}"
