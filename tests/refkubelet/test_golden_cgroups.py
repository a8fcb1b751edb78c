"""The cgroups of s19 on the fake kernel are those that the recorded kubelet made, value by value.

Compared are all groups below /kubepods at three moments: CPU, limits, CPU sets and the scores of
processes; what they use is their own.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from golden_recording import Recording
from node_world import Node, running_node

from refkubelet.model.pod import uid

pytestmark = pytest.mark.virtual_time

FILES: Final = {
    "cpu": ("cpu.shares", "cpu.cfs_quota_us", "cpu.cfs_period_us"),
    "memory": ("memory.limit_in_bytes", "memory.soft_limit_in_bytes"),
    "pids": ("pids.max",),
    "cpuset": ("cpuset.cpus", "cpuset.mems"),
}
MEMORY_BYTES: Final = 25_276_510_208

Groups = dict[str, str]
"""`controller path` -> its values, in one line."""


def recorded(recording: Recording) -> list[Groups]:
    """The groups at each moment; pods go by name."""
    names = {
        row["uid"]: row["pod"].partition("/")[2]
        for row in recording.rows("pods.jsonl")
        if "pod" in row
    }
    moments: list[Groups] = []
    controller = ""
    for line in recording.text("cgroups.txt").splitlines():
        path, _, values = line.partition("  ")
        if line.startswith("# "):
            moments.append({})
        elif line.startswith("=="):
            controller = line.rpartition(" ")[2]
        elif path.startswith("/"):
            path = re.sub(r"/pod([\w-]+)", lambda found: f"/{names[found[1]]}", path)
            wanted = (pair for pair in values.split() if pair.split("=")[0] in FILES[controller])
            moments[-1][f"{controller} {path}"] = " ".join(wanted)
    return moments


def seen(node: Node, names: dict[str, str]) -> Groups:
    """The groups now; `names`: directory -> what the recording calls it."""
    found: Groups = {}

    def look(controller: str, directory: Any, path: str) -> None:
        values = (f"{f}={(directory / f).read_text().strip()}" for f in FILES[controller])
        found[f"{controller} {path}"] = " ".join(values)
        for child in directory.iterdir():
            if child.is_dir():
                look(controller, child, f"{path}/{names.get(child.name, child.name)}")

    for controller in FILES:
        top = node.cri.node.cgroup_root() / controller / "kubepods"
        look(controller, top, "/kubepods")
    return found


def known_names(node: Node) -> dict[str, str]:
    """Directories of pods, sandboxes and containers, as the recording calls them."""
    names = {f"pod{uid(pod)}": pod.metadata.name or "" for pod in node.shown() if pod.metadata}
    sandboxes = {}
    for call in node.cri.calls("RunPodSandbox"):
        meta = call.request.config.metadata
        sandboxes[call.response.pod_sandbox_id] = meta.name
        names[call.response.pod_sandbox_id] = f"sandbox:{meta.name}/{meta.attempt}"
    for call in node.cri.calls("CreateContainer"):
        meta, pod = call.request.config.metadata, sandboxes[call.request.pod_sandbox_id]
        names[call.response.container_id] = f"ctr:{pod}/{meta.name}/{meta.attempt}"
    return names


@pytest.mark.parametrize("name", ["s19", "s19/api"])
async def test_the_cgroups_of_the_three_classes_CG_024_CG_029_CG_036(
    name: str, tmp_path: Path
) -> None:
    recording = Recording(name)
    moments = recorded(recording)
    assert [len(groups) for groups in moments] == [72, 44, 12]

    async with running_node(tmp_path, api=recording.has_api, started=False) as node:
        machine = node.cri.node
        machine.cgroups_version, machine.cpus = 1, 2
        machine.memory_bytes, machine.pid_limit = MEMORY_BYTES, 32_768
        await node.start()
        for file, texts in recording.manifests().items():
            if recording.has_api:
                await node.create(yaml.safe_load(texts[0]))
            else:
                (node.paths.manifests / file).write_text(texts[0])
        await node.clock.sleep(16)
        names = known_names(node)
        assert seen(node, names) == moments[0]
        for gone, groups in ((("be", "bu"), moments[1]), (("bu2", "gu"), moments[2])):
            for pod in gone:
                if recording.has_api:
                    await node.delete(pod)
                else:
                    node.remove(f"{pod}.yaml")
            await node.clock.sleep(8)
            assert seen(node, names) == groups
