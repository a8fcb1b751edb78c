"""Cases that share refkubelet in this process, in virtual time: what sharing hides, if it hides
anything, shows there in seconds."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from fakecri import cri_latency
from fakekubeapi import FakeApi, api_latency
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.kubelets.base import NodePaths
from kubelet_conformance.harness.kubelets.fake_network import RunNetwork
from kubelet_conformance.harness.kubelets.inprocess import HOST_IP, InProcessKubelet, World
from kubelet_conformance.harness.kubelets.shared_ports import SharedPorts
from kubelet_conformance.harness.node.parts import NODE_NAME, kubelet_config
from kubelet_conformance.harness.runs.case_run import Result
from kubelet_conformance.harness.runs.choice import LATENCY
from kubelet_conformance.harness.runs.shared_kubelet import SharedKubelet
from kubelet_conformance.harness.runs.sharing import run_beside
from kubelet_conformance.harness.runs.virtual import virtual_clock
from kubelet_conformance.harness.runtimes.fake import FakeRuntime
from kubelet_conformance.harness.sharing.router import CriRouter
from kubelet_conformance.registry import Case, Feature
from kubenodes.wire import client_of
from simclock import Ids, Rng, run_virtual


def run_virtual_group(cases: Sequence[Case], seed: int = 1) -> list[Result]:
    """Run cases that may share a kubelet beside each other; the results as they ended."""
    results: list[Result] = []
    with tempfile.TemporaryDirectory(prefix="conformance-") as directory:
        shared = partial(virtual_shared_kubelet, seed=seed)
        run_virtual(lambda: run_beside(cases, shared, Path(directory), results.append), seed=seed)
    return results


@asynccontextmanager
async def virtual_shared_kubelet(
    case: Case, paths: NodePaths, seed: int
) -> AsyncIterator[SharedKubelet]:
    """A kubelet that runs, as `case` wants it, for this case and others, on the running loop, which
    must be virtual, until the block ends."""
    clock, rng = virtual_clock(), Rng(seed)
    ids = Ids(rng)
    latency = cri_latency(rng, LATENCY)
    common = FakeRuntime(clock, ids)
    common.machine.address = HOST_IP
    ports, networks = SharedPorts(), iter(range(1, 250))

    def make_runtime() -> FakeRuntime:
        network = f"10.{next(networks)}"
        runtime = FakeRuntime(clock, ids, pod_network=network, latency=latency)
        ports.add(network, runtime.cri.ports)
        return runtime

    api = None
    if Feature.API in case.needs:
        api = FakeApi(clock, ids, latency=api_latency(rng, LATENCY))
    router = CriRouter(common.cri)
    world = World(
        target=router,
        machine=common.machine,
        clock=clock,
        rng=rng,
        ids=ids,
        node_name=NODE_NAME,
        connect=partial(client_of, api) if api else None,
        network=RunNetwork(ports),
        keeps_log=False,
    )
    kubelet = InProcessKubelet(paths, world)
    fields = {"enableServer": False, "healthzPort": 0, **case.node_config}
    config = kubelet_config(paths, fields)
    try:
        await kubelet.start(config)
        yield SharedKubelet(
            kubelet=kubelet,
            router=router,
            make_runtime=make_runtime,
            api=api,
            clock=clock,
            pace=lambda _: limits.VIRTUAL,
            paths=paths,
            config=config,
        )
    finally:
        await kubelet.close()
