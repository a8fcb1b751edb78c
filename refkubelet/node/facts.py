"""The facts about this node that its Node object shows, collected once at start.

Rules: NODE-001 (name), NODE-003 (labels, taints), NODE-030..033.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Final

from kubeobjects.names import subdomain_problems
from kubeobjects.quantity import NANO
from refkubelet.config.schema.kubelet_config import KubeletConfiguration
from refkubelet.container_manager.cgroups.allocatable import allocatable_of
from refkubelet.container_manager.cgroups.node_config import reservations_of
from refkubelet.host.machine import Machine, machine_capacity
from refkubelet.node.status import NodeFacts, default_labels

NO_LABELS: Final[Mapping[str, str]] = MappingProxyType({})
KUBELET_VERSION: Final = "v1.36.0"
REQUIRED: Final = ("cpu", "memory", "pods")
"""No node is ready without these, and ephemeral-storage where it is isolated (NODE-022.3)."""
_ARCHITECTURES: Final = {"x86_64": "amd64", "aarch64": "arm64", "armv7l": "arm"}


MACHINE_IDS: Final = ("/etc/machine-id", "/var/lib/dbus/machine-id")
SYSTEM_UUIDS: Final = (
    "/sys/class/dmi/id/product_uuid",
    "/proc/device-tree/system-id",
    "/proc/device-tree/vm,uuid",
    "/etc/machine-id",
)
"""From the firmware, also of PowerPC machines; else the ID of the installation."""


class NodeNameError(ValueError):
    """The host name or `--hostname-override` is not a valid node name; the text says why."""


def node_name(override: str = "") -> str:
    """`--hostname-override` or the OS hostname, trimmed and in lower case (NODE-001).

    Raises `NodeNameError` for an empty or invalid name: it is also part of the names of static pods
    (SRC-033).
    """
    name = (override or os.uname().nodename).strip().lower()
    if not name:
        raise NodeNameError("empty hostname is invalid; give one with --hostname-override")
    if subdomain_problems(name):
        raise NodeNameError(
            f"{name!r} is not a node name: wanted letters, digits, '-', '.', each part beginning "
            "and ending with a letter or digit; give another with --hostname-override"
        )
    return name


def platform_name() -> str:
    """This system as Go calls it: `linux/amd64`."""
    machine = os.uname().machine
    return f"linux/{_ARCHITECTURES.get(machine, machine)}"


def node_facts(
    config: KubeletConfiguration,
    name: str,
    machine: Machine,
    *,
    root_dir: str,
    node_ips: tuple[str, ...] = (),
    runtime_version: str = "Unknown",
    apparmor: bool = True,
    labels: Mapping[str, str] = NO_LABELS,
) -> NodeFacts:
    """The facts, from `config` and the machine. `runtime_version`: `<runtime>://<version>`
    (NODE-033). `apparmor`: the kernel can enforce profiles (LIFE-227). `labels`: those of
    `--node-labels`, which win over the machine's (CFG-011)."""
    capacity = _capacity(config, machine, root_dir)
    swap_bytes = machine.swap_bytes()
    system = os.uname()
    architecture = platform_name().partition("/")[2]
    return NodeFacts(
        name=name,
        internal_ips=node_ips,
        labels={**default_labels(name, architecture), **labels},
        taints=tuple(
            {"key": t.key, "value": t.value, "effect": t.effect}
            for t in config.register_with_taints
        ),
        provider_id=config.provider_id,
        attach_detach=config.enable_controller_attach_detach,
        capacity=capacity,
        allocatable=allocatable_of(capacity, reservations_of(config, capacity)),
        required=(
            *REQUIRED,
            *(("ephemeral-storage",) if config.local_storage_capacity_isolation else ()),
        ),
        info={
            "machineID": _first_of(MACHINE_IDS),
            "systemUUID": _first_of(SYSTEM_UUIDS),
            "bootID": machine.boot_id(),
            "kernelVersion": system.release,
            "osImage": _os_image(),
            "containerRuntimeVersion": runtime_version,
            "kubeletVersion": KUBELET_VERSION,
            "kubeProxyVersion": "",
            "operatingSystem": "linux",
            "architecture": architecture,
            **({"swap": {"capacity": swap_bytes}} if swap_bytes else {}),
        },
        kubelet_port=config.port,
        apparmor=apparmor,
    )


def _capacity(config: KubeletConfiguration, machine: Machine, root_dir: str) -> dict[str, int]:
    """The machine's resources, in nano units (NODE-030)."""
    max_pods = config.max_pods
    if config.pods_per_core:
        max_pods = min(max_pods, machine.cpu_count() * config.pods_per_core)
    capacity = {**machine_capacity(machine), "pods": max_pods * NANO}
    if config.local_storage_capacity_isolation:
        with suppress(FileNotFoundError):  # no root directory yet: no such capacity (NODE-022)
            capacity["ephemeral-storage"] = machine.filesystem(root_dir).capacity_bytes * NANO
    return capacity


def _first_of(files: tuple[str, ...]) -> str:
    """The content of the first of these files that can be read; "" if none can."""
    for file in files:
        with suppress(OSError):
            return Path(file).read_text(errors="replace").strip("\0 \t\r\n")
    return ""


def _os_image() -> str:
    try:
        lines = Path("/etc/os-release").read_text().splitlines()
    except OSError:
        return ""
    values = dict(line.partition("=")[::2] for line in lines)
    return values.get("PRETTY_NAME", "").strip('"')
