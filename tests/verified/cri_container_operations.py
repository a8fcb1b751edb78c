"""Random operations on containers."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from cri_operations import Operations, attempts, names, of_container, request, which
from cri_played import EXECS, IMAGES, container_of, pod_of
from hypothesis import strategies as st
from hypothesis.stateful import rule
from kubecri.v1 import api_pb2 as cri
from pairs import UNKNOWN, Side

SETTLE_POLLS: Final = 1000


class ContainerOperations(Operations):
    """Every call about a container, also two at once, and with requests that are wrong."""

    @rule(
        number=which,
        name=names,
        attempt=attempts,
        image=st.sampled_from([*IMAGES[:2], *IMAGES[:2], "localhost/none:1", "Bad:", ""]),
    )
    def create(self, number: int, name: str, attempt: int, image: str) -> None:
        self._create(self.sandbox(number), name, attempt, image, race=False)

    @rule(number=which, name=names, attempt=attempts)
    def two_clients_create(self, number: int, name: str, attempt: int) -> None:
        """Not in a sandbox that has ended: there 2.1 is a row of the table of its own."""
        state = self.about_sandbox("PodSandboxStatus", number)
        if state.code != "OK" or state.answer.status.state == cri.SANDBOX_READY:
            self._create(self.sandbox(number), name, attempt, IMAGES[0], race=True)

    def _create(self, sandbox: str, name: str, attempt: int, image: str, *, race: bool) -> None:
        symbol = f"c{self.pair.operations}"
        pod = self.pod_of.get(sandbox.rstrip("~"), ("one", 0))

        def build(side: Side) -> cri.CreateContainerRequest:
            return cri.CreateContainerRequest(
                pod_sandbox_id=side.id(sandbox),
                config=container_of(name, attempt, image),
                sandbox_config=pod_of(side, *pod),
            )

        if self.make(symbol, "CreateContainer", build, race=race):
            self.containers.append(symbol)
            self.programs[symbol] = name

    @rule(number=which)
    def create_without_metadata(self, number: int) -> None:
        symbol = self.sandbox(number)
        self.do(
            "CreateContainer",
            lambda side: cri.CreateContainerRequest(
                pod_sandbox_id=side.id(symbol), sandbox_config=pod_of(side, "one", 0)
            ),
        )

    @rule(number=which)
    def start(self, number: int) -> None:
        if self.about_container("StartContainer", number).code == "OK":
            self.runner.run(self._settle(self.container(number)))

    @rule(number=which)
    def two_clients_start(self, number: int) -> None:
        symbol = self.container(number)
        race = self.pair.race("StartContainer", of_container("StartContainer", symbol))
        if self.runner.run(race):
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

    @rule(number=which, timeout_s=st.sampled_from([0, 0, -2, 1]))
    def stop(self, number: int, timeout_s: int) -> None:
        self.about_container("StopContainer", number, timeout=timeout_s)

    @rule(number=which)
    def two_clients_stop(self, number: int) -> None:
        symbol = self.container(number)
        if symbol in (UNKNOWN, ""):
            return
        self.about_container("ContainerStatus", number)
        if symbol.rstrip("~") in self._there():
            self.race_and_again("StopContainer", of_container("StopContainer", symbol))

    def _there(self) -> set[str]:
        listed = self.do("ListContainers", request("ListContainers"))
        ids = {c.id for c in listed.answer.containers}
        return {symbol for symbol in self.containers if self.pair.real.ids[symbol] in ids}

    @rule(number=which)
    def remove(self, number: int) -> None:
        self.about_container("RemoveContainer", number)

    @rule(number=which)
    def two_clients_remove(self, number: int) -> None:
        build = of_container("RemoveContainer", self.container(number))
        self.race_and_again("RemoveContainer", build)

    @rule(number=which)
    def container_status(self, number: int) -> None:
        self.about_container("ContainerStatus", number)

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
        self.about_container("ExecSync", number, cmd=command, timeout=20)

    @rule(number=which)
    def reopen_log(self, number: int) -> None:
        self.about_container("ReopenContainerLog", number)

    @rule(number=which)
    def container_stats(self, number: int) -> None:
        self.about_container("ContainerStats", number)

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
        resources = cri.LinuxContainerResources(cpu_shares=shares)
        self.about_container("UpdateContainerResources", number, linux=resources)

    @rule(number=which, tty=st.booleans())
    def malformed_streams(self, number: int, tty: bool) -> None:
        self.about_container("Exec", number, cmd=["true"], tty=tty, stderr=tty)
