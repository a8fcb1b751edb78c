"""Looks at a kubelet: none where nothing has run since the last one."""

import asyncio
from typing import Any

from fakekubeapi import FakeApi
from kubelet_conformance.harness.api_server import ApiServer
from kubelet_conformance.harness.observing.snapshots import Snapshots
from simclock import Clock, RealClock, VirtualLoop, run_virtual


class LookedAt:
    """Stands for a kubelet: counts looks, and shows one pod with the phase it has now."""

    def __init__(self) -> None:
        self.looks = 0
        self.phase = "Pending"

    async def pods(self) -> list[dict[str, Any]]:
        self.looks += 1
        metadata = {"name": "web", "annotations": {"kubernetes.io/config.source": "file"}}
        return [{"metadata": metadata, "status": {"phase": self.phase}}]


class ShowsNothing:
    """Stands for a kubelet without static pods."""

    async def pods(self) -> list[dict[str, Any]]:
        return []


def snapshots_of(kubelet: LookedAt, clock: Clock) -> Snapshots:
    return Snapshots(kubelet, None, clock, "node")  # type: ignore[arg-type]


def clock_of_loop() -> Clock:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    return loop.clock


def test_nobody_looks_while_only_time_passes() -> None:
    async def main() -> tuple[int, list[str]]:
        kubelet, clock = LookedAt(), clock_of_loop()
        snapshots = snapshots_of(kubelet, clock)
        for _ in range(100):
            await snapshots.look()
            await clock.sleep(0.1)
        return kubelet.looks, snapshots.phases("web")

    assert run_virtual(main) == (1, ["Pending"])


def test_each_change_is_seen_at_the_next_look_and_the_time_is_that_look() -> None:
    async def main() -> list[tuple[float, str]]:
        kubelet, clock = LookedAt(), clock_of_loop()
        snapshots = snapshots_of(kubelet, clock)

        async def lives() -> None:
            for phase in ("Running", "Succeeded"):
                await clock.sleep(1.03)
                kubelet.phase = phase

        living = asyncio.create_task(lives())
        for _ in range(40):
            await snapshots.look()
            await clock.sleep(0.1)
        await living
        return [(round(one.at_s, 3), one.status["phase"]) for one in snapshots.history]

    assert run_virtual(main) == [(0.0, "Pending"), (1.1, "Running"), (2.1, "Succeeded")]


def test_a_refresh_looks_in_any_case_and_so_does_a_clock_that_cannot_tell() -> None:
    async def main(clock: Clock) -> int:
        kubelet = LookedAt()
        snapshots = snapshots_of(kubelet, clock)
        await snapshots.look()
        await snapshots.look()
        await snapshots.refresh()
        return kubelet.looks

    assert run_virtual(lambda: main(clock_of_loop())) == 2
    assert run_virtual(lambda: main(RealClock())) == 3


def test_each_status_at_the_api_server_is_noted_though_nobody_looked_in_between() -> None:
    pods = "/api/v1/namespaces/default/pods"
    body = {
        "metadata": {"name": "web"},
        "spec": {"nodeName": "node", "containers": [{"name": "main", "image": "x"}]},
    }

    async def main() -> tuple[list[str], int]:
        clock = clock_of_loop()
        api = ApiServer(FakeApi(clock))
        snapshots = Snapshots(ShowsNothing(), api, clock, "node")  # type: ignore[arg-type]
        await api.request("POST", pods, body=body)
        for phase in ("Running", "Failed"):
            await api.request(
                "PATCH",
                f"{pods}/web/status",
                body={"status": {"phase": phase}},
                content_type="application/merge-patch+json",
            )
        await snapshots.refresh()
        noted = [one.status["phase"] for one in snapshots.history]
        await snapshots.refresh()
        return noted, len(snapshots.history) - len(noted)

    assert run_virtual(main) == (["Pending", "Running", "Failed"], 0)
