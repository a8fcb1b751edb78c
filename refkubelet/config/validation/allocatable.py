"""Checks the reservations of the node, and enforceNodeAllocatable (CG-034, CG-035). Pure.

Texts are those of the kubelet. Upstream: pkg/kubelet/apis/config/validation/validation.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kubeobjects.quantity import QuantityError, parse_nano
from refkubelet.config.schema.kubelet_config import KubeletConfiguration

ENFORCEABLE: Final = (
    "pods",
    "system-reserved",
    "system-reserved-compressible",
    "kube-reserved",
    "kube-reserved-compressible",
    "none",
)
_RESERVABLE: Final = frozenset({"cpu", "memory", "ephemeral-storage", "pid"})


def allocatable_problems(config: KubeletConfiguration) -> Iterator[str]:
    """The violations, without `invalid configuration: `."""
    yield from _enforced(config)
    yield from _reserved(config)


def _enforced(config: KubeletConfiguration) -> Iterator[str]:
    """Check enforceNodeAllocatable: known words, each once, `none` alone, and the fields that each
    of them requires."""
    enforced = config.enforce_node_allocatable
    flag = "enforceNodeAllocatable (--enforce-node-allocatable)"
    for name in ("system-reserved", "kube-reserved"):
        if name in enforced and f"{name}-compressible" in enforced:
            yield (
                f'both "{name}" and "{name}-compressible" cannot be specified together in {flag}'
            )
    for n, word in enumerate(enforced):
        if word in enforced[:n]:
            yield f'duplicated enforcements "{word}" in {flag}'
        elif word not in ENFORCEABLE:
            options = ", ".join(f'"{w}"' for w in ENFORCEABLE[:-1])
            yield (
                f'option "{word}" specified for {flag}. Valid options are {options} or '
                f'"{ENFORCEABLE[-1]}"'
            )
        elif word != "none":
            yield from _enforced_cgroup(config, word, flag)
        elif len(enforced) > 1:
            yield f'{flag} may not contain additional enforcements when "none" is specified'


def _enforced_cgroup(config: KubeletConfiguration, word: str, flag: str) -> Iterator[str]:
    cgroups = {"system": config.system_reserved_cgroup, "kube": config.kube_reserved_cgroup}
    owner = word.partition("-")[0]
    if not cgroups.get(owner, word):
        yield (
            f"{owner}ReservedCgroup (--{owner}-reserved-cgroup) must be specified when "
            f'"{owner}-reserved" or "{owner}-reserved-compressible" included in {flag}'
        )
    if not config.cgroups_per_qos:
        yield (
            f'cgroupsPerQOS (--cgroups-per-qos) must be set to true when "{word}" contained in '
            f"{flag}"
        )


def _reserved(config: KubeletConfiguration) -> Iterator[str]:
    for wire, amounts in (
        ("systemReserved", config.system_reserved),
        ("kubeReserved", config.kube_reserved),
    ):
        for name, text in amounts.items():
            if name not in _RESERVABLE:
                yield f"{wire}: cannot reserve {name!r}, only {', '.join(sorted(_RESERVABLE))}"
                continue
            try:
                if parse_nano(text) < 0:
                    yield f"{wire}.{name}: resource quantity cannot be negative: {text}"
            except QuantityError as e:
                yield f"{wire}.{name}: {e}"
