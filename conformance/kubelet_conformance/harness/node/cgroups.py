"""`node.cgroups`: the node's cgroups (Feature.CGROUPS): the same questions for cgroup v1 and v2,
either driver, the fake kernel and the real one.

A group is named by its words below the kubelet's cgroupRoot, whatever the driver makes of them:
`node.cgroups.cpu_shares("kubepods", "burstable")`; no words mean the cgroupRoot itself. Every
question reads the kernel's files anew.
"""

from __future__ import annotations

from typing import Final, Literal

from kubelet_conformance.harness.machines.cgroup_trees import CgroupTrees, remove_group
from kubelet_conformance.harness.machines.idle_processes import IdleProcess
from kubelet_conformance.harness.node.watch import Watch
from kubelet_conformance.harness.observing.looked import looked_at

KUBEPODS: Final = "kubepods"
UNLIMITED_V1: Final = 1 << 62
"""Memory limits from here on mean no limit: v1 prints the greatest number of pages."""


class NodeCgroups:
    """The cgroups of the node. Limits are None where the kernel has none.

    Everything raises OSError as the kernel does, for a group that is not there FileNotFoundError.
    """

    facet: Final = "cgroups."

    def __init__(self, trees: CgroupTrees, watch: Watch) -> None:
        self._trees = trees
        self._watch = watch

    @property
    def version(self) -> Literal[1, 2]:
        """The cgroup version of the machine."""
        return self._trees.version

    def of_pod(self, name: str) -> tuple[str, ...]:
        """The words of the pod's group, by its QoS class and UID in `/pods`. Raises
        ExpectationFailed while the pod is not listed there."""
        pod = self._watch.listed_pod(name)
        qos = str(pod["status"].get("qosClass", ""))
        above = () if qos == "Guaranteed" else (qos.lower(),)
        return (KUBEPODS, *above, f"pod{pod['metadata']['uid']}")

    def path(self, *words: str) -> str:
        """The group's path below a mount of cgroups, as the driver writes it; RunPodSandbox gets
        that of the pod's group."""
        return self._trees.path(*words)

    @looked_at
    def exists(self, *words: str) -> bool:
        """Whether the group is in every tree but that of the devices, which kubelets leave to the
        runtime (CG-044)."""
        trees = [tree for tree in self._trees.all() if tree.name != "devices"]
        return all((tree / self.path(*words)[1:]).exists() for tree in trees)

    @looked_at
    def is_gone(self, *words: str) -> bool:
        """Whether the group is in no tree."""
        return not any((tree / self.path(*words)[1:]).exists() for tree in self._trees.all())

    @looked_at
    def children(self, *words: str) -> list[str]:
        """The names of the groups directly below, in the memory tree."""
        directory = self._trees.directory("memory", *words)
        return sorted(child.name for child in directory.iterdir() if child.is_dir())

    # --- changes behind the kubelet's back ------------------------------------------------

    def make(self, *words: str) -> None:
        """Make the group in every tree."""
        for tree in self._trees.all():
            (tree / self.path(*words)[1:]).mkdir(parents=True)

    def remove(self, *words: str, tree: str = "") -> None:
        """Remove the group and those below it; with v1 only from the tree of that controller if one
        is named. Its processes move to the cgroupRoot (v1) or to the top, since with v2 a group
        with groups below it may hold no process."""
        version_1 = self.version == 1
        for top in [self._trees.tree(tree)] if tree and version_1 else self._trees.all():
            refuge = top / self.path()[1:] if version_1 else top
            remove_group(top / self.path(*words)[1:], refuge)

    def start_process(self, *words: str) -> IdleProcess:
        """Start a process that does nothing in that group: with v1 in the memory tree alone. It
        ends with the case at the latest."""
        process = self._trees.start_process()
        self.write("memory", "cgroup.procs", process.pid, *words)
        return process

    def write(self, controller: str, file: str, text: str, *words: str) -> None:
        """Write a file of the group."""
        (self._trees.directory(controller, *words) / file).write_text(text)

    def fill_cache(self, cache_bytes: int, *words: str) -> None:
        """Charge the group for so much page cache that nobody uses, as after files were read; on a
        fake machine only (Feature.NODE_RESOURCES)."""
        self._trees.directory("memory", *words).set_usage(cache_bytes=cache_bytes)

    # --- what the files say ---------------------------------------------------------------

    @looked_at
    def read(self, controller: str, file: str, *words: str) -> str:
        """The text of a file of the group; `controller` names the tree of v1."""
        return str((self._trees.directory(controller, *words) / file).read_text())

    @looked_at
    def cpu_shares(self, *words: str) -> int:
        """The CPU shares; v1 only."""
        return int(self.read("cpu", "cpu.shares", *words))

    @looked_at
    def cpu_weight(self, *words: str) -> int:
        """The CPU weight; v2 only."""
        return int(self.read("cpu", "cpu.weight", *words))

    @looked_at
    def cpu(self, *words: str) -> int:
        """The CPU shares with v1, the CPU weight with v2."""
        return self.cpu_shares(*words) if self.version == 1 else self.cpu_weight(*words)

    @looked_at
    def cpu_quota_us(self, *words: str) -> int | None:
        """The CPU quota per period, in microseconds."""
        if self.version == 1:
            quota = int(self.read("cpu", "cpu.cfs_quota_us", *words))
            return None if quota < 0 else quota
        text = self.read("cpu", "cpu.max", *words).split()[0]
        return None if text == "max" else int(text)

    @looked_at
    def cpu_period_us(self, *words: str) -> int:
        """The period of the CPU quota, in microseconds."""
        if self.version == 1:
            return int(self.read("cpu", "cpu.cfs_period_us", *words))
        return int(self.read("cpu", "cpu.max", *words).split()[1])

    @looked_at
    def memory_limit_bytes(self, *words: str) -> int | None:
        """The memory limit, in bytes."""
        if self.version == 1:
            limit = int(self.read("memory", "memory.limit_in_bytes", *words))
            return None if limit >= UNLIMITED_V1 else limit
        return _number(self.read("memory", "memory.max", *words))

    @looked_at
    def memory_usage_bytes(self, *words: str) -> int:
        """The memory in use, in bytes, page cache included."""
        file = "memory.usage_in_bytes" if self.version == 1 else "memory.current"
        return int(self.read("memory", file, *words))

    @looked_at
    def pids_limit(self, *words: str) -> int | None:
        """The greatest number of processes and threads."""
        return _number(self.read("pids", "pids.max", *words))

    @looked_at
    def pids(self, *words: str) -> int:
        """The number of processes and threads, with those of the groups below."""
        return int(self.read("pids", "pids.current", *words))

    @looked_at
    def hugepages_bytes(self, size: str, *words: str) -> int | None:
        """The limit of huge pages of that size (`2MB`), in bytes. Raises ValueError when the limit
        of reservations is another."""
        suffix = "limit_in_bytes" if self.version == 1 else "max"
        limit, reserved = (
            _number(self.read("hugetlb", f"hugetlb.{size}.{kind}{suffix}", *words))
            for kind in ("", "rsvd.")
        )
        if limit != reserved:
            raise ValueError(f"hugetlb.{size}: limit {limit}, of reservations {reserved}")
        return limit

    @looked_at
    def cpus(self, *words: str) -> str:
        """The CPUs of the cpuset, as the kernel lists them (`0-2,7`)."""
        return self.read("cpuset", "cpuset.cpus", *words).strip()


def _number(text: str) -> int | None:
    return None if text.strip() == "max" else int(text)
