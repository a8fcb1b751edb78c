"""The programs that can be a kubelet under test, and how they are started.

What a case needs to itself (cgroups, device plugins, a system bus) is added to its program.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping
from functools import cache
from ipaddress import IPv6Address
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from msgspec import Struct, field

from kubelet_conformance.harness.kubelets.base import DEVICE_PLUGINS, LOG_LINKS
from kubelet_conformance.harness.machines.given.machine import GivenMachine
from kubelet_conformance.known_bugs import Release, release_of
from kubeobjects.structs import replace

VERSION_S: Final = 10
"""Seconds that a program has to tell its version."""
SYSTEM_BUS: Final = "DBUS_SYSTEM_BUS_ADDRESS"
SIDE_BY_SIDE: Final = MappingProxyType(
    {
        "cgroupsPerQOS": False,
        "enforceNodeAllocatable": [],
        "cgroupDriver": "cgroupfs",
    }
)
"""Kubelets side by side must not share what upstream keeps in fixed places: the cgroup /kubepods,
where each kills what it does not know (CG-043), and the directories of plug-ins and certificates.
A case that looks at cgroups has a group of its own for them (`with_own_cgroups`)."""
ELSEWHERE: Final = "192.0.2.1"
"""An address that is nobody's: it is kept for documentation (RFC 5737)."""
IPV6_ADDRESSES: Final = Path("/proc/net/if_inet6")
GLOBAL: Final = "00"
"""The scope there of an address that is not of one link only."""
NO_CHAINS: Final = MappingProxyType({"makeIPTablesUtilChains": False})
"""No kubelet of a case needs chains of its own in this machine's tables of packet filters."""
CERTIFICATES: Final = "pki"
OF_CGROUPS: Final = ("cgroupsPerQOS", "enforceNodeAllocatable", "cgroupRoot")
NO_CGROUPS: Final = MappingProxyType({"cgroupRoot": "/of-no-kubelet"})
"""Where no cgroup is. A kubelet without cgroups of its own makes nothing there, and tells runtimes
nothing of it; but it measures each cgroup at and below that place every ten seconds of its time,
and with the default, the root, these are all of the machine: most of an idle kubelet's work."""

COLLECTOR: Final = "GOGC"
"""How far a Go program's memory may grow, in percent, before it looks for garbage."""
SELDOM: Final = "400"
"""A kubelet of a case lives for seconds and stays small."""


class Program(Struct, frozen=True):
    """How to start a kubelet, and where it keeps what."""

    command: tuple[str, ...]
    """The words before the flags that all kubelets get."""
    own_flags: Mapping[str, str] = field(default_factory=dict)
    """Further flags -> a directory below the case's own."""
    config: Mapping[str, Any] = field(default_factory=dict)
    """Configuration fields that the cases do not choose."""
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """Configuration fields that a case may choose otherwise."""
    device_plugins: str = "kubelet/device-plugins"
    """The directory of its device plugins, below the case's own."""
    fixed_plugins: Path | None = None
    """The only directory where it looks for device plugins, whatever its flags say; None: it
    follows its root directory."""
    fixed_links: Path | None = None
    """The only directory where it makes links to logs; None: it follows its root directory."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables beside those of this process."""
    prepare: Callable[[], None] | None = None
    """What is called before each start."""
    certificates: tuple[Path, str] | None = None
    """The binary, and the directory below the case's own where it keeps the certificate that it
    makes for itself; None: it is not known to make one."""
    in_empty_directory: bool = False
    """Whether its working directory is an empty one. Kubelet 1.36 removes the files of its working
    directory when it removes a container without a log path."""


REFKUBELET: Final = Program(
    (sys.executable, "-c", "import sys, refkubelet.cli; sys.exit(refkubelet.cli.main())", "run"),
    own_flags={"--cert-dir": "pki"},
    config=SIDE_BY_SIDE,
)


@cache
def told_release(path: str) -> Release | None:
    """What `PROGRAM --version` says (`Kubernetes v1.36.2`); None where no version is in it."""
    try:
        process = subprocess.run(
            [path, "--version"], capture_output=True, text=True, timeout=VERSION_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return release_of(process.stdout)


def with_own_cgroups(program: Program, cgroup_root: str) -> Program:
    """The same program, which makes its cgroups below that group; the group exists."""
    fixed = {k: v for k, v in program.config.items() if k not in OF_CGROUPS}
    defaults = {**program.defaults, "cgroupRoot": cgroup_root}
    return replace(program, config=fixed, defaults=defaults)


def own_address() -> str:
    """The address that this machine has on its way out; "" when it has none. Nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((ELSEWHERE, 9))
        except OSError:
            return ""
        return str(probe.getsockname()[0])


def own_addresses() -> tuple[str, str]:
    """An IPv4 and an IPv6 address of this machine that others can reach; "" for one that it has
    not."""
    try:
        rows = [line.split() for line in IPV6_ADDRESSES.read_text().splitlines()]
    except OSError:
        rows = []
    reached = (row[0] for row in rows if row[3] == GLOBAL and row[-1] != "lo")
    return own_address(), next((str(IPv6Address(int(digits, 16))) for digits in reached), "")


def external(path: Path, prefix: tuple[str, ...] = (), node_ip: str = "") -> Program:
    """A kubelet binary that takes the upstream flags, behind the words of `prefix`.

    `prefix`: that of jumping time; its pods are those of a fake, in no cgroup of this machine.
    `node_ip`: the node's address. Without it a kubelet asks DNS for its node's name whenever it
    writes the Node. DNS servers live in real time: in jumping time their answers come too late."""
    address = (f"--node-ip={node_ip}",) if node_ip else ()
    return Program(
        (*prefix, str(path.absolute()), *address),
        own_flags={"--cert-dir": CERTIFICATES, "--volume-plugin-dir": "volume-plugins"},
        config={**SIDE_BY_SIDE, **NO_CGROUPS} if prefix else SIDE_BY_SIDE,
        defaults=NO_CHAINS,
        certificates=(path.absolute(), CERTIFICATES),
        device_plugins="device-plugins",
        fixed_plugins=DEVICE_PLUGINS,
        fixed_links=LOG_LINKS,
        environment={COLLECTOR: os.environ.get(COLLECTOR, SELDOM)},
        in_empty_directory=True,
    )


_OWN_PLUGINS: Final = (
    'mkdir -p "$1" "$2" && mount --bind "$2" "$1" && shift 2 && exec "$@"'  # then the kubelet
)


def with_own_plugins(program: Program, directory: Path) -> Program:
    """The same program; if its directory for plugins is fixed, it sees `directory` there, through a
    mount of its own that no other process sees."""
    if program.fixed_plugins is None:
        return program
    directory.mkdir(parents=True, exist_ok=True)
    places = (str(program.fixed_plugins), str(directory))
    command = ("unshare", "--mount", "sh", "-c", _OWN_PLUGINS, "sh", *places, *program.command)
    return replace(program, command=command)


def on_machine(
    program: Program, machine: GivenMachine, log_links: Path, plugins: Path | None
) -> Program:
    """The same program on a given machine, whose cgroups are its own. `log_links`: what it is to
    see as the directory of links to logs, which all kubelets of a machine clean up, if that is
    fixed; `plugins`: as its directory for plugins, if that is fixed."""
    fixed = {k: v for k, v in program.config.items() if k not in OF_CGROUPS}
    links = {}
    if program.fixed_links is not None:
        program.fixed_links.mkdir(parents=True, exist_ok=True)
        links[str(program.fixed_links)] = str(log_links)
    if plugins is not None and program.fixed_plugins is not None:
        for directory in (plugins, program.fixed_plugins):
            directory.mkdir(parents=True, exist_ok=True)
        links[str(program.fixed_plugins)] = str(plugins)
    command = (*machine.prefix(links), *program.command)
    return replace(program, command=command, config=fixed, prepare=machine.prepare)


def with_bus(program: Program, address: str) -> Program:
    """The same program, on the system bus at that address."""
    return replace(program, environment={**program.environment, SYSTEM_BUS: address})
