"""Random operations on two runtimes at once; every answer is compared.

On the fake alone (always): FakeCRI against a FakeCRI behind the recording proxy, to hold that the
machine and the proxy are right. On real containerd (REFKUBELET_CONTAINERD=1, needs Docker; or one
that runs already, at REFKUBELET_CRI_ENDPOINT): the fake against it. REFKUBELET_OPERATIONS is the
number of operations, REFKUBELET_SEED the seed.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import differences
import pytest
from cri_container_operations import ContainerOperations
from cri_operations import names, pods, request
from cri_played import IMAGES, played
from cri_sandbox_operations import SandboxOperations
from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule
from kubecri.v1 import api_pb2 as cri
from machine_runs import drive, first_seed, operations
from pairs import Pair, Side

from fakecri.proxy import RecordingProxy
from fakecri.server import GrpcUpstream
from kubelet_conformance.harness.containerd.settings import APP_IMAGE
from kubelet_conformance.harness.containerd.start import start_containerd
from results import Machine, Results


class TwoRuntimes(SandboxOperations, ContainerOperations):
    """Operations over a few names, so that collisions, repeats and wrong states are common."""

    @initialize(name=pods, first=names, second=names)
    def begin(self, name: str, first: str, second: str) -> None:
        """A pod with two containers, one of them started: else most examples would never get so
        far."""
        self.run_sandbox(name, 0)
        self.create(0, first, 0, IMAGES[0])
        self.create(0, second, 1, IMAGES[1])
        self.start(0)

    @rule()
    def runtime_status(self) -> None:
        self.do("Status", request("Status"))

    @rule()
    def runtime_config(self) -> None:
        self.do("RuntimeConfig", request("RuntimeConfig"))

    @rule(image=st.sampled_from([*IMAGES[:2], "localhost/none:1", "Bad:", "", "busybox"]))
    def image_status(self, image: str) -> None:
        self.do("ImageStatus", request("ImageStatus", image=cri.ImageSpec(image=image)))

    @rule()
    def list_images(self) -> None:
        self.do("ListImages", request("ListImages"))

    @rule(image=st.sampled_from(["localhost/none:1", "Bad:", "", "a/b@sha256:" + "0" * 64]))
    def remove_unknown_image(self, image: str) -> None:
        self.do("RemoveImage", request("RemoveImage", image=cri.ImageSpec(image=image)))


@pytest.fixture
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


def drive_runtimes(pair: Pair, runner: asyncio.Runner, wanted: int) -> None:
    """Run examples until there were so many operations; the first mismatch fails."""
    runner.run(learn_images(pair))
    drive(type("Bound", (TwoRuntimes,), {"pair": pair, "runner": runner}), pair, wanted)


async def learn_images(pair: Pair) -> None:
    """Image ids are symbols too; they must not be forgotten between examples."""
    for side in (pair.real, pair.fake):
        for number, name in enumerate((*IMAGES, APP_IMAGE)):
            request = cri.ImageStatusRequest(image=cri.ImageSpec(image=name))
            answer: Any = (await side.call("ImageStatus", request)).answer
            side.kept[f"image{number}"] = answer.image.id


async def beside_a_proxy() -> Pair:
    return Pair(Side("fake", played(), "/logs"), Side("proxy", RecordingProxy(played()), "/other"))


async def beside_containerd(stack: AsyncExitStack, tmp_path: Path, endpoint: str) -> Pair:
    """The fake and the containerd at `endpoint`; where there is none ("") one is started."""
    log_root = str(tmp_path)
    if not endpoint:
        node = await stack.enter_async_context(start_containerd(tmp_path))
        log_root, endpoint = str(node.log_root), node.endpoint
    upstream = await stack.enter_async_context(GrpcUpstream(endpoint))
    version: Any = await upstream.call("Version", cri.VersionRequest(), timeout_s=10)
    label = f"{version.runtime_name} {version.runtime_version}"
    real = Side(label, upstream, log_root, version.runtime_version)
    return Pair(real, Side("fake", played(version.runtime_version), "/logs"))


def test_the_fake_behind_the_proxy_answers_like_the_fake(runner: asyncio.Runner) -> None:
    """The machine itself is sound: the same runtime twice shows no difference."""
    drive_runtimes(runner.run(beside_a_proxy()), runner, operations(300))


@pytest.mark.real
@pytest.mark.timeout(900)
def test_the_fake_answers_like_containerd(
    runner: asyncio.Runner, tmp_path: Path, results: Results
) -> None:
    endpoint = os.environ.get("REFKUBELET_CRI_ENDPOINT", "")
    if not endpoint and os.environ.get("REFKUBELET_CONTAINERD") != "1":
        pytest.skip("real containerd: set REFKUBELET_CONTAINERD=1 (needs Docker)")
    stack = AsyncExitStack()
    try:
        pair = runner.run(beside_containerd(stack, tmp_path, endpoint))
        try:
            drive_runtimes(pair, runner, operations(2000))
        finally:
            results.machine = Machine(pair.operations, first_seed(), pair.used, pair.mismatch)
        print(f"\n{pair.operations} operations, {pair.real.label}; rows used:")
        for row, times in pair.used.items():
            print(f"  {times:5} x {row}")
    finally:
        runner.run(stack.aclose())


def test_every_difference_has_a_reason() -> None:
    tables: tuple[tuple[Any, ...], ...] = (differences.FIELDS, differences.CODES, differences.TEXTS)
    for rows in tables:
        assert all(len(row.reason) > 10 for row in rows)
        assert len(set(rows)) == len(rows)
