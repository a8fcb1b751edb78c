"""A runtime under the contract: the fake or a real containerd, with the calls every test needs."""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import pytest
import pytest_asyncio
from google.protobuf.message import Message
from kubecri.v1 import api_pb2 as cri
from runtime_calls import IMAGE, container_config, pod_config

from fakecri.core.image_store.images import RegistryImage
from kubelet_conformance.harness.containerd.settings import APP_IMAGE
from results import Results

APP = RegistryImage(
    users=("app:x:1000:1000:app:/data:/bin/sh",),
    groups=("app:x:1000:", "extra:x:50000:app", "more:x:50001:nobody,app"),
    paths=("data/empty", "data/deep/none"),
)
"""The image `kubelet_conformance.harness.containerd.archives.app_recipe` makes, for the fake."""


@dataclass(frozen=True)
class Program:
    """What a container does: a shell script for the real thing, behaviours for the fake. A script
    that sets traps prints a line when they are set, which is a while after its start."""

    script: str
    plays: Callable[[Any], tuple[Any, ...]] = lambda fake: ()


RUNS = Program("exec sleep 1000")

IDLE = Program("exec sleep 1000", lambda fake: (fake.runs(),))
"""It does nothing, but its container has a shell and programs, in the fake, too."""


def lost_init(failure: grpc.RpcError) -> bool:
    """Whether runc's helper process died before it became the process that was asked for.

    It happens about once in many thousand execs on a busy host (seen with runc 1.1 under
    containerd 1.7). Nothing of the command has run then, so asking again is safe; a command that
    runc always refuses is refused the second time as well.
    """
    return "waiting for init preliminary setup" in str(failure.details())


@dataclass
class Runtime:
    """One runtime under test, with the calls every test needs."""

    target: Any
    log_root: Path
    fake: Any = None
    """The FakeCRI, to program it; None: this is a real runtime, containers really run."""
    version: str = ""
    node: Any = None
    """The ContainerdNode of a real runtime."""
    _numbers: Any = field(default_factory=itertools.count)

    async def call(self, method: str, request: Message) -> Any:
        """The answer; a real runtime is asked again where runc lost its own init (`lost_init`)."""
        try:
            return await self.target.call(method, request, timeout_s=30)
        except grpc.RpcError as failure:
            if self.fake is not None or not lost_init(failure):
                raise
            return await self.target.call(method, request, timeout_s=30)

    def pod(self, name: str | None = None, *, attempt: int = 0) -> cri.PodSandboxConfig:
        name = name or f"pod{next(self._numbers)}"
        return pod_config(
            name,
            attempt,
            log_directory=str(self.log_root / name),
            labels={"io.kubernetes.pod.uid": f"uid-{name}"},
            linux=cri.LinuxPodSandboxConfig(
                cgroup_parent=f"/refkubelet-contract/{name}",
                security_context=cri.LinuxSandboxSecurityContext(
                    namespace_options=cri.NamespaceOption(pid=cri.CONTAINER)
                ),
            ),
        )

    async def run_sandbox(self, config: cri.PodSandboxConfig) -> str:
        answer = await self.call("RunPodSandbox", cri.RunPodSandboxRequest(config=config))
        return str(answer.pod_sandbox_id)

    async def create(
        self,
        sandbox: str,
        config: cri.PodSandboxConfig,
        program: Program = RUNS,
        *,
        attempt: int = 0,
        **changes: Any,
    ) -> str:
        if self.fake is not None:
            self._program_fake(config.metadata.name, program)
        container = container_config(
            "c",
            attempt,
            command=["sh", "-c", program.script],
            log_path=f"c/{attempt}.log",
            linux=cri.LinuxContainerConfig(
                security_context=cri.LinuxContainerSecurityContext(
                    namespace_options=cri.NamespaceOption(pid=cri.CONTAINER)
                )
            ),
        )
        for name, value in changes.items():
            container.ClearField(name)
            container.MergeFrom(cri.ContainerConfig(**{name: value}))
        answer = await self.call(
            "CreateContainer",
            cri.CreateContainerRequest(
                pod_sandbox_id=sandbox, config=container, sandbox_config=config
            ),
        )
        return str(answer.container_id)

    def _program_fake(self, pod: str, program: Program) -> None:
        plays = program.plays(_behaviours())
        if plays:
            self.fake.behaves(*plays, pod=pod)

    async def start(self, container: str) -> None:
        await self.call("StartContainer", cri.StartContainerRequest(container_id=container))

    async def running(self, program: Program = RUNS) -> tuple[str, str]:
        """Ids of a new sandbox and of a started container in it."""
        config = self.pod()
        sandbox = await self.run_sandbox(config)
        container = await self.create(sandbox, config, program)
        await self.start(container)
        if self.fake is None and "trap" in program.script:
            await self.until_printed(container)
        return sandbox, container

    async def until_printed(self, container: str, count: int = 1) -> list[str]:
        """Wait until the container has printed so many lines; all lines of its log."""
        log = Path((await self.status(container)).log_path)
        async with asyncio.timeout(20):
            while len(lines := log.read_text().splitlines()) < count:  # noqa: ASYNC110 - no call tells
                await asyncio.sleep(0.05)
        return lines

    async def stop(self, container: str, timeout_s: int = 0) -> None:
        await self.call(
            "StopContainer", cri.StopContainerRequest(container_id=container, timeout=timeout_s)
        )

    async def status(self, container: str) -> cri.ContainerStatus:
        request = cri.ContainerStatusRequest(container_id=container)
        status = (await self.call("ContainerStatus", request)).status
        assert isinstance(status, cri.ContainerStatus)
        return status

    async def sandbox_status(self, sandbox: str) -> cri.PodSandboxStatus:
        request = cri.PodSandboxStatusRequest(pod_sandbox_id=sandbox)
        status = (await self.call("PodSandboxStatus", request)).status
        assert isinstance(status, cri.PodSandboxStatus)
        return status

    async def listed_sandbox(self, sandbox: str) -> cri.PodSandbox:
        wanted = cri.ListPodSandboxRequest(filter=cri.PodSandboxFilter(id=sandbox))
        (item,) = (await self.call("ListPodSandbox", wanted)).items
        assert isinstance(item, cri.PodSandbox)
        return item

    async def exited(self, container: str) -> cri.ContainerStatus:
        async with asyncio.timeout(20):
            while True:
                status = await self.status(container)
                if status.state == cri.CONTAINER_EXITED:
                    return status
                await asyncio.sleep(0.02)

    async def refused(self, method: str, request: Message) -> tuple[str, str]:
        """Code and text of a call that must fail."""
        with pytest.raises(grpc.RpcError) as failure:
            await self.call(method, request)
        return failure.value.code().name, failure.value.details()


def containerd_since(runtime: Runtime, version: str, what: str) -> None:
    """Skip the test on a containerd that is older than `version`, as `1.7`."""
    if runtime.fake is None and _numbers_of(runtime.version) < _numbers_of(version):
        pytest.skip(f"{what}: containerd {version}")


def _numbers_of(version: str) -> list[int]:
    return [int(number) for number in version.split(".")[:2]]


async def execute(runtime: Runtime, container: str, *command: str) -> tuple[int, str, str]:
    """Exit code and output of a command in a container."""
    request = cri.ExecSyncRequest(container_id=container, cmd=command, timeout=20)
    answer = await runtime.call("ExecSync", request)
    return answer.exit_code, answer.stdout.decode(), answer.stderr.decode()


def since_2(runtime: Runtime) -> None:
    """Skip the test on containerd 1.x."""
    if runtime.version.startswith("1."):
        pytest.skip("user namespaces, image volumes, group policies: containerd 2")


def _behaviours() -> Any:
    import fakecri

    return fakecri


@pytest_asyncio.fixture(
    scope="module",
    loop_scope="module",
    params=["fake", pytest.param("real", marks=pytest.mark.real)],
)
async def runtime(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, results: Results
) -> AsyncIterator[Runtime]:
    workdir = tmp_path_factory.mktemp("c")
    if request.param == "fake":
        from fakecri import FakeCRI

        fake = FakeCRI(images=(IMAGE,), write_logs=True, runtime_handlers=("runc",))
        fake.images.add(APP_IMAGE, APP)
        yield Runtime(fake, workdir, fake=fake)
        return
    if os.environ.get("REFKUBELET_CONTAINERD") != "1":
        pytest.skip("real containerd: set REFKUBELET_CONTAINERD=1 (needs Docker)")
    from fakecri.server import GrpcUpstream
    from kubelet_conformance.harness.containerd.start import start_containerd

    async with start_containerd(workdir) as node, GrpcUpstream(node.endpoint) as upstream:
        results.containerd = node.version
        results.runc = node.check(["runc", "--version"]).split()[2]
        yield Runtime(upstream, node.log_root, version=node.version, node=node)
