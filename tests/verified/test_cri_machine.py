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
from typing import Any, Final

import differences
import pytest
from criapi.v1 import api_pb2 as cri
from hypothesis import HealthCheck, Phase, Verbosity, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    rule,
    run_state_machine_as_test,
)
from pairs import UNKNOWN, Pair, Side
from results import Machine, Results

from fakecri import FakeCRI, exits, ignores, replies, start_fails, stops
from fakecri.proxy import RecordingProxy
from simtime import Ids, Rng

PAUSE: Final = "localhost/pause:1"
IMAGES: Final = ("localhost/busybox:1", "localhost/busybox:2", PAUSE)
EXECS: Final = ("sh", "-c", "echo out; echo err >&2; exit 4")
STEPS: Final = 50
SETTLE_POLLS: Final = 1000

PROGRAMS: Final = {
    "runs": ["sh", "-c", "exec sleep 1000"],
    "handles": ["sh", "-c", "trap 'exit 5' TERM; touch /ready; while :; do sleep 0.05; done"],
    "exits": ["sh", "-c", "exit 3"],
    "broken": ["/no/such"],
}
"""Containers are called like what they do."""

pods = st.sampled_from(["one", "two", "three"])
names = st.sampled_from(sorted(PROGRAMS))
attempts = st.integers(0, 1)
which = st.integers(0, 19)


def played(version: str = "") -> FakeCRI:
    """A fake whose containers do what those names say, set up like that version of containerd."""
    fake = FakeCRI(ids=Ids(Rng(os.getpid())), images=IMAGES, runtime_handlers=("runc",))
    if not version.startswith("1.6"):
        fake.core.images.add(PAUSE, pinned=True)  # CRI-093
    fake.behaves(ignores("SIGTERM"), container="runs")
    fake.behaves(stops(5), container="handles")
    fake.behaves(exits(3), container="exits")
    fake.behaves(start_fails("no such file"), container="broken")
    fake.behaves(replies(list(EXECS), 4, "out\n", "err\n"))
    return fake


def pod_config(side: Side, name: str, attempt: int) -> cri.PodSandboxConfig:
    options = cri.NamespaceOption(pid=cri.CONTAINER)
    return cri.PodSandboxConfig(
        metadata=cri.PodSandboxMetadata(
            name=name, uid=f"uid-{name}", namespace="default", attempt=attempt
        ),
        log_directory=f"{side.log_root}/{name}",
        labels={"pod": name, "attempt": str(attempt)},
        annotations={"note": name},
        linux=cri.LinuxPodSandboxConfig(
            cgroup_parent=f"/refkubelet-machine/{name}",
            security_context=cri.LinuxSandboxSecurityContext(namespace_options=options),
        ),
    )


def container_config(name: str, attempt: int, image: str) -> cri.ContainerConfig:
    options = cri.NamespaceOption(pid=cri.CONTAINER)
    return cri.ContainerConfig(
        metadata=cri.ContainerMetadata(name=name, attempt=attempt),
        image=cri.ImageSpec(image=image),
        command=PROGRAMS[name],
        labels={"container": name},
        annotations={"attempt": str(attempt)},
        log_path=f"{name}/{attempt}.log",
        linux=cri.LinuxContainerConfig(
            security_context=cri.LinuxContainerSecurityContext(namespace_options=options)
        ),
    )


class TwoRuntimes(RuleBasedStateMachine):
    """Operations over a few names, so that collisions, repeats and wrong states are common."""

    pair: Pair
    runner: asyncio.Runner

    def __init__(self) -> None:
        super().__init__()
        self.sandboxes: list[str] = []
        self.containers: list[str] = []
        self.pod_of: dict[str, tuple[str, int]] = {}
        self.programs: dict[str, str] = {}
        self.pair.history.clear()

    def teardown(self) -> None:
        self.runner.run(self._clean())

    async def _clean(self) -> None:
        for side in (self.pair.real, self.pair.fake):
            listed: Any = await side.target.call("ListPodSandbox", cri.ListPodSandboxRequest())
            for item in listed.items:
                request = cri.RemovePodSandboxRequest(pod_sandbox_id=item.id)
                await side.call("RemovePodSandbox", request)
            side.ids.clear()

    def do(self, method: str, build: Any) -> Any:
        return self.runner.run(self.pair.do(method, build))

    def sandbox(self, number: int) -> str:
        return self._choose(self.sandboxes[-6:], number)

    def container(self, number: int) -> str:
        return self._choose(self.containers[-8:], number)

    def _choose(self, known: list[str], number: int) -> str:
        """Mostly an object, also a removed one; sometimes its prefix, nothing, or nonsense."""
        if number == 19:
            return ""
        if not known or number == 18:
            return UNKNOWN
        chosen: str = known[-1 - number % len(known)]
        return f"{chosen}~" if number in (16, 17) else chosen

    @initialize(name=pods, first=names, second=names)
    def begin(self, name: str, first: str, second: str) -> None:
        """A pod with two containers, one of them started: else most examples would never get so
        far."""
        self.run_sandbox(name, 0)
        self.create(0, first, 0, IMAGES[0])
        self.create(0, second, 1, IMAGES[1])
        self.start(0)

    # -- sandboxes -----------------------------------------------------------------------------

    @rule(name=pods, attempt=attempts)
    def run_sandbox(self, name: str, attempt: int) -> None:
        symbol = f"s{self.pair.operations}"
        made = self.runner.run(
            self.pair.make(
                symbol,
                "RunPodSandbox",
                lambda side: cri.RunPodSandboxRequest(config=pod_config(side, name, attempt)),
            )
        )
        if made:
            self.sandboxes.append(symbol)
            self.pod_of[symbol] = (name, attempt)

    @rule(name=pods)
    def two_clients_run_a_sandbox(self, name: str) -> None:
        symbol = f"s{self.pair.operations}"
        made = self.runner.run(
            self.pair.race(
                "RunPodSandbox",
                lambda side: cri.RunPodSandboxRequest(config=pod_config(side, name, 2)),
                symbol,
            )
        )
        if made:
            self.sandboxes.append(symbol)
            self.pod_of[symbol] = (name, 2)

    @rule()
    def run_without_metadata(self) -> None:
        self.do("RunPodSandbox", lambda side: cri.RunPodSandboxRequest())

    @rule(name=pods)
    def run_with_an_unknown_handler(self, name: str) -> None:
        self.do(
            "RunPodSandbox",
            lambda side: cri.RunPodSandboxRequest(
                config=pod_config(side, name, 7), runtime_handler="nope"
            ),
        )

    @rule(number=which)
    def stop_sandbox(self, number: int) -> None:
        symbol = self.sandbox(number)
        self.do(
            "StopPodSandbox", lambda side: cri.StopPodSandboxRequest(pod_sandbox_id=side.id(symbol))
        )

    @rule(number=which)
    def remove_sandbox(self, number: int) -> None:
        symbol = self.sandbox(number)
        self.do(
            "RemovePodSandbox",
            lambda side: cri.RemovePodSandboxRequest(pod_sandbox_id=side.id(symbol)),
        )

    @rule(number=which)
    def two_clients_stop_a_sandbox(self, number: int) -> None:
        symbol = self.sandbox(number)
        self._race_and_again(
            "StopPodSandbox", lambda side: cri.StopPodSandboxRequest(pod_sandbox_id=side.id(symbol))
        )

    @rule(number=st.integers(0, 59))
    def two_clients_remove_a_sandbox(self, number: int) -> None:
        symbol = self.sandbox(number % 20)
        if number < 20:  # else too little would live long
            self._race_and_again(
                "RemovePodSandbox",
                lambda side: cri.RemovePodSandboxRequest(pod_sandbox_id=side.id(symbol)),
            )

    @rule(number=which)
    def sandbox_status(self, number: int) -> None:
        symbol = self.sandbox(number)
        self.do(
            "PodSandboxStatus",
            lambda side: cri.PodSandboxStatusRequest(pod_sandbox_id=side.id(symbol)),
        )

    @rule(number=which, state=st.sampled_from([None, 0, 1, 9]), label=st.none() | pods)
    def list_sandboxes(self, number: int, state: Any, label: str | None) -> None:
        symbol = self.sandbox(number) if number % 3 == 0 else ""

        def build(side: Side) -> cri.ListPodSandboxRequest:
            wanted = cri.PodSandboxFilter(id=side.id(symbol))
            if state is not None:
                wanted.state.state = state
            if label:
                wanted.label_selector["pod"] = label
            return cri.ListPodSandboxRequest(filter=wanted)

        self.do("ListPodSandbox", build)

    # -- containers ----------------------------------------------------------------------------

    @rule(
        number=which,
        name=names,
        attempt=attempts,
        image=st.sampled_from([*IMAGES[:2], *IMAGES[:2], "localhost/none:1", "Bad:", ""]),
    )
    def create(self, number: int, name: str, attempt: int, image: str) -> None:
        sandbox, symbol = self.sandbox(number), f"c{self.pair.operations}"
        pod = self.pod_of.get(sandbox.rstrip("~"), ("one", 0))
        made = self.runner.run(
            self.pair.make(
                symbol,
                "CreateContainer",
                lambda side: cri.CreateContainerRequest(
                    pod_sandbox_id=side.id(sandbox),
                    config=container_config(name, attempt, image),
                    sandbox_config=pod_config(side, *pod),
                ),
            )
        )
        if made:
            self.containers.append(symbol)
            self.programs[symbol] = name

    @rule(number=which, name=names, attempt=attempts)
    def two_clients_create(self, number: int, name: str, attempt: int) -> None:
        """Not in a sandbox that has ended: there 2.1 is a row of the table of its own."""
        sandbox = self.sandbox(number)
        state = self.do(
            "PodSandboxStatus",
            lambda side: cri.PodSandboxStatusRequest(pod_sandbox_id=side.id(sandbox)),
        )
        if state.code == "OK" and state.answer.status.state != cri.SANDBOX_READY:
            return
        symbol = f"c{self.pair.operations}"
        pod = self.pod_of.get(sandbox.rstrip("~"), ("one", 0))
        made = self.runner.run(
            self.pair.race(
                "CreateContainer",
                lambda side: cri.CreateContainerRequest(
                    pod_sandbox_id=side.id(sandbox),
                    config=container_config(name, attempt, IMAGES[0]),
                    sandbox_config=pod_config(side, *pod),
                ),
                symbol,
            )
        )
        if made:
            self.containers.append(symbol)
            self.programs[symbol] = name

    @rule(number=which)
    def create_without_metadata(self, number: int) -> None:
        symbol = self.sandbox(number)
        self.do(
            "CreateContainer",
            lambda side: cri.CreateContainerRequest(
                pod_sandbox_id=side.id(symbol), sandbox_config=pod_config(side, "one", 0)
            ),
        )

    @rule(number=which)
    def start(self, number: int) -> None:
        symbol = self.container(number)
        outcome = self.do(
            "StartContainer", lambda side: cri.StartContainerRequest(container_id=side.id(symbol))
        )
        if outcome.code == "OK":
            self.runner.run(self._settle(symbol))

    async def _settle(self, symbol: str) -> None:
        """Wait until the new process is where its program brings it: before, answers would be a
        matter of luck."""
        program = self.programs[symbol.rstrip("~")]
        for side in (self.pair.real, self.pair.fake):
            for _ in range(SETTLE_POLLS):
                if await self._settled(side, side.id(symbol), program):
                    break
                await asyncio.sleep(0.02)
            else:
                raise RuntimeError(f"{side.label}: {symbol} does not get to do what {program} does")

    async def _settled(self, side: Side, container: str, program: str) -> bool:
        if program == "exits":
            status = await side.call(
                "ContainerStatus", cri.ContainerStatusRequest(container_id=container)
            )
            return bool(status.answer.status.state == cri.CONTAINER_EXITED)
        if program == "handles":
            command = ["test", "-f", "/ready"]
            request = cri.ExecSyncRequest(container_id=container, cmd=command)
            answer = (await side.call("ExecSync", request)).answer
            return answer is not None and answer.exit_code == 0
        return True

    @rule(number=which)
    def two_clients_start(self, number: int) -> None:
        symbol = self.container(number)
        made = self.runner.run(
            self.pair.race(
                "StartContainer",
                lambda side: cri.StartContainerRequest(container_id=side.id(symbol)),
            )
        )
        if made:
            self.runner.run(self._settle(symbol))

    @rule(number=which, timeout_s=st.sampled_from([0, 0, -2, 1]))
    def stop(self, number: int, timeout_s: int) -> None:
        symbol = self.container(number)
        self.do(
            "StopContainer",
            lambda side: cri.StopContainerRequest(container_id=side.id(symbol), timeout=timeout_s),
        )

    @rule(number=which)
    def two_clients_stop(self, number: int) -> None:
        symbol = self.container(number)
        if symbol in (UNKNOWN, ""):
            return
        self.do("ContainerStatus", self._status_request(symbol))
        if symbol.rstrip("~") in self._there():
            self._race_and_again(
                "StopContainer",
                lambda side: cri.StopContainerRequest(container_id=side.id(symbol)),
            )

    def _race_and_again(self, method: str, build: Any) -> None:
        """Two at once; then one alone, which must find all done (or do it)."""
        self.runner.run(self.pair.race(method, build))
        self.do(method, build)

    def _there(self) -> set[str]:
        listed: Any = self.do("ListContainers", lambda side: cri.ListContainersRequest())
        ids = {c.id for c in listed.answer.containers}
        return {symbol for symbol in self.containers if self.pair.real.ids[symbol] in ids}

    @rule(number=which)
    def remove(self, number: int) -> None:
        symbol = self.container(number)
        self.do(
            "RemoveContainer", lambda side: cri.RemoveContainerRequest(container_id=side.id(symbol))
        )

    @rule(number=which)
    def two_clients_remove(self, number: int) -> None:
        symbol = self.container(number)
        self._race_and_again(
            "RemoveContainer", lambda side: cri.RemoveContainerRequest(container_id=side.id(symbol))
        )

    @staticmethod
    def _status_request(symbol: str) -> Any:
        return lambda side: cri.ContainerStatusRequest(container_id=side.id(symbol))

    @rule(number=which)
    def container_status(self, number: int) -> None:
        self.do("ContainerStatus", self._status_request(self.container(number)))

    @rule(
        number=which,
        state=st.sampled_from([None, 0, 1, 2, 3, 9]),
        label=st.none() | names,
        by=st.sampled_from(["", "id", "sandbox"]),
    )
    def list_containers(self, number: int, state: Any, label: str | None, by: str) -> None:
        symbol = self.container(number) if by == "id" else self.sandbox(number)

        def build(side: Side) -> cri.ListContainersRequest:
            wanted = cri.ContainerFilter()
            if by == "id":
                wanted.id = side.id(symbol)
            if by == "sandbox":
                wanted.pod_sandbox_id = side.id(symbol)
            if state is not None:
                wanted.state.state = state
            if label:
                wanted.label_selector["container"] = label
            return cri.ListContainersRequest(filter=wanted)

        self.do("ListContainers", build)

    @rule(number=which, command=st.sampled_from([EXECS, EXECS, ()]))
    def exec_sync(self, number: int, command: tuple[str, ...]) -> None:
        symbol = self.container(number)
        self.do(
            "ExecSync",
            lambda side: cri.ExecSyncRequest(container_id=side.id(symbol), cmd=command, timeout=20),
        )

    @rule(number=which)
    def reopen_log(self, number: int) -> None:
        symbol = self.container(number)
        self.do(
            "ReopenContainerLog",
            lambda side: cri.ReopenContainerLogRequest(container_id=side.id(symbol)),
        )

    @rule(number=which)
    def container_stats(self, number: int) -> None:
        symbol = self.container(number)
        self.do(
            "ContainerStats", lambda side: cri.ContainerStatsRequest(container_id=side.id(symbol))
        )

    @rule(number=which)
    def list_container_stats(self, number: int) -> None:
        symbol = self.container(number)
        self.do(
            "ListContainerStats",
            lambda side: cri.ListContainerStatsRequest(
                filter=cri.ContainerStatsFilter(id=side.id(symbol))
            ),
        )

    @rule(number=which, shares=st.sampled_from([0, 256, 512]))
    def update_resources(self, number: int, shares: int) -> None:
        symbol = self.container(number)
        self.do(
            "UpdateContainerResources",
            lambda side: cri.UpdateContainerResourcesRequest(
                container_id=side.id(symbol), linux=cri.LinuxContainerResources(cpu_shares=shares)
            ),
        )

    @rule(number=which, tty=st.booleans())
    def malformed_streams(self, number: int, tty: bool) -> None:
        symbol = self.container(number)
        self.do(
            "Exec",
            lambda side: cri.ExecRequest(
                container_id=side.id(symbol), cmd=["true"], tty=tty, stderr=tty
            ),
        )

    # -- the runtime as a whole, pods' statistics --------------------------------------------

    @rule()
    def runtime_status(self) -> None:
        self.do("Status", lambda side: cri.StatusRequest())

    @rule()
    def runtime_config(self) -> None:
        self.do("RuntimeConfig", lambda side: cri.RuntimeConfigRequest())

    @rule(number=which)
    def sandbox_stats(self, number: int) -> None:
        symbol = self.sandbox(number)
        self.do(
            "PodSandboxStats",
            lambda side: cri.PodSandboxStatsRequest(pod_sandbox_id=side.id(symbol)),
        )

    @rule(number=which)
    def list_sandbox_stats(self, number: int) -> None:
        symbol = self.sandbox(number) if number % 2 else ""
        self.do(
            "ListPodSandboxStats",
            lambda side: cri.ListPodSandboxStatsRequest(
                filter=cri.PodSandboxStatsFilter(id=side.id(symbol))
            ),
        )

    @rule(number=which)
    def update_sandbox_resources(self, number: int) -> None:
        symbol = self.sandbox(number)
        self.do(
            "UpdatePodSandboxResources",
            lambda side: cri.UpdatePodSandboxResourcesRequest(pod_sandbox_id=side.id(symbol)),
        )

    # -- images --------------------------------------------------------------------------------

    @rule(
        image=st.sampled_from(
            [
                "localhost/busybox:1",
                "localhost/busybox:2",
                "localhost/none:1",
                "Bad:",
                "",
                "busybox",
            ]
        )
    )
    def image_status(self, image: str) -> None:
        self.do(
            "ImageStatus",
            lambda side: cri.ImageStatusRequest(image=cri.ImageSpec(image=image)),
        )

    @rule()
    def list_images(self) -> None:
        self.do("ListImages", lambda side: cri.ListImagesRequest())

    @rule(image=st.sampled_from(["localhost/none:1", "Bad:", "", "a/b@sha256:" + "0" * 64]))
    def remove_unknown_image(self, image: str) -> None:
        self.do(
            "RemoveImage",
            lambda side: cri.RemoveImageRequest(image=cri.ImageSpec(image=image)),
        )


# -- running it --------------------------------------------------------------------------------


@pytest.fixture
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


def first_seed() -> int:
    return int(os.environ.get("REFKUBELET_SEED", "0"))


def drive(pair: Pair, runner: asyncio.Runner, operations: int) -> None:
    """Run examples until there were so many operations; the first mismatch fails."""
    runner.run(learn_images(pair))
    machine = type("Bound", (TwoRuntimes,), {"pair": pair, "runner": runner})
    number = first_seed()
    while pair.operations < operations:
        left = operations - pair.operations
        limits = settings(
            max_examples=max(1, left // STEPS),
            stateful_step_count=min(STEPS, max(2, left)),
            deadline=None,
            database=None,
            phases=[Phase.generate],
            verbosity=Verbosity.quiet,
            suppress_health_check=list(HealthCheck),
        )
        try:
            run_state_machine_as_test(seed(number)(machine), settings=limits)
        except Exception:
            if not pair.mismatch:
                raise
        if pair.mismatch:
            pytest.fail(f"{pair.mismatch}\nrepeat with REFKUBELET_SEED={number}", pytrace=False)
        number += 1


async def learn_images(pair: Pair) -> None:
    """Image ids are symbols too; they must not be forgotten between examples."""
    for side in (pair.real, pair.fake):
        for number, name in enumerate(IMAGES):
            request = cri.ImageStatusRequest(image=cri.ImageSpec(image=name))
            answer: Any = (await side.call("ImageStatus", request)).answer
            side.kept[f"image{number}"] = answer.image.id


def test_the_fake_behind_the_proxy_answers_like_the_fake(runner: asyncio.Runner) -> None:
    """The machine itself is sound: the same runtime twice shows no difference."""

    async def make() -> Pair:
        return Pair(
            Side("fake", played(), "/logs"),
            Side("proxy", RecordingProxy(played()), "/other"),
        )

    drive(runner.run(make()), runner, int(os.environ.get("REFKUBELET_OPERATIONS", "300")))


@pytest.mark.real
@pytest.mark.timeout(900)
def test_the_fake_answers_like_containerd(
    runner: asyncio.Runner, tmp_path: Path, results: Results
) -> None:
    endpoint = os.environ.get("REFKUBELET_CRI_ENDPOINT", "")
    if not endpoint and os.environ.get("REFKUBELET_CONTAINERD") != "1":
        pytest.skip("real containerd: set REFKUBELET_CONTAINERD=1 (needs Docker)")
    stack = AsyncExitStack()

    async def make() -> Pair:
        from conformance.harness.containerd.start import start_containerd
        from fakecri.server import GrpcUpstream

        log_root, where = str(tmp_path), endpoint
        if not where:
            node = await stack.enter_async_context(start_containerd(tmp_path))
            log_root, where = str(node.log_root), node.endpoint
        upstream = await stack.enter_async_context(GrpcUpstream(where))
        version: Any = await upstream.call("Version", cri.VersionRequest(), timeout_s=10)
        label = f"{version.runtime_name} {version.runtime_version}"
        real = Side(label, upstream, log_root, version.runtime_version)
        return Pair(real, Side("fake", played(version.runtime_version), "/logs"))

    try:
        pair = runner.run(make())
        try:
            drive(pair, runner, int(os.environ.get("REFKUBELET_OPERATIONS", "2000")))
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
