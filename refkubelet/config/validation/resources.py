"""Checks reserved CPUs and reserved memory (CG-081, CG-082). Pure.

Texts are those of the kubelet. Upstream: pkg/kubelet/apis/config/validation: validation.go,
validation_reserved_memory.go; cmd/kubelet/app/server.go: run.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import MappingProxyType
from typing import Final

from kubeobjects.quantity import QuantityError, parse_nano
from kubeobjects.resource_names import HUGE_PAGES
from kubeobjects.structs import replace
from refkubelet.config.schema.kubelet_config import KubeletConfiguration
from refkubelet.model.cpuset import parse_cpuset

CPU: Final = "cpu"


def resource_problems(config: KubeletConfiguration) -> Iterator[str]:
    """The violations, without `invalid configuration: `."""
    yield from _reserved_cpus(config)
    yield from _reserved_memory(config)


def _reserved_cpus(config: KubeletConfiguration) -> Iterator[str]:
    if not config.reserved_system_cpus:
        return
    flag = "reservedSystemCPUs (--reserved-cpus)"
    if config.system_reserved_cgroup or config.kube_reserved_cgroup:
        yield (
            f"can't use {flag} with systemReservedCgroup (--system-reserved-cgroup) or "
            "kubeReservedCgroup (--kube-reserved-cgroup)"
        )
    try:
        parse_cpuset(config.reserved_system_cpus)
    except ValueError as error:
        yield f"unable to parse {flag} {config.reserved_system_cpus}, error: {error}"


def _reserved_memory(config: KubeletConfiguration) -> Iterator[str]:
    """Check reservedMemory: memory or huge pages, above 0, each once for a NUMA node."""
    entries_seen: set[tuple[int, str]] = set()
    for entry in config.reserved_memory:
        for name, text in entry.limits.items():
            node = entry.numa_node
            if name != "memory" and not name.startswith(HUGE_PAGES):
                yield (
                    f'the limit type "{name}" for NUMA node {node} is not supported, '
                    "only [memory hugepages-<HugePageSize>] is accepted"
                )
            try:
                if parse_nano(text) == 0:
                    yield (
                        f"reserved memory may not be zero for NUMA node {node} and "
                        f'resource "{name}"'
                    )
            except QuantityError as error:
                yield f"reservedMemory of NUMA node {node}, {name}: {error}"
            if (node, name) in entries_seen:
                yield (
                    f"the reserved memory has a duplicate value for NUMA node {node} and "
                    f'resource "{name}"'
                )
            entries_seen.add((node, name))


def with_named_cpus(config: KubeletConfiguration) -> KubeletConfiguration:
    """`config` with the number of CPUs in reservedSystemCPUs as the only CPU reservation, that of
    systemReserved; unchanged if reservedSystemCPUs is empty (CG-081)."""
    count = len(parse_cpuset(config.reserved_system_cpus))
    if not count:
        return config
    kube = {name: text for name, text in config.kube_reserved.items() if name != CPU}
    system = {**config.system_reserved, CPU: str(count)}
    return replace(
        config, kube_reserved=MappingProxyType(kube), system_reserved=MappingProxyType(system)
    )
