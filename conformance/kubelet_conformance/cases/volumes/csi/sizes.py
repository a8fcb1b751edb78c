"""The sizes of volumes of claims and of storage drivers, in the summary and in /metrics."""

from typing import Any, Final

from fakecri.csi import FakeCsiDriver
from kubelet_conformance.cases.volumes import claims
from kubelet_conformance.cases.volumes.common import VOLUME, with_volume
from kubelet_conformance.cases.volumes.csi.common import (
    BOTH,
    HANDLE,
    LONG,
    NEEDS,
    a_driver,
    bind,
    end_pod,
    inline,
    run_pod,
    source,
    user,
)
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.registry import conformance

STATS: Final = "GET_VOLUME_STATS"
METHOD: Final = "NodeGetVolumeStats"
PERIOD_S: Final = 10
OFTEN: Final[dict[str, Any]] = {"volumeStatsAggPeriod": f"{PERIOD_S}s"}
MEASURED_S: Final = 3 * PERIOD_S + 1.0
"""Until a volume was measured anew: new pods are found once a period, and each is measured every
one to two periods (EVIC-103)."""
GI: Final = 1 << 30
USED: Final = {"BYTES": (8 * GI, 3 * GI), "INODES": (1000, 400)}
WANTED: Final = {
    "capacityBytes": 8 * GI,
    "usedBytes": 3 * GI,
    "availableBytes": 5 * GI,
    "inodes": 1000,
    "inodesUsed": 400,
    "inodesFree": 600,
}
DATA: Final = {"name": "data", "namespace": "default"}


async def summary_of(node: Node, pod: str = "web") -> dict[str, Any]:
    """What the summary says of a pod."""
    pods = {p["podRef"]["name"]: p for p in (await node.kubelet.summary())["pods"]}
    expect(node, pod in pods, f"{pod} is in the summary", sorted(pods))
    pod_summary: dict[str, Any] = pods[pod]
    return pod_summary


async def sizes(node: Node, pod: str = "web") -> dict[str, dict[str, Any]]:
    """What the summary says of the pod's volumes, by name."""
    return {volume["name"]: volume for volume in (await summary_of(node, pod)).get("volume", [])}


async def told_of_claims(node: Node) -> list[str]:
    """The lines of /metrics about volumes of claims."""
    lines = (await node.kubelet.get("/metrics")).text.splitlines()
    return [line for line in lines if line.startswith("kubelet_volume_stats_")]


def expect_size(node: Node, volume: dict[str, Any], wanted: dict[str, int] = WANTED) -> None:
    """Expect these numbers of a volume."""
    expect_equal(node, {name: volume.get(name) for name in wanted}, wanted, "size of the volume")


def expect_asked(node: Node, driver: FakeCsiDriver, path: object) -> None:
    """Expect that the driver was asked for the volume where it is published."""
    requests = driver.requests(METHOD)
    expect(node, requests, "the driver is asked for the size")
    expect_equal(node, requests[0].volume_path, str(path), "volume_path")


@conformance(id="csi-size", rules=["SRV-030.8", "SRV-030.9"], needs=NEEDS, node_config=OFTEN)
async def the_summary_has_what_a_driver_says_of_a_volume(node: Node) -> None:
    """A driver that can tell is asked for the size of a volume of a claim, and the summary has that
    with the claim's name. It is not the pod's ephemeral storage."""
    driver = await a_driver(node, STATS)
    driver.used = dict(USED)
    await bind(node, source())
    await run_pod(node, user())
    await node.run_for(MEASURED_S)
    expect_asked(node, driver, node.storage.target_path("web", "pv"))
    expect_equal(node, driver.requests(METHOD)[0].volume_id, HANDLE, "volume_id")
    volume = (await sizes(node)).get(VOLUME, {})
    expect_size(node, volume)
    expect_equal(node, volume.get("pvcRef"), DATA, "pvcRef")
    used = (await summary_of(node))["ephemeral-storage"]["usedBytes"]
    expect(node, used < GI, "the claim's volume is no ephemeral storage", used)


@conformance(id="csi-size-inline", rules=["SRV-030.9"], needs=NEEDS, node_config=OFTEN)
async def inline_volumes_are_measured_too(node: Node) -> None:
    """An inline volume is in the summary with what its driver says, and without a claim. What the
    driver does not say is 0."""
    driver = await a_driver(node, STATS, **BOTH)
    driver.used = {"BYTES": USED["BYTES"]}
    await run_pod(node, inline())
    await node.run_for(MEASURED_S)
    expect_asked(node, driver, node.storage.target_path("web", VOLUME))
    volume = (await sizes(node)).get(VOLUME, {})
    expect_size(node, volume, WANTED | {"inodes": 0, "inodesUsed": 0, "inodesFree": 0})
    expect(node, "pvcRef" not in volume, "no claim", volume)


@conformance(id="csi-size-unknown", rules=["SRV-030.9"], needs=LONG, node_config=OFTEN)
async def a_driver_that_cannot_tell_is_not_asked(node: Node) -> None:
    """A volume whose driver tells no sizes is not in the summary. When it can and fails, or answers
    without a size, neither, until it works."""
    driver = await a_driver(node)
    driver.used = dict(USED)
    await bind(node, source())
    await run_pod(node, user())
    await node.run_for(MEASURED_S)
    expect_equal(node, driver.requests(METHOD), [], "calls of a driver that cannot tell")
    expect_equal(node, await sizes(node), {}, "volumes in the summary")
    driver.capabilities = (STATS,)
    await node.run_for(MEASURED_S)
    expect_size(node, (await sizes(node)).get(VOLUME, {}))
    driver.fails(METHOD, "no idea")
    await node.run_for(MEASURED_S)
    expect_equal(node, await sizes(node), {}, "volumes in the summary after a failure")
    driver.works(METHOD)
    driver.used = {}
    await node.run_for(MEASURED_S)
    expect_equal(node, await sizes(node), {}, "volumes in the summary after an empty answer")
    driver.used = dict(USED)
    await node.run_for(MEASURED_S)
    expect_size(node, (await sizes(node)).get(VOLUME, {}))


@conformance(id="csi-size-hangs", rules=["SRV-030.9"], needs=LONG, node_config=OFTEN)
async def a_driver_that_does_not_answer_holds_up_nobody(node: Node) -> None:
    """While a driver does not answer, the volumes of other pods are measured, and after two minutes
    it is asked again."""
    driver = await a_driver(node, STATS)
    driver.used = dict(USED)
    driver.hangs(METHOD, times=1)
    await bind(node, source())
    await run_pod(node, user())
    await node.run_for(MEASURED_S)
    expect_equal(node, len(driver.requests(METHOD)), 1, "calls while the first is not answered")
    await node.api.create_pod(with_volume("other", {"emptyDir": {}}))
    await node.wait_running("other")
    await node.run_for(MEASURED_S)
    expect(node, VOLUME in await sizes(node, "other"), "the other pod's volume is measured")
    expect_equal(node, await sizes(node), {}, "volumes of web in the summary")
    await node.run_for(120.0)
    expect_size(node, (await sizes(node)).get(VOLUME, {}))


@conformance(id="csi-size-gone", rules=["SRV-035"], needs=LONG, node_config=OFTEN)
async def a_claim_without_a_pod_is_not_in_the_metrics(node: Node) -> None:
    """When its pods are gone, a claim's size is not in /metrics any more, without waiting for the
    next measurement."""
    driver = await a_driver(node, STATS)
    driver.used = dict(USED)
    await bind(node, source())
    await run_pod(node, user())
    await node.run_for(MEASURED_S)
    expect(node, await told_of_claims(node), "metrics of the claim")
    await end_pod(node)
    await node.run_for(limits.HOUSEKEEPING_S)
    expect_equal(node, await told_of_claims(node), [], "metrics of the claim")


@conformance(
    id="claim-size", rules=["SRV-030.8"], needs=claims.NEEDS, node_config=OFTEN, alone=True
)
async def a_local_volume_is_as_large_as_its_filesystem(node: Node) -> None:
    """A local volume of a claim is in the summary with the size of the filesystem it is on; one of
    a path of the node is not."""
    await claims.bind(node, claims.local(claims.data(node)))
    await node.api.create_pod(claims.user())
    await node.wait_running("web")
    await node.run_for(MEASURED_S)
    volume = (await sizes(node)).get(VOLUME, {})
    expect_equal(node, volume.get("pvcRef"), DATA, "pvcRef")
    size, used, available = (volume[f"{name}Bytes"] for name in ("capacity", "used", "available"))
    expect(node, 0 < available < size, "room in the volume", volume)
    expect(node, 0 <= used <= size - available, "what is used of it", volume)
    expect(node, 0 < volume["inodesFree"] <= volume["inodes"], "inodes", volume)


@conformance(
    id="claim-size-path", rules=["SRV-030.8"], needs=claims.NEEDS, node_config=OFTEN, alone=True
)
async def a_path_of_the_node_is_not_measured(node: Node) -> None:
    """A volume of a claim that is a path of the node is not in the summary."""
    await claims.bind(node, {"hostPath": {"path": str(claims.data(node))}})
    await node.api.create_pod(claims.user())
    await node.wait_running("web")
    await node.run_for(MEASURED_S)
    expect_equal(node, await sizes(node), {}, "volumes in the summary")


@conformance(id="csi-size-metrics", rules=["SRV-035"], needs=NEEDS, node_config=OFTEN)
async def the_metrics_have_each_claim_once(node: Node) -> None:
    """/metrics has the size of the volume of a claim, once for two pods with it."""
    driver = await a_driver(node, STATS)
    driver.used = dict(USED)
    await bind(node, source())
    for name in ("first", "second"):
        await run_pod(node, user(name))
    await node.run_for(MEASURED_S)
    rows = await told_of_claims(node)
    names = {
        "capacity_bytes": 8 * GI,
        "available_bytes": 5 * GI,
        "used_bytes": 3 * GI,
        "inodes": 1000,
        "inodes_free": 600,
        "inodes_used": 400,
    }
    of_claim = '{namespace="default",persistentvolumeclaim="data"}'
    expected = {f"kubelet_volume_stats_{name}{of_claim}": float(n) for name, n in names.items()}
    actual = {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in rows}
    expect_equal(
        node, (actual, len(rows)), (expected, len(expected)), "metrics of volumes of claims"
    )


@conformance(id="csi-size-beside", rules=["SRV-030.1", "SRV-030.8"], needs=NEEDS, node_config=OFTEN)
async def volumes_of_all_kinds_are_shown_beside_each_other(node: Node) -> None:
    """A pod with a volume of a claim and an emptyDir has both in the summary, each with its own
    numbers."""
    driver = await a_driver(node, STATS)
    driver.used = dict(USED)
    await bind(node, source())
    scratch = {"name": "scratch", "emptyDir": {}}
    claim = {"name": VOLUME, "persistentVolumeClaim": {"claimName": "data"}}
    mounts = [{"name": each, "mountPath": f"/{each}"} for each in (VOLUME, "scratch")]
    await run_pod(
        node, pod("web", container("main", volumeMounts=mounts), volumes=[scratch, claim])
    )
    await node.run_for(MEASURED_S)
    shown = await sizes(node)
    expect_equal(node, sorted(shown), sorted([VOLUME, "scratch"]), "volumes in the summary")
    expect_size(node, shown[VOLUME])
    expect(node, shown["scratch"]["usedBytes"] < GI, "the emptyDir's own use", shown["scratch"])
    expect(node, "pvcRef" not in shown["scratch"], "no claim of the emptyDir", shown["scratch"])
