"""Virtual runs: refkubelet, the fake runtime and the fake API server in this process.

Each case has a virtual loop of its own, and all random choices come from one seed.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

from fakecri import FakeNode, cri_latency
from fakecri.deviceplugin import InProcessPlugins
from fakecri.deviceplugin.registered import InProcessRegistry
from fakekubeapi import FakeApi, api_latency
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.api_server import ApiServer
from kubelet_conformance.harness.kubelets.base import NodePaths
from kubelet_conformance.harness.kubelets.fake_network import RunNetwork
from kubelet_conformance.harness.kubelets.inprocess import HOST_IP, InProcessKubelet, World
from kubelet_conformance.harness.machines.cgroup_trees import trees_of
from kubelet_conformance.harness.machines.disks import FollowedDisk
from kubelet_conformance.harness.machines.fake_machine import set_up
from kubelet_conformance.harness.manifest_url import ManifestUrl
from kubelet_conformance.harness.node.parts import NODE_NAME, MachineParts, Parts, kubelet_config
from kubelet_conformance.harness.runs.case_run import OURS, Outcome, Result, run_case
from kubelet_conformance.harness.runs.choice import Choice
from kubelet_conformance.harness.runtimes.fake import FakeRuntime
from kubelet_conformance.registry import Case, Feature
from kubenodes.wire import client_of
from kubeobjects.structs import replace
from simclock import Clock, Ids, Rng, VirtualLoop, run_virtual

IN_MEMORY: Final = "/dev/shm"


def run_virtual_case(case: Case, choice: Choice, *, log_of_failures: bool = True) -> Result:
    """Run one case on a new virtual loop. One that does not pass is played again, to the same end,
    with the kubelet's log kept: what is logged in the cases that pass costs time and shows nowhere.
    With `log_of_failures=False` it is not, for who only asks whether it passes.
    """
    result = _play(case, choice, keeps_log=False)
    if result.outcome is Outcome.PASSED or not log_of_failures:
        return result
    again = _play(case, choice, keeps_log=True)
    return again if again.outcome is result.outcome else result


def _play(case: Case, choice: Choice, keeps_log: bool) -> Result:
    """In a new directory: below TMPDIR if that is set, else in memory (/dev/shm) where possible,
    because disks are slower than everything else here."""
    in_memory = "TMPDIR" not in os.environ and os.access(IN_MEMORY, os.W_OK)
    parent = IN_MEMORY if in_memory else None
    with tempfile.TemporaryDirectory(prefix="conformance-", dir=parent) as directory:
        parts_of = partial(
            virtual_parts, seed=choice.seed, latency=choice.latency, keeps_log=keeps_log
        )
        result = run_virtual(
            lambda: run_case(case, parts_of, Path(directory), choice.traces),
            seed=choice.seed,
        )
    return replace(result, seed=choice.seed)


@asynccontextmanager
async def virtual_parts(
    case: Case, paths: NodePaths, seed: int, latency: float = 0.0, keeps_log: bool = True
) -> AsyncIterator[Parts]:
    """The parts of `case` on the running loop, which must be virtual, until the block ends.
    `latency`: the factor of `cri_latency` and `api_latency`. `keeps_log`: of the kubelet, for the
    failure of the case."""
    clock, rng = virtual_clock(), Rng(seed)
    ids = Ids(rng)
    runtime = FakeRuntime(clock, ids, latency=cri_latency(rng, latency))
    runtime.machine.address = HOST_IP
    set_up(runtime.machine, case.needs, case.machine)
    fake_api = None
    if Feature.API in case.needs:
        fake_api = FakeApi(clock, ids, latency=api_latency(rng, latency))
    plugins = InProcessPlugins() if Feature.DEVICE_PLUGINS in case.needs else None
    registry = InProcessRegistry(plugins) if plugins is not None else None
    manifests = ManifestUrl() if Feature.MANIFEST_URL in case.needs else None
    world = World(
        target=runtime.target,
        machine=runtime.machine,
        clock=clock,
        rng=rng,
        ids=ids,
        node_name=NODE_NAME,
        connect=partial(client_of, fake_api) if fake_api else None,
        network=RunNetwork(runtime.cri.ports, manifests),
        device_plugins=plugins,
        registry=registry,
        apparmor=Feature.NO_APPARMOR not in case.needs,
        keeps_log=keeps_log,
    )
    kubelet = InProcessKubelet(paths, world)
    config = kubelet_config(paths, {"enableServer": False, "healthzPort": 0, **case.node_config})
    try:
        yield Parts(
            kubelet=kubelet,
            runtime=runtime,
            api=ApiServer(fake_api) if fake_api else None,
            clock=clock,
            pace=_pace(case, seed),
            paths=paths,
            config=config,
            machine=_machine_parts(case, runtime.machine, paths, config),
            plugins=plugins,
            registry=registry,
            manifests=manifests,
        )
    finally:
        await kubelet.close()
        await runtime.close()


def _pace(case: Case, seed: int) -> limits.Pace:
    """Virtual time's. A case of this suite that runs in real time, too, must be short enough for
    that: one that is not needs Feature.VIRTUAL_TIME."""
    pace = limits.of_case(limits.VIRTUAL, case.id, seed)
    must_fit = case.module.startswith(OURS) and Feature.VIRTUAL_TIME not in case.needs
    return replace(pace, limit_s=limits.FITS_S) if must_fit else pace


def _machine_parts(
    case: Case, machine: FakeNode, paths: NodePaths, config: dict[str, Any]
) -> MachineParts:
    return MachineParts(
        logind=machine.logind if Feature.SHUTDOWN in case.needs else None,
        cgroups=trees_of(machine, config) if Feature.CGROUPS in case.needs else None,
        disk=FollowedDisk(machine, paths.root) if Feature.OWN_DISK in case.needs else None,
        numbers_set=True,
    )


def virtual_clock() -> Clock:
    """The clock of the running loop. Raises RuntimeError when it is not virtual."""
    loop = asyncio.get_running_loop()
    if not isinstance(loop, VirtualLoop):
        raise RuntimeError("virtual parts need a VirtualLoop")
    return loop.clock
