"""Persistent volumes of storage drivers: what a driver is asked, in which order, and what comes of
its failures (NODE-217)."""

from typing import Any, Final

from fakecri.csi import FakeCsiDriver
from kubelet_conformance.cases.volumes.common import secret
from kubelet_conformance.cases.volumes.csi.common import (
    CALL_S,
    DISKS,
    HANDLE,
    IN,
    LONG,
    NEEDS,
    NOT_FOUND,
    STAGE,
    a_driver,
    bind,
    expect_calls,
    expect_given,
    expect_no_failure,
    mode,
    register,
    run_pod,
    source,
    user,
    volume_of,
    wait_runs,
    wait_told,
)
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.node import Node
from kubelet_conformance.registry import conformance

WRITERS: Final = "SINGLE_NODE_MULTI_WRITER"


def mode_of(path: Any) -> str:
    """The permissions of a directory, in octal digits."""
    return oct(path.stat().st_mode & 0o7777)


@conformance(id="csi-volume", rules=["NODE-217.3", "NODE-217.4", "NODE-217.5"], needs=NEEDS)
async def a_volume_is_staged_and_then_published(node: Node) -> None:
    """A driver stages a volume in a directory of the node and then publishes it for the pod: it is
    told all that the persistent volume says, and the container gets the place."""
    driver = await a_driver(node, STAGE)
    fields: dict[str, Any] = {
        "fsType": "xfs",
        "volumeAttributes": {"tier": "fast"},
        "readOnly": True,
    }
    await bind(node, source(**fields), mountOptions=["noatime", "discard"])
    await run_pod(node, user())
    expect_calls(node, driver, IN)
    stage, publish = driver.requests(IN[0])[0], driver.requests(IN[1])[0]
    staging = node.storage.staging_path(DISKS, HANDLE)
    target = node.storage.target_path("web", "pv")
    for request in (stage, publish):
        actual = request.volume_id, request.staging_target_path, dict(request.volume_context)
        expect_equal(node, actual, (HANDLE, str(staging), {"tier": "fast"}), "volume of a call")
        options = request.volume_capability.mount
        actual = options.fs_type, list(options.mount_flags), options.volume_mount_group
        expect_equal(node, actual, ("xfs", ["noatime", "discard"], ""), "mount of a call")
        expect_equal(node, mode(request), "SINGLE_NODE_WRITER", "access mode")
        expect_equal(node, (dict(request.publish_context), dict(request.secrets)), ({}, {}), "rest")
    expect_equal(node, (publish.target_path, publish.readonly), (str(target), False), "target")
    expect_equal(node, [mode_of(staging), mode_of(target.parent)], ["0o750"] * 2, "modes")
    expect_given(node, "web", target)
    expect_no_failure(node)


@conformance(id="csi-no-stage", rules=["NODE-217.3", "NODE-217.4"], needs=NEEDS)
async def a_driver_that_does_not_stage_only_publishes(node: Node) -> None:
    """A driver without the capability to stage is only asked to publish."""
    driver = await a_driver(node)
    await bind(node, source())
    await run_pod(node, user())
    expect_calls(node, driver, IN[1:])
    publish = driver.requests(IN[1])[0]
    expect_equal(node, publish.staging_target_path, "", "staging path")
    expect_equal(node, publish.target_path, str(node.storage.target_path("web", "pv")), "target")


@conformance(id="csi-two-pods", rules=["NODE-217.3", "NODE-217.4"], needs=NEEDS)
async def a_volume_is_staged_once_for_two_pods(node: Node) -> None:
    """Two pods with one volume: it is staged once, and published for each."""
    driver = await a_driver(node, STAGE)
    await bind(node, source())
    await run_pod(node, user("first"))
    await run_pod(node, user("second"))
    expect_calls(node, driver, (*IN, IN[1]))
    targets = [request.target_path for request in driver.requests(IN[1])]
    expected_targets = [str(node.storage.target_path(pod, "pv")) for pod in ("first", "second")]
    expect_equal(node, targets, expected_targets, "targets")


@conformance(id="csi-access-modes", rules=["NODE-217.5"], needs=NEEDS)
async def the_driver_is_told_how_a_volume_is_used(node: Node) -> None:
    """The first access mode of a persistent volume is told to the driver in its words, which are
    others for a driver that tells the writers of one node apart."""
    modes = {
        "ReadWriteOnce": ("SINGLE_NODE_WRITER", WRITERS),
        "ReadWriteOncePod": ("SINGLE_NODE_WRITER", "SINGLE_NODE_SINGLE_WRITER"),
        "ReadOnlyMany": ("MULTI_NODE_READER_ONLY", "MULTI_NODE_READER_ONLY"),
        "ReadWriteMany": ("MULTI_NODE_MULTI_WRITER", "MULTI_NODE_MULTI_WRITER"),
    }
    driver = await a_driver(node, STAGE)
    for number, capabilities in enumerate(((STAGE,), (STAGE, WRITERS))):
        driver.capabilities = capabilities
        for kind, expected_modes in modes.items():
            name = f"{kind.lower()}-{number}"
            more = [] if kind == "ReadWriteOncePod" else set(modes) - {kind, "ReadWriteOncePod"}
            await bind(node, source(name), name, accessModes=[kind, *sorted(more)])
            await run_pod(node, user(name, claim=name))
            modes_sent = [mode(driver.requests(method)[-1]) for method in IN]
            expect_equal(node, modes_sent, [expected_modes[number]] * 2, f"modes for {kind}")


@conformance(id="csi-read-only", rules=["NODE-217.5", "NODE-217.9"], needs=NEEDS)
async def a_claim_can_be_wanted_read_only(node: Node) -> None:
    """A claim that the pod wants read-only is published so, and so in its container."""
    driver = await a_driver(node, STAGE)
    await bind(node, source())
    await run_pod(node, user(read_only=True))
    expect_equal(node, driver.requests(IN[1])[0].readonly, True, "readonly")
    expect_given(node, "web", node.storage.target_path("web", "pv"), read_only=True)


@conformance(id="csi-secrets", rules=["NODE-217.6"], needs=NEEDS)
async def a_driver_gets_its_secrets(node: Node) -> None:
    """The secrets for staging and for publishing go with these calls; while one is missing the pod
    waits, and an event says so."""
    driver = await a_driver(node, STAGE)
    stage, publish = ({"name": name, "namespace": "default"} for name in ("stage", "publish"))
    await bind(node, source(nodeStageSecretRef=stage, nodePublishSecretRef=publish))
    await node.api.create_pod(user())
    failures = {"stage": ("MountDevice", "NodeStage"), "publish": ("SetUp", "NodePublish")}
    for name, (step, call) in failures.items():
        why = (
            f'MountVolume.{step} failed for volume "pv" : fetching {call}SecretRef default/{name} '
            f"failed: kubernetes.io/csi: failed to find the secret {name} in the namespace default "
            f'with error: secrets "{name}" not found'
        )
        await wait_told(node, why)
        await node.api.create_secret(secret(name, key=f"of {name}"))
    await wait_runs(node, "web")
    expect_calls(node, driver, IN)
    for method, name in zip(IN, failures, strict=True):
        secrets = dict(driver.requests(method)[0].secrets)
        expect_equal(node, secrets, {"key": f"of {name}"}, f"secrets of {method}")


@conformance(id="csi-stage-fails", rules=["NODE-217.3", "NODE-219.5", "NODE-202.2"], needs=NEEDS)
async def staging_that_fails_is_tried_again(node: Node) -> None:
    """A failure to stage is told by an event; it is tried again, and then the pod starts."""
    driver = await a_driver(node, STAGE)
    driver.fails("NodeStageVolume", "disk is on fire", times=2)
    await bind(node, source())
    await node.api.create_pod(user())
    why = (
        'MountVolume.MountDevice failed for volume "pv" : rpc error: code = Internal desc = disk '
        "is on fire"
    )
    await wait_told(node, why)
    place = node.storage.staging_path(DISKS, HANDLE).parent
    expect(node, not place.exists(), "no directory of the volume between the tries", place)
    await wait_runs(node, "web")
    expect_calls(node, driver, (IN[0], IN[0], *IN))


@conformance(id="csi-publish-fails", rules=["NODE-217.4", "NODE-219.5", "NODE-202.2"], needs=NEEDS)
async def publishing_that_fails_is_tried_again(node: Node) -> None:
    """The same for a failure to publish; the volume is not staged again."""
    driver = await a_driver(node, STAGE)
    driver.fails("NodePublishVolume", "no such mount", code="INVALID_ARGUMENT", times=2)
    await bind(node, source())
    await node.api.create_pod(user())
    why = (
        'MountVolume.SetUp failed for volume "pv" : rpc error: code = InvalidArgument desc = no '
        "such mount"
    )
    await wait_told(node, why)
    place = node.storage.target_path("web", "pv").parent
    expect(node, not place.exists(), "no directory of the volume between the tries", place)
    await wait_runs(node, "web")
    expect_calls(node, driver, (*IN, IN[1], IN[1]))


@conformance(id="csi-driver-later", rules=["NODE-217.8"], needs=NEEDS)
async def a_driver_may_come_later(node: Node) -> None:
    """While the driver is not registered the pod waits with an event, and starts when it is."""
    await node.storage.describe_driver(DISKS)
    await node.run_for(limits.WATCH_S)
    await bind(node, source())
    await node.api.create_pod(user())
    why = (
        'MountVolume.MountDevice failed for volume "pv" : kubernetes.io/csi: attacher.MountDevice '
        f"failed to create newCsiDriverClient: {NOT_FOUND}"
    )
    await wait_told(node, why)
    driver = FakeCsiDriver(DISKS, capabilities=[STAGE])
    await register(node, driver)
    await wait_runs(node, "web")
    expect_calls(node, driver, IN)


@conformance(id="csi-hangs", rules=["NODE-217.9"], needs=LONG)
async def a_call_may_take_two_minutes(node: Node) -> None:
    """A driver that does not answer in two minutes has failed and is asked again; other volumes do
    not wait for it."""
    driver = await a_driver(node, STAGE)
    driver.hangs("NodeStageVolume", times=1)
    await bind(node, source())
    await node.api.create_pod(user())
    await node.run_until(
        lambda: driver.requests(IN[0]), within_s=limits.START_S, what="a call of NodeStageVolume"
    )
    began_s = node.now_s
    await bind(node, source("vol-2"), "other")
    await run_pod(node, user("other", claim="other"))
    why = (
        'MountVolume.MountDevice failed for volume "pv" : rpc error: code = DeadlineExceeded desc '
        "= context deadline exceeded"
    )
    await node.run_until(
        lambda: why in [event["message"] for event in node.events("FailedMount", pod="web")],
        within_s=CALL_S + limits.START_S,
        what=f"an event FailedMount: {why}",
    )
    expect(node, node.now_s - began_s > CALL_S - 5, "two minutes for a call", node.now_s - began_s)
    await wait_runs(node, "web")


@conformance(id="csi-not-of-this-node", rules=["NODE-217.9", "NODE-215.3"], needs=NEEDS)
async def a_volume_of_another_node_is_not_staged(node: Node) -> None:
    """A driver is not asked for a volume whose node affinity this node does not meet."""
    driver = await a_driver(node, STAGE)
    rule = {"key": "kubernetes.io/os", "operator": "In", "values": ["none"]}
    affinity = {"required": {"nodeSelectorTerms": [{"matchExpressions": [rule]}]}}
    await bind(node, source(), nodeAffinity=affinity)
    await node.api.create_pod(user())
    await wait_told(
        node,
        'MountVolume.NodeAffinity check failed for volume "pv" : no matching NodeSelectorTerms',
    )
    expect_calls(node, driver, ())


@conformance(id="csi-one-pod", rules=["NODE-217.9", "NODE-215.7"], needs=NEEDS)
async def a_volume_for_one_pod_is_not_shared(node: Node) -> None:
    """A volume that is for one pod is not published for a second one while the first is there."""
    driver = await a_driver(node, STAGE)
    await bind(node, source(), accessModes=["ReadWriteOncePod"])
    await run_pod(node, user("first"))
    await node.api.create_pod(user())
    why = (
        f'MountVolume.SetUp failed for volume "{volume_of("data")}" : volume uses the '
        "ReadWriteOncePod access mode and is already in use by another pod"
    )
    await wait_told(node, why)
    expect_calls(node, driver, IN)
