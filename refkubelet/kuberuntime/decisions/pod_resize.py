"""The pod's part of an in-place resize: which limits of its cgroup change before its containers and
which after, and whether the used memory allows lower limits. Pure.

A pod's cgroup must have room for its containers at every moment: limits grow first and shrink last,
and requests never exceed limits on the way (CG-065).
Upstream: pkg/kubelet/kuberuntime/kuberuntime_manager.go: doPodResizeAction,
validateMemoryResizeAction; helpers_linux.go: subtractOverheadFromResourceConfig.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from kubecri.v1 import api_pb2 as cri
from msgspec import Struct
from msgspec.structs import asdict

from kubeobjects.quantity import NANO, parse_nano
from kubeobjects.structs import replace
from refkubelet.kuberuntime.decisions.resize_actions import MEMORY, ContainerUpdate
from refkubelet.model.cgroups.cpu_shares import SHARES_PER_CPU, cpu_quota_us, cpu_shares, millicores
from refkubelet.model.cgroups.limits import ResourceConfig
from refkubelet.model.objects import Pod

CANNOT_DECREASE: Final = "cannot decrease memory limits: "


class PodLimits(Struct, frozen=True):
    """The limits to write to the pod's cgroup before, and after, its containers are updated."""

    before: tuple[ResourceConfig, ...] = ()
    after: tuple[ResourceConfig, ...] = ()


def merged(config: ResourceConfig, update: ResourceConfig) -> ResourceConfig:
    """`config`, overwritten with the values of `update` that are set."""
    values = asdict(update)
    return replace(config, **{name: v for name, v in values.items() if v not in ("", None)})


def pod_limits_of(resource: str, now: ResourceConfig, wanted: ResourceConfig) -> PodLimits:
    """The changes of `memory` or `cpu`. A limit that is removed from the spec stays, because it
    cannot be removed in place (CG-067). Memory requests are in no cgroup."""
    if resource == MEMORY:
        limit = ResourceConfig(memory_limit_bytes=wanted.memory_limit_bytes)
        limit_grows = _compared(now.memory_limit_bytes, wanted.memory_limit_bytes)
        request, request_grows = ResourceConfig(), 0
    else:
        quota = wanted.cpu_quota_us
        limit = ResourceConfig(cpu_quota_us=quota, cpu_period_us=wanted.cpu_period_us)
        limit_grows = _compared(now.cpu_quota_us, quota)
        request = ResourceConfig(cpu_shares=wanted.cpu_shares)
        request_grows = _compared(now.cpu_shares, wanted.cpu_shares)
    up = [step for step, grows in ((limit, limit_grows), (request, request_grows)) if grows > 0]
    down = [step for step, grows in ((request, request_grows), (limit, limit_grows)) if grows < 0]
    return PodLimits(tuple(up), tuple(down))


def _compared(now: int | None, wanted: int | None) -> int:
    return 0 if now is None or wanted is None else wanted - now


def sandbox_update(config: ResourceConfig, pod: Pod) -> Any:
    """The message for UpdatePodSandboxResources: the cgroup's resources without the overhead."""
    overhead = pod.spec.overhead or {}
    shares, quota, memory = config.cpu_shares, config.cpu_quota_us, config.memory_limit_bytes
    if "cpu" in overhead:
        millis = millicores(parse_nano(overhead["cpu"]))
        if config.cpu_period_us and quota is not None:
            quota -= cpu_quota_us(millis, config.cpu_period_us)
        if shares is not None:
            shares = cpu_shares(-(-shares * 1000 // SHARES_PER_CPU) - millis)
    if "memory" in overhead and memory is not None:
        memory -= parse_nano(overhead["memory"]) // NANO
    return cri.LinuxContainerResources(
        cpu_period=config.cpu_period_us or 0,
        cpu_quota=quota or 0,
        cpu_shares=shares or 0,
        memory_limit_in_bytes=memory or 0,
        cpuset_cpus=config.cpus,
        unified=dict(config.unified or {}),
    )


class MemoryUsage(Struct, frozen=True):
    """Used memory in bytes; None: unknown. `containers`: by name, in the order of the runtime."""

    pod: int | None
    containers: Mapping[str, int | None]


class LowerLimits(Struct, frozen=True):
    """The memory limits that become lower, or are new; in bytes."""

    pod: int | None
    containers: Mapping[str, int]

    def __bool__(self) -> bool:
        return self.pod is not None or bool(self.containers)


def lower_limits(
    updates: Iterable[ContainerUpdate], now: ResourceConfig | None, wanted: ResourceConfig | None
) -> LowerLimits:
    """The memory limits that a resize lowers, or sets for the first time (CG-066). `now`, `wanted`:
    the limits of the pod's cgroup; None: pods have no cgroups."""
    containers = {}
    for update in updates:
        before, after = update.before.memory_limit_bytes, update.after.memory_limit_bytes
        if update.resource == MEMORY and after and (not before or after < before):
            containers[update.container.name] = after
    limit = wanted.memory_limit_bytes if wanted is not None else None
    current_limit = now.memory_limit_bytes if now is not None else None
    lower = limit is not None and (current_limit is None or limit < current_limit)
    return LowerLimits(limit if lower else None, containers)


def refused_decrease(lower: LowerLimits, usage: MemoryUsage) -> str | None:
    """Why these limits are refused: the used memory does not fit; None: it does (CG-066)."""
    problems = []
    if lower.pod is not None:
        if usage.pod is None:
            problems.append("missing pod memory usage")
        elif usage.pod >= lower.pod:
            problems.append(
                f"attempting to set pod memory limit ({lower.pod}) "
                f"below current usage ({usage.pod})"
            )
    for name, used in usage.containers.items():
        limit = lower.containers.get(name)
        if limit is None:
            continue
        if used is None:
            problems.append(f'missing container "{name}" memory usage')
        elif used >= limit:  # the message names the pod's usage
            usage_bytes = used if usage.pod is None else usage.pod
            problems.append(
                f'attempting to set container "{name}" memory limit ({limit}) '
                f"below current usage ({usage_bytes})"
            )
    if not problems:
        return None
    text = problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"
    return CANNOT_DECREASE + text
