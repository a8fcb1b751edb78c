"""The real-containerd node: what can be told without Docker, and one pod on the real thing."""

from __future__ import annotations

import asyncio
import io
import json
import os
import socket
import tarfile
from collections.abc import Sequence
from pathlib import Path

import grpc
import pytest
from google.protobuf.message import Message
from kubecri.v1 import api_pb2 as cri
from runtime_calls import container_config, pod_config

from fakecri.server import GrpcUpstream
from kubelet_conformance.harness.containerd.archives import (
    busybox_recipe,
    image_archive,
    pause_recipe,
)
from kubelet_conformance.harness.containerd.cleanup import top_cgroups
from kubelet_conformance.harness.containerd.docker_host import (
    OWNER_LABEL,
    bind_mode,
    bounding_set,
    docker_client,
    docker_problem,
    leftovers,
    owner_mark,
    privileges,
)
from kubelet_conformance.harness.containerd.image import registry_answers
from kubelet_conformance.harness.containerd.settings import NodeSettings, containerd_config
from kubelet_conformance.harness.containerd.start import start_containerd
from kubelet_conformance.harness.containerd.versions import release_of

needs_docker = pytest.mark.skipif(
    os.environ.get("REFKUBELET_CONTAINERD") != "1",
    reason="real containerd: set REFKUBELET_CONTAINERD=1 (needs Docker)",
)

ALL = "CapBnd:\t000001ffffffffff\n"
WITHOUT_SYS_RESOURCE = "CapBnd:\t000001fffeffffff\n"


def test_privileged_is_used_where_the_host_has_every_capability() -> None:
    assert privileges(bounding_set(ALL)) == {"privileged": True}


def test_an_explicit_list_is_used_where_a_capability_is_missing() -> None:
    allowed = bounding_set(WITHOUT_SYS_RESOURCE)
    arguments = privileges(allowed)
    assert "privileged" not in arguments
    assert arguments["cap_drop"] == ["ALL"]
    assert "SYS_RESOURCE" not in arguments["cap_add"]
    assert len(arguments["cap_add"]) == 37


@pytest.mark.parametrize(
    ("root_tag", "inner_tag", "mode"),
    [("", None, "rw"), ("shared:1 ", None, "rw,rslave"), ("", "master:2 ", "rw,rslave")],
)
def test_mounts_are_passed_on_where_the_host_shares_them(
    root_tag: str, inner_tag: str | None, mode: str
) -> None:
    mountinfo = f"21 1 8:1 / / rw {root_tag}- ext4 /dev/sda rw\n"
    if inner_tag is not None:
        mountinfo += f"22 21 8:2 / /data rw {inner_tag}- ext4 /dev/sdb rw\n"
    assert bind_mode(Path("/data/x"), mountinfo) == mode


@pytest.mark.parametrize("restricted", [True, False])
def test_config_restricts_oom_scores_only_where_it_must(restricted: bool) -> None:
    text = containerd_config(NodeSettings(restricted, "/tmp/n/containerd"))
    assert f"restrict_oom_score_adj = {'true' if restricted else 'false'}" in text
    assert 'root = "/tmp/n/containerd"' in text


def test_image_archives_are_the_same_bytes_for_the_same_inputs() -> None:
    def archive() -> bytes:
        recipes = [busybox_recipe(b"ELF", ["sh", "cat"], "localhost/busybox:1")]
        return image_archive([*recipes, pause_recipe(b"ELF", "localhost/pause:1")], "amd64")

    assert archive() == archive()
    with tarfile.open(fileobj=io.BytesIO(archive())) as tar:
        manifest = json.load(tar.extractfile("manifest.json") or io.BytesIO())
        names = set(tar.getnames())
    assert [entry["RepoTags"] for entry in manifest] == [
        ["localhost/busybox:1"],
        ["localhost/pause:1"],
    ]
    assert all(entry["Config"] in names for entry in manifest)


def test_tags_of_busybox_are_different_images() -> None:
    one, two = (
        image_archive([busybox_recipe(b"ELF", [], tag)], "amd64") for tag in ("x/b:1", "x/b:2")
    )
    assert one != two


def test_owner_mark_tells_a_living_process_from_a_dead_one() -> None:
    assert owner_mark() == owner_mark(os.getpid())
    assert owner_mark(2**22 + 1) is None


def test_only_containers_of_dead_owners_are_leftovers() -> None:
    class Container:
        def __init__(self, mark: str) -> None:
            self.labels = {OWNER_LABEL: mark}

    class Client:
        def __init__(self, *marks: str) -> None:
            self.containers = self
            self._found = [Container(mark) for mark in marks]

        def list(self, **_: object) -> Sequence[Container]:
            return self._found

    client = Client(owner_mark() or "", f"{os.getpid()}.1", "x")
    assert [c.labels[OWNER_LABEL] for c in leftovers(client)] == [f"{os.getpid()}.1", "x"]


def test_only_new_cgroups_of_the_top_are_cleaned_up(tmp_path: Path) -> None:
    for name in ("memory/docker", "memory/kubepods/pod1", "cpu/docker"):
        (tmp_path / name).mkdir(parents=True)
    before = top_cgroups(tmp_path)
    assert before == {tmp_path / n for n in ("memory/docker", "memory/kubepods", "cpu/docker")}
    (tmp_path / "memory/other/pod2").mkdir(parents=True)
    assert top_cgroups(tmp_path) - before == {tmp_path / "memory/other"}
    (tmp_path / "cgroup.controllers").touch()  # version 2: one hierarchy
    assert top_cgroups(tmp_path) == {tmp_path / "memory", tmp_path / "cpu"}


def test_docker_problem_is_one_line_that_says_what_to_start(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pytest.importorskip("testcontainers")
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    problem = docker_problem()
    assert problem is not None
    assert "\n" not in problem
    assert problem.startswith(
        f"Docker does not answer at unix://{tmp_path}/none.sock (no such file)"
    )
    assert "start it" in problem


def test_an_unreachable_registry_is_noticed() -> None:
    class Client:
        def __init__(self, **info: object) -> None:
            self._info = info

        def info(self) -> dict[str, object]:
            return self._info

    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))  # and does not listen
        address = f"https://127.0.0.1:{silent.getsockname()[1]}/v1/"
        assert not registry_answers(Client(IndexServerAddress=address))
    assert registry_answers(Client(HttpsProxy="http://proxy:3128"))


@needs_docker
@pytest.mark.real
@pytest.mark.timeout(900)
async def test_a_pod_runs_on_real_containerd(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Run, create, start, exec, logs, kill, restart of containerd, stop, remove; nothing stays."""
    assert docker_problem() is None
    async with start_containerd(tmp_path_factory.mktemp("n"), report=print) as node:
        assert release_of().is_version(node.version)
        async with GrpcUpstream(node.endpoint) as runtime:
            pod = _Pod(runtime, node.log_root / "default_p_u1")
            sandbox = await pod.run_sandbox()
            first = await pod.start_container(sandbox, "echo hello; exec sleep 1000", attempt=0)
            executed = await pod.call(
                "ExecSync",
                cri.ExecSyncRequest(container_id=first, cmd=["sh", "-c", "echo $IMAGE; exit 4"]),
            )
            assert isinstance(executed, cri.ExecSyncResponse)
            assert (executed.exit_code, executed.stdout) == (4, b"localhost/busybox:1\n")
            assert await pod.log_line("c/0.log") == "stdout F hello"

            await node.restart_containerd()
            assert (await pod.status(first)).state == cri.CONTAINER_RUNNING  # CRI-160
            node.kill(first)
            assert (await pod.exited(first)).exit_code == 137

            second = await pod.start_container(sandbox, "exit 3", attempt=1)
            assert (await pod.exited(second)).exit_code == 3
            await pod.call("StopPodSandbox", cri.StopPodSandboxRequest(pod_sandbox_id=sandbox))
            await pod.call("RemovePodSandbox", cri.RemovePodSandboxRequest(pod_sandbox_id=sandbox))
            with pytest.raises(grpc.RpcError) as failure:
                await pod.status(first)
            assert failure.value.code() is grpc.StatusCode.NOT_FOUND
    client = docker_client()
    mine = client.containers.list(all=True, filters={"label": f"{OWNER_LABEL}={owner_mark()}"})
    client.close()
    assert mine == []


class _Pod:
    """One pod's calls, with the arguments that never change filled in."""

    def __init__(self, runtime: GrpcUpstream, log_directory: Path) -> None:
        self._runtime = runtime
        self._logs = log_directory
        self._sandbox_config = pod_config(
            "p",
            log_directory=str(log_directory),
            linux=cri.LinuxPodSandboxConfig(cgroup_parent="/refkubelet-fixture"),
        )

    async def call(self, method: str, request: Message) -> Message:
        return await self._runtime.call(method, request, timeout_s=30)

    async def run_sandbox(self) -> str:
        request = cri.RunPodSandboxRequest(config=self._sandbox_config)
        answer = await self.call("RunPodSandbox", request)
        assert isinstance(answer, cri.RunPodSandboxResponse)
        return answer.pod_sandbox_id

    async def start_container(self, sandbox: str, script: str, *, attempt: int) -> str:
        config = container_config(
            "c", attempt, command=["sh", "-c", script], log_path=f"c/{attempt}.log"
        )
        created = await self.call(
            "CreateContainer",
            cri.CreateContainerRequest(
                pod_sandbox_id=sandbox, config=config, sandbox_config=self._sandbox_config
            ),
        )
        assert isinstance(created, cri.CreateContainerResponse)
        request = cri.StartContainerRequest(container_id=created.container_id)
        await self.call("StartContainer", request)
        return created.container_id

    async def status(self, container: str) -> cri.ContainerStatus:
        request = cri.ContainerStatusRequest(container_id=container)
        answer = await self.call("ContainerStatus", request)
        assert isinstance(answer, cri.ContainerStatusResponse)
        return answer.status

    async def exited(self, container: str) -> cri.ContainerStatus:
        async with asyncio.timeout(200):
            while True:
                status = await self.status(container)
                if status.state == cri.CONTAINER_EXITED:
                    return status
                await asyncio.sleep(0.05)

    async def log_line(self, name: str) -> str:
        async with asyncio.timeout(200):
            while True:
                text = (self._logs / name).read_text()
                if text:
                    return text.partition(" ")[2].strip()
                await asyncio.sleep(0.05)
