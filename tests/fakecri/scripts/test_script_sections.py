"""What a script says of the runtime and its node, and what counts before it."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from kubecri.v1 import api_pb2 as cri

import fakecri
from fakecri import FakeCRI, FakeNode, Options
from fakecri.scripts.script import ScriptError, load_script
from fakecri.serving.cli_arguments import parser
from fakecri.serving.fake_arguments import made_of

WHOLE = """\
runtime:
  name: containerd
  version: v2
  handlers: [gvisor]
  cgroup_driver: systemd
  sandbox_image: mine:1
  keep_events: 5m
  pod_network: "10.9"
  logs: false
  host_mounts: false
  keep_calls: 7
node:
  memory: 1Gi
  memory_used: 64Mi
  layout: {sockets: 2, cores: 3}
  disk: 5Gi
  disk_used: 1Gi
  swap: 2Gi
  pid_limit: 99
  pids_used: 9
  address: 192.0.2.7
  cgroup_version: 1
  image_root: /
  container_root: /c
images: [mine:1, mine:2]
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    file = tmp_path / "script.yaml"
    file.write_text(WHOLE)
    return file


def facts(fake: FakeCRI) -> dict[str, Any]:
    node = fake.node
    disk = node.filesystems["/"]
    return {
        "name": fake.core.setup.identity.name,
        "images": sorted(tag for image in fake.images.images.values() for tag in image.tags),
        "memory": (node.memory_bytes, node.base_memory_used_bytes, node.swap_total_bytes),
        "disk": (disk.capacity_bytes, disk.base_used_bytes),
        "cpus": node.cpu_count(),
        "pids": (node.pid_limit, node.base_pids),
        "places": (node.address, node.image_root, node.container_root),
        "cgroups": node.cgroup_version(),
    }


GIB = 1 << 30
SAID = {
    "name": "containerd",
    "images": ["docker.io/library/mine:1", "docker.io/library/mine:2"],
    "memory": (GIB, GIB // 16, 2 * GIB),
    "disk": (5 * GIB, GIB),
    "cpus": 6,
    "pids": (99, 9),
    "places": ("192.0.2.7", "/", "/c"),
    "cgroups": 1,
}


async def test_a_fake_is_as_its_script_says(script: Path) -> None:
    fake = FakeCRI(script=script)
    assert facts(fake) == SAID
    config = await fake.call("RuntimeConfig", cri.RuntimeConfigRequest())
    assert config.linux.cgroup_driver == cri.SYSTEMD
    pinned = [image.tags for image in fake.images.images.values() if image.pinned]
    assert pinned == [("docker.io/library/mine:1",)]
    status = await fake.call("Status", cri.StatusRequest())
    assert [handler.name for handler in status.runtime_handlers] == ["", "gvisor"]
    for _ in range(9):
        version = await fake.call("Version", cri.VersionRequest())
    assert (version.runtime_name, version.runtime_version) == ("containerd", "v2")
    assert fake.count() == 7  # keep_calls
    sandbox = cri.PodSandboxConfig(metadata=cri.PodSandboxMetadata(name="a", uid="u"))
    await fake.call("RunPodSandbox", cri.RunPodSandboxRequest(config=sandbox))
    assert fake.sandboxes()[0].ip.startswith("10.9.")


async def test_a_reset_brings_back_what_the_script_says(script: Path) -> None:
    fake = FakeCRI(script=script)
    fake.node.memory_bytes = 5
    fake.node.filesystems["/"].capacity_bytes = 5
    fake.images.add("other:1")
    script.unlink()  # what counts is how the fake was made
    await fake.reset()
    assert facts(fake) == SAID


def test_arguments_count_before_the_script(script: Path) -> None:
    fake = FakeCRI(script=script, runtime_name="fakecri", images=["b:1"], node=FakeNode(cpus=9))
    found = facts(fake)
    assert (found["name"], found["cpus"], found["memory"][0]) == ("fakecri", 9, 8 * GIB)
    assert found["images"] == ["docker.io/library/b:1"]
    by_options = FakeCRI(options=Options(script=script, runtime_version="v9"))
    identity = by_options.core.setup.identity
    assert (identity.name, identity.version_of()) == ("containerd", "v9")


async def test_a_registry_that_is_given_counts_before_the_script(tmp_path: Path) -> None:
    (file := tmp_path / "script.yaml").write_text("registry: {a:1: {missing: true}}")
    mine = fakecri.registry_of(["a:1"])
    fake = FakeCRI(script=file, registry=mine)
    assert fake.images.registry is mine
    await fake.reset()
    assert fake.images.registry is mine
    assert FakeCRI(script=file).images.registry("docker.io/library/a:1") is None


def switches(*words: str) -> argparse.Namespace:
    return parser().parse_args(["serve", "--listen", "unix:///x", *words])


def test_switches_count_before_the_script(script: Path) -> None:
    given = ("--script", str(script), "--runtime-name", "fakecri", "--memory", "8Gi")
    more = ("--cgroup-version", "2", "--disk", "7Gi", "--keep-events", "1m", "--no-logs")
    node, options = made_of(switches(*given, *more))
    assert (node.memory_bytes, node.cgroups_version, node.swap_total_bytes) == (8 * GIB, 2, 2 * GIB)
    disk = node.filesystems["/"]
    assert (disk.capacity_bytes, disk.base_used_bytes) == (7 * GIB, GIB)
    assert options["runtime_name"] == "fakecri"
    assert (options["keep_events_s"], options["cgroup_driver"]) == (60.0, "systemd")
    assert facts(FakeCRI(node=node, **options))["name"] == "fakecri"


def test_a_served_fake_has_its_defaults_where_nothing_is_said(script: Path) -> None:
    node, options = made_of(switches())
    assert node.image_root == "/"
    assert options == {"write_logs": True, "host_mounts": True}
    _, options = made_of(switches("--script", str(script)))
    assert (options["write_logs"], options["host_mounts"]) == (False, False)


def test_a_fake_in_the_background_takes_it_too(script: Path) -> None:
    with fakecri.serve(script=script) as fake:
        assert fake.node.memory_bytes == GIB
        fake.node.memory_bytes = 5
        fake.reset()
        assert fake.node.memory_bytes == GIB


def test_it_is_too_late_for_a_fake_that_runs() -> None:
    with fakecri.serve() as fake, pytest.raises(Exception, match="counts only when a fake is made"):
        fake.ctl().request("POST", "/v1/rules", {"node": {"memory": 5}})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("runtime: {pod_network: nonsense}", ":1:24: runtime.pod_network: wanted a range such as"),
        ("runtime: {cgroup_driver: cgroup}", "got the text 'cgroup'; did you mean cgroupfs?"),
        ("runtime: {keep_events: -1}", ":1:24: runtime.keep_events: wanted seconds from 0"),
        ("node: {memory: 1Gb}", ":1:16: node.memory: wanted bytes: 4096, 64Mi, 1Gi, ...; got"),
        ("node: {cpus: 2, layout: {}}", ":1:14: node.cpus: wanted cpus or layout, got both"),
        ("node: {address: here}", ":1:17: node.address: wanted an IP address, got 'here'"),
        ("node: {cgroup_version: 3}", "node.cgroup_version: wanted one of 1, 2, got the number 3"),
        ("node: {layout: {cores: 3, nodes_per_socket: 2}}", ":1:7: node: "),
    ],
)
def test_mistakes_in_the_sections(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "s.yaml").write_text(text)
    with pytest.raises(ScriptError) as failure:
        load_script(tmp_path / "s.yaml")
    assert message in str(failure.value)


def test_a_fake_without_a_script_needs_no_yaml() -> None:
    code = "import fakecri.control.ctl; from fakecri import FakeCRI; FakeCRI(); import sys; "
    code += "print([name for name in ('yaml', 'kubeobjects.yaml') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
