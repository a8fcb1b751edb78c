"""Which kernel settings a pod may ask for (LIFE-222). Pure.

A setting belongs to a namespace; in the host's namespace a pod must not change it. Upstream:
pkg/kubelet/sysctl/allowlist.go, safe_sysctls.go.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kubeobjects.golang.strconv import quoted
from refkubelet.admission.admit_handler import Check, PodAdmitAttributes, Rejection

FORBIDDEN: Final = "SysctlForbidden"
SAFE: Final = (
    "kernel.shm_rmid_forced",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.ping_group_range",
    "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
)
IPC_PREFIXES: Final = ("kernel.shm", "kernel.msg", "kernel.sem", "fs.mqueue.")


def sysctls_allowed(unsafe: Iterable[str] = ()) -> Check:
    """A handler that lets the safe settings pass, and those of `allowedUnsafeSysctls` (names, or
    beginnings of names with a `*` at the end)."""
    allowed = (*SAFE, *(normal_name(name) for name in unsafe))

    def handler(asked: PodAdmitAttributes) -> Rejection | None:
        spec = asked.pod.spec
        security = spec.securityContext
        if security is None:
            return None
        for setting in security.sysctls or ():
            name = normal_name(setting.name)
            if not any(_fits(name, pattern) for pattern in allowed):
                return Rejection(FORBIDDEN, f"forbidden sysctl: {quoted(name)} not allowlisted")
            namespace = "IPC" if name.startswith(IPC_PREFIXES) else "Net"
            if spec.hostIPC if namespace == "IPC" else spec.hostNetwork:
                text = f"forbidden sysctl: {quoted(name)} not allowed with host {namespace} enabled"
                return Rejection(FORBIDDEN, text)
        return None

    return handler


def normal_name(name: str) -> str:
    """The name with dots between its parts; where parts are separated by slashes, a dot inside a
    part becomes a slash.

    >>> normal_name("net/ipv4/conf/eth0.1/rp_filter"), normal_name("kernel.sem")
    ('net.ipv4.conf.eth0/1.rp_filter', 'kernel.sem')
    """
    first = next((letter for letter in name if letter in "./"), ".")
    return name.translate(str.maketrans("./", "/.")) if first == "/" else name


def _fits(name: str, pattern: str) -> bool:
    return name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern
