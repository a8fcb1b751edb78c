"""Thresholds, pods and usage for the tests of evictions."""

from __future__ import annotations

from typing import Any

from refkubelet.config.eviction_grammar import parse_thresholds
from refkubelet.config.eviction_thresholds import Threshold
from refkubelet.cri.usage import ContainerUsage
from refkubelet.model.objects import Pod, decode_pod
from refkubelet.stats.usage import PodUsage

MI = 1 << 20


def hard(signal: str, text: str, reclaim: str = "") -> Threshold:
    minimum = {signal: reclaim} if reclaim else {}
    (found,) = parse_thresholds({signal: text}, {}, {}, minimum)
    return found


def soft(signal: str, text: str, grace: str) -> Threshold:
    (found,) = parse_thresholds({}, {signal: text}, {signal: grace}, {})
    return found


def make_pod(name: str = "p", *, priority: int | None = None, **more: Any) -> Pod:
    """`requests`, `limits`, `static`, `tolerations` of a pod with one container `main`."""
    resources = {key: more[key] for key in ("requests", "limits") if key in more}
    annotations = {"kubernetes.io/config.source": "file"} if more.get("static") else {}
    return decode_pod(
        {
            "metadata": {"name": name, "namespace": "n", "uid": name, "annotations": annotations},
            "spec": {
                "priority": priority,
                "terminationGracePeriodSeconds": more.get("grace"),
                "tolerations": more.get("tolerations", []),
                "containers": [{"name": "main", "resources": resources}],
            },
        }
    )


def uses(memory: int | None = 0, disk: int | None = 0, inodes: int = 0) -> PodUsage:
    row = ContainerUsage(
        container_id="id",
        name="main",
        pod_uid="p",
        pod_name="p",
        pod_namespace="n",
        memory_working_set_bytes=memory,
        memory_time_ns=0,
        cpu_usage_core_ns=None,
        cpu_usage_nano_cores=None,
        rootfs_used_bytes=disk,
        rootfs_inodes_used=inodes,
    )
    return PodUsage((row,))
