"""Pods that wait for volumes: what is told, what goes on beside them, and how they end."""

import os

from kubelet_conformance.cases.volumes.common import (
    UPDATE_S,
    VOLUME,
    config_map,
    main,
    run_with,
    wait_failed,
    wait_files,
    with_volume,
)
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.registry import Feature, conformance

NEEDS = [Feature.API, Feature.STATUS]
LONG = [*NEEDS, Feature.VIRTUAL_TIME]
SETTINGS = {"configMap": {"name": "settings"}}
GONE_S = limits.STOP_S + limits.STATUS_PASS_S + limits.HOUSEKEEPING_S


@conformance(id="volume-wait-of-one", rules=["NODE-202.1", "NODE-201.2"], needs=NEEDS)
async def a_waiting_pod_holds_up_no_other(node: Node) -> None:
    """While one pod waits for its ConfigMap, another one starts, and the waiting one can be
    deleted at once."""
    await node.api.create_pod(with_volume("waits", SETTINGS))
    await wait_failed(node, "waits")
    await node.api.create_pod(pod("other"))
    await node.wait_running("other")
    await node.api.delete_pod("waits")
    await node.run_until(
        lambda: node.api.pod("waits") is None, within_s=GONE_S, what="the pod is gone"
    )
    expect_equal(node, node.count("RunPodSandbox", pod="waits"), 0, "sandboxes of the pod")


@conformance(id="volume-wait-tries", rules=["NODE-202.2"], needs=LONG)
async def tries_are_further_apart_each_time(node: Node) -> None:
    """The tries to fill a volume come after 0.5, 1, 2, ... seconds: eight in the first minute and
    a half."""
    await node.api.create_pod(with_volume("web", SETTINGS))
    await wait_failed(node, "web")
    await node.run_for(80)
    tries = node.event_count("FailedMount", pod="web")
    expect(node, 7 <= tries <= 9, "seven to nine tries in 80 s", tries)


@conformance(id="volume-wait-anew", rules=["NODE-202.2"], needs=LONG)
async def after_a_success_the_pauses_begin_anew(node: Node) -> None:
    """When a volume was filled at last, its next failure is tried again as soon as the first one
    was, however long the pauses had become."""
    await node.api.create_pod(with_volume("web", SETTINGS))
    await wait_failed(node, "web")
    await node.run_for(40)
    await node.api.create_object("configmaps", config_map("settings", a="1"))
    await node.run_until(
        lambda: node.running("web"), within_s=40 + limits.START_S, what="the pod runs"
    )
    before = node.event_count("FailedMount", pod="web")
    await node.api.delete_object("configmaps", "settings")
    await node.run_until(
        lambda: node.event_count("FailedMount", pod="web") > before,
        within_s=UPDATE_S,
        what="the volume cannot be filled anew",
    )
    await node.run_for(20)
    tries = node.event_count("FailedMount", pod="web") - before
    expect(node, tries >= 5, "five tries in 20 s", tries)


@conformance(id="volume-claim-missing", rules=["NODE-214.1", "NODE-202.3"], needs=NEEDS)
async def a_missing_claim_is_told(node: Node) -> None:
    """A pod with a claim that does not exist waits, and an event says so."""
    source = {"persistentVolumeClaim": {"claimName": "data"}}
    await node.api.create_pod(with_volume("web", source))
    message = await wait_failed(node, "web")
    expected_message = (
        "Unable to attach or mount volumes: unmounted volumes=[v], unattached volumes=[], failed "
        "to process volumes=[v]: error processing PVC default/data: failed to fetch PVC from API "
        'server: persistentvolumeclaims "data" not found'
    )
    expect_equal(node, message, expected_message, "message of the event")
    expect_equal(node, node.count("RunPodSandbox"), 0, "sandboxes")


@conformance(id="volume-claim-pending", rules=["NODE-214.1"], needs=NEEDS)
async def a_claim_that_is_not_bound_is_told(node: Node) -> None:
    """The same for a claim that has no volume yet."""
    resources = {"requests": {"storage": "1Gi"}}
    spec = {"accessModes": ["ReadWriteOnce"], "resources": resources}
    claim = {"metadata": {"name": "data"}, "spec": spec}
    await node.api.create_object("persistentvolumeclaims", claim)
    source = {"persistentVolumeClaim": {"claimName": "data"}}
    await node.api.create_pod(with_volume("web", source))
    message = await wait_failed(node, "web")
    why = "error processing PVC default/data: PVC is not bound"
    expect(node, message.endswith(f"failed to process volumes=[v]: {why}"), why, message)


@conformance(id="volume-csi-driver-missing", rules=["NODE-214.2"], needs=NEEDS)
async def a_missing_driver_is_told(node: Node) -> None:
    """A pod with an inline volume of a CSI driver that is not on the node waits, and an event names
    the driver."""
    await node.api.create_pod(with_volume("web", {"csi": {"driver": "none.example"}}))
    message = await wait_failed(node, "web")
    why = "driver name none.example not found in the list of registered CSI drivers"
    expect(node, message.endswith(why), why, message)
    expect(node, message.startswith('MountVolume.SetUp failed for volume "v" : '), "SetUp", message)
    expect_equal(node, node.count("RunPodSandbox"), 0, "sandboxes")


@conformance(id="volume-content-removed", rules=["NODE-208.1"], needs=NEEDS)
async def nothing_is_left_of_the_volumes_of_a_deleted_pod(node: Node) -> None:
    """When a pod is gone, so is its directory with the files of its ConfigMap."""
    await node.api.create_object("configmaps", config_map("settings", a="1"))
    await run_with(node, with_volume("web", SETTINGS))
    place = node.machine.made_volume("web", VOLUME)
    await node.api.delete_pod("web")
    await node.run_until(
        lambda: node.api.pod("web") is None, within_s=GONE_S, what="the pod is gone"
    )
    await node.run_until(
        lambda: not place.exists(),
        within_s=GONE_S,
        what="the volume's directory is gone",
    )


@conformance(
    id="volume-after-restart", rules=["NODE-201.3", "NODE-206.3"], needs=[*LONG, Feature.RESTART]
)
async def a_new_kubelet_goes_on_with_the_volumes(node: Node) -> None:
    """A kubelet that is started again finds the volumes of running pods, does not write them
    again, and keeps them up to date; no container is restarted."""
    await node.api.create_object("configmaps", config_map("settings", a="1"))
    await run_with(node, with_volume("web", SETTINGS))
    place = node.machine.made_volume("web", VOLUME)
    before = (place / "..data").readlink()
    await node.kubelet.restart()
    await node.run_for(limits.START_S)
    expect_equal(node, (place / "..data").readlink(), before, "the directory of the files")
    await node.api.change_object("configmaps", "settings", {"data": {"a": "2"}})
    await wait_files(node, "web", {"a": "2"})
    expect_equal(node, node.count("CreateContainer", container="main"), 1, "creations of main")


@conformance(id="volume-sub-path", rules=["NODE-211.2", "NODE-205.2"], needs=NEEDS)
async def one_file_of_a_config_map_can_be_mounted(node: Node) -> None:
    """With a subPath a container gets one file of a ConfigMap, behind all links, also beside the
    whole volume."""
    await node.api.create_object("configmaps", config_map("settings", a="1", b="2"))
    mount = {"name": VOLUME, "mountPath": "/etc/a", "subPath": "a"}
    whole = {"name": VOLUME, "mountPath": "/v"}
    plan = with_volume("web", SETTINGS, container("main", volumeMounts=[whole, mount]))
    await run_with(node, plan)
    mounts = node.calls("CreateContainer", container="main")[0].request.config.mounts
    of_file, of_all = (
        next(m for m in mounts if m.container_path == path) for path in ("/etc/a", "/v")
    )
    expect(node, os.path.isfile(of_file.host_path), "a file at /etc/a", of_file.host_path)
    with open(of_file.host_path) as file:
        content = file.read()
    expect_equal(node, (content, of_file.readonly), ("1", True), "content, read-only")
    expect(node, os.path.isdir(of_all.host_path), "a directory at /v", of_all.host_path)


@conformance(id="volume-and-variables", rules=["NODE-207.1", "LIFE-137.1"], needs=NEEDS)
async def variables_and_volumes_have_one_source(node: Node) -> None:
    """A ConfigMap that a container wants as variables and as a volume is listed once."""
    await node.api.create_object("configmaps", config_map("settings", MODE="fast"))
    env = [{"configMapRef": {"name": "settings"}}]
    files = await run_with(node, with_volume("web", SETTINGS, main(envFrom=env)))
    expect_equal(node, files, {"MODE": "fast"}, "files")
    variables = {e.key: e.value for e in node.calls("CreateContainer")[0].request.config.envs}
    expect(
        node, variables.get("MODE") in ("fast", b"fast"), "the variable MODE", variables.get("MODE")
    )
    gets = node.api.requests("GET", r"/namespaces/default/configmaps")
    lists = [request for request in gets if "watch" not in str(getattr(request, "query", ""))]
    expect(node, len(lists) <= 2, "one list and one watch at most", len(lists))
