"""No circle of imports, those for types included; the faces of packages; what a fake leaves out."""

from __future__ import annotations

import subprocess
import sys

import pytest
from import_graph import (
    faces,
    imported_modules,
    imports_of,
    in_circles,
    of_folders,
    source_files,
)
from test_architecture import PACKAGES

FAKESH = "fakecri.fakesh"
# What the fake shell uses of fakecri, beside itself.
UNDER_FAKESH = "fakecri.process."
RUN_A_POD = """
import asyncio, sys
from fakecri import FakeCRI, prints, replies
from kubecri.v1 import api_pb2 as cri

async def run():
    fake = FakeCRI()
    fake.behaves(prints("ready"), replies("probe"))
    pod = cri.PodSandboxConfig(metadata=cri.PodSandboxMetadata(name="shop", uid="u1"))
    web = cri.ContainerConfig(metadata=cri.ContainerMetadata(name="web"))
    web.image.image = (await fake.call("PullImage", cri.PullImageRequest(
        image=cri.ImageSpec(image="localhost/busybox:1")))).image_ref
    sandbox = await fake.call("RunPodSandbox", cri.RunPodSandboxRequest(config=pod))
    made = await fake.call("CreateContainer", cri.CreateContainerRequest(
        pod_sandbox_id=sandbox.pod_sandbox_id, config=web, sandbox_config=pod))
    one = made.container_id
    await fake.call("StartContainer", cri.StartContainerRequest(container_id=one))
    answer = await fake.call("ExecSync", cri.ExecSyncRequest(container_id=one, cmd=["{command}"]))
    assert answer.exit_code == 0
    await fake.call("StopContainer", cri.StopContainerRequest(container_id=one))
    await fake.call("RemovePodSandbox", cri.RemovePodSandboxRequest(
        pod_sandbox_id=sandbox.pod_sandbox_id))

asyncio.run(run())
print(*sys.modules)
"""

COUNT_OURS = f"""
import dataclasses, sys

exec(sys.argv[1])
ours = [m for name, m in sys.modules.items() if name.partition(".")[0] in {PACKAGES!r}]
kinds = {{k for m in ours for k in vars(m).values() if isinstance(k, type)}}
made = [k for k in kinds if "__dataclass_fields__" in vars(k) and sys.modules[k.__module__] in ours]
print(len(made), len(ours))
"""


@pytest.mark.parametrize("package", [name for name in PACKAGES if name != "kubecri"])
def test_no_modules_and_no_folders_import_in_a_circle(package: str) -> None:
    """Imports inside functions count, and those for types alone."""
    imports = imports_of(package)
    assert in_circles(imports) == []
    folders = of_folders(imports)
    assert in_circles({name: others - {package} for name, others in folders.items()}) == []


@pytest.mark.parametrize(
    "package", ["fakecri", "fakekubeapi", "kubenodes", "kubeobjects", "simclock.timewarp"]
)
def test_a_face_imports_the_names_that_types_see(package: str) -> None:
    there = faces(package)
    assert there
    assert {name for name, (typed, imported) in there.items() if typed != imported} == set()


def _modules_after(script: str) -> set[str]:
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(run.stdout.split())


def test_a_fake_is_made_without_what_lies_behind_faces() -> None:
    inner = {name: face for name, face in faces("fakecri").items() if name != "fakecri"}
    behind = {home for _, imported in inner.values() for home, _ in imported}
    loaded = _modules_after(
        "import sys; from fakecri import FakeCRI; FakeCRI(); print(*sys.modules)"
    )
    assert "fakecri.fake" in loaded
    assert behind & loaded == set()


@pytest.mark.parametrize(
    ("script", "most", "most_modules"),
    [
        ("from fakecri import FakeCRI; FakeCRI()", 23, 130),
        ("from fakekubeapi import FakeApi; FakeApi()", 18, 138),
        ("import refkubelet.kubelet", 42, 570),
        ("import kubelet_conformance.harness.runs.virtual", 108, 911),
    ],
)
def test_few_classes_are_made_by_running_source(script: str, most: int, most_modules: int) -> None:
    """Python 3.11 compiles up to six methods for each dataclass when it is imported; a struct
    of msgspec takes a twentieth of that. Records that cannot change are structs."""
    run = subprocess.run(
        [sys.executable, "-c", COUNT_OURS, script],
        capture_output=True,
        text=True,
        check=True,
    )
    dataclasses, modules = map(int, run.stdout.split())
    assert 0 < dataclasses <= most
    assert modules <= most_modules


def test_a_fake_is_made_without_the_doubles_of_tests() -> None:
    assert "unittest.mock" not in _modules_after(
        "import sys; from fakecri import FakeCRI; FakeCRI(); print(*sys.modules)"
    )


def test_an_api_server_is_made_without_what_only_pods_and_yaml_need() -> None:
    loaded = _modules_after(
        "import sys; from fakekubeapi import FakeApi; FakeApi(); print(*sys.modules)"
    )
    assert "fakekubeapi.resources.pods.pods" in loaded
    behind = {"yaml", "kubeobjects.yaml.nodes", "kubeobjects.pods.validation"}
    assert behind & loaded == set()


def test_the_fake_shell_knows_nothing_of_fakecri_but_what_a_process_is() -> None:
    files = dict(source_files("fakecri"))
    wrong = [
        f"{name} imports {other}"
        for name, path in files.items()
        if name.startswith(FAKESH)
        for other in sorted(imported_modules(path, files.keys()))
        if not other.startswith((f"{FAKESH}.", UNDER_FAKESH))
    ]
    assert wrong == []


@pytest.mark.parametrize("package", ["fakecri", "conformance"])
def test_the_fake_shell_is_reached_through_its_face_alone(package: str) -> None:
    inside = {name for name, _ in source_files("fakecri") if name.startswith(f"{FAKESH}.")}
    wrong = [
        f"{name} imports {other}"
        for name, path in source_files(package)
        if not name.startswith(FAKESH)
        for other in sorted(imported_modules(path, inside))
    ]
    assert wrong == []


@pytest.mark.parametrize(("command", "loaded"), [("probe", False), ("true", True)])
def test_a_fake_that_runs_no_program_never_loads_the_shell(command: str, loaded: bool) -> None:
    """Pods run, print and answer probes without it; the first command that is no reply loads it."""
    modules = _modules_after(RUN_A_POD.replace("{command}", command))
    assert any(name.startswith(f"{FAKESH}.") for name in modules) is loaded
