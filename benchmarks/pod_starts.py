"""How fast pods start: 110 static pods with two containers each, from manifests to Running."""

from __future__ import annotations

import asyncio
from pathlib import Path

from crash_loop import WITH_CGROUPS, Result, in_fresh_directory, measured
from measure import Row

from fakecri import FakeCRI, FakeNode
from refkubelet.kubelet import Kubelet

MANIFEST = """
apiVersion: v1
kind: Pod
metadata: {{name: pod-{number}}}
spec:
  containers:
  - {{name: a, image: localhost/busybox:1}}
  - {{name: b, image: localhost/busybox:2}}
"""


async def start_all(directory: Path, pods: int) -> Result:
    """Run a kubelet until the status of every pod says Running and Ready."""
    node = FakeNode()
    cri = FakeCRI(node=node)

    async def all_running(kubelet: Kubelet) -> str:
        while _running(kubelet) < pods:  # noqa: ASYNC110 - no event says so
            await asyncio.sleep(0.1)
        return f"{cri.count()} calls"

    return await measured(directory, cri, node, all_running, **WITH_CGROUPS)


def _running(kubelet: Kubelet) -> int:
    statuses = [pod.status for pod in kubelet.pods_with_status()]
    return sum(
        status is not None
        and status.phase == "Running"
        and all(container.ready for container in status.containerStatuses or ())
        for status in statuses
    )


def rows(runs: int = 3, pods: int = 110) -> list[Row]:
    """One row: the best of `runs` runs."""
    manifests = {f"pod-{n}.yaml": MANIFEST.format(number=n) for n in range(pods)}
    results = [
        in_fresh_directory(manifests, lambda directory: start_all(directory, pods))
        for _ in range(runs)
    ]
    best = min(results, key=lambda result: result.took_s)
    remark = f"{pods / best.took_s:.0f} pods/s; {best.virtual_s:.1f} s of kubelet time, {best.seen}"
    return [
        Row(
            what=f"{pods} pods x 2 containers to Running",
            value=best.took_s * 1000,
            unit="ms",
            limit=None,
            remark=remark,
        )
    ]


if __name__ == "__main__":
    for row in rows():
        print(row)
