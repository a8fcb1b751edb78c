"""The end of volumes of storage drivers, and what a new kubelet makes of them (NODE-219)."""

import json
from pathlib import Path
from typing import Any, Final

from fakecri.csi import CsiCall
from kubelet_conformance.cases.volumes.csi.common import (
    AGAIN_S,
    BOTH,
    DISKS,
    END_S,
    HANDLE,
    IN,
    LONG,
    NEEDS,
    OUT,
    RESTART,
    RESTARTED_S,
    SLOW_S,
    SOCKET,
    STAGE,
    VOLUME_CALLS,
    a_driver,
    bind,
    end_pod,
    expect_calls,
    inline,
    register,
    run_pod,
    running,
    source,
    user,
    wait_calls,
    wait_end,
    wait_runs,
)
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.node import Node
from kubelet_conformance.registry import conformance

DATA: Final = "vol_data.json"


def data(path: Path) -> dict[str, Any]:
    """What the kubelet has written down beside a place of a volume."""
    return dict(json.loads((path.parent / DATA).read_text()))


def ends(node: Node) -> list[float]:
    """When each StopContainer had ended, -1 for one that has not."""
    return [node.ended_s(call) for call in node.calls("StopContainer", pod="web")]


@conformance(id="csi-end-slow", rules=["NODE-219.6"], needs=LONG)
async def a_call_that_is_under_way_comes_to_its_end(node: Node) -> None:
    """A pod is deleted while its volume is published: the driver is done with that before it is
    asked to take the volume away."""
    driver = await a_driver(node, STAGE)
    await bind(node, source())
    driver.delays(IN[1], SLOW_S)
    await node.api.create_pod(user())
    await wait_calls(node, driver, IN[1])
    await node.api.delete_pod("web")
    await node.run_for(SLOW_S / 2)
    expect_equal(node, driver.methods(*OUT), [], "calls that end the volume")
    await wait_end(node, driver, within_s=SLOW_S)
    expect_calls(node, driver, (*IN, *OUT))


@conformance(id="csi-end", rules=["NODE-219.1", "NODE-219.2"], needs=NEEDS)
async def a_volume_ends_after_its_pod(node: Node) -> None:
    """When the containers of a pod have ended its volume is unpublished, then unstaged; the pod is
    gone when that is done, and no directory of the volume is left."""
    driver = await running(node, STAGE)
    target = node.storage.target_path("web", "pv")
    stops: list[list[float]] = []

    def note(call: CsiCall) -> None:
        if call.method == OUT[0]:
            stops.append(ends(node))

    driver.on_call = note
    await end_pod(node)
    await wait_end(node, driver)
    expect_calls(node, driver, VOLUME_CALLS)
    expect(node, stops[0] and min(stops[0]) >= 0, "calls after the container's end", stops)
    unpublish, unstage = (driver.requests(method)[0] for method in OUT)
    expect_equal(node, unpublish.target_path, str(target), "target that is unpublished")
    staging = str(node.storage.staging_path(DISKS, HANDLE))
    expect_equal(node, unstage.staging_target_path, staging, "directory that is unstaged")
    expect_equal(node, [unpublish.volume_id, unstage.volume_id], [HANDLE] * 2, "volume")
    expect(node, not target.parent.exists(), "no directory of the pod's volume", target.parent)


@conformance(id="csi-end-not-staged", rules=["NODE-219.1", "NODE-219.2"], needs=NEEDS)
async def a_volume_that_was_not_staged_is_only_unpublished(node: Node) -> None:
    """Without the capability to stage a driver is only asked to unpublish."""
    driver = await running(node)
    await end_pod(node)
    await node.run_for(limits.START_S)
    expect_calls(node, driver, (IN[1], OUT[0]))


@conformance(id="csi-end-last-pod", rules=["NODE-219.2"], needs=NEEDS)
async def the_last_pod_ends_the_volume_of_the_node(node: Node) -> None:
    """A volume of two pods is unstaged when the second has ended."""
    driver = await running(node, STAGE)
    await run_pod(node, user("second"))
    target = str(node.storage.target_path("web", "pv"))
    await end_pod(node)
    await node.run_for(limits.START_S)
    expect_calls(node, driver, (*IN, IN[1], OUT[0]))
    expect_equal(node, driver.requests(OUT[0])[0].target_path, target, "target")
    await end_pod(node, "second")
    await wait_end(node, driver)
    expect_calls(node, driver, (*IN, IN[1], OUT[0], *OUT))


@conformance(id="csi-end-fails", rules=["NODE-219.1", "NODE-208.2", "NODE-202.2"], needs=NEEDS)
async def the_end_of_a_pod_waits_for_its_volume(node: Node) -> None:
    """A volume that cannot be unpublished is tried again, and holds up the end of its pod; it is
    not unstaged meanwhile."""
    driver = await running(node, STAGE)
    driver.fails("NodeUnpublishVolume", "busy")
    await node.api.delete_pod("web")
    await wait_calls(node, driver, OUT[0], 3)
    await node.run_for(limits.START_S)
    expect(node, node.api.pod("web"), "the pod is there")
    expect_equal(node, driver.requests(OUT[1]), [], "calls to unstage")
    driver.works("NodeUnpublishVolume")
    await node.run_until(
        lambda: node.api.pod("web") is None, within_s=AGAIN_S + END_S, what="the pod is gone"
    )
    await wait_end(node, driver)


@conformance(id="csi-end-left-over", rules=["NODE-219.1", "NODE-208.2"], needs=NEEDS)
async def what_a_driver_leaves_is_removed_if_it_is_empty(node: Node) -> None:
    """A pod whose driver leaves files where the volume was does not end, and the driver is asked
    again; an empty directory is removed."""
    driver = await running(node)
    target = node.storage.target_path("web", "pv")
    driver.leaves = "files"
    await node.api.delete_pod("web")
    await wait_calls(node, driver, OUT[0], 3)
    expect(node, target.exists() and node.api.pod("web"), "the pod and its files are there")
    driver.leaves = "directory"
    await node.run_until(
        lambda: node.api.pod("web") is None, within_s=AGAIN_S + END_S, what="the pod is gone"
    )
    await node.run_for(limits.START_S)
    expect(node, not target.parent.exists(), "no directory of the pod's volume", target)


@conformance(id="csi-wanted-again", rules=["NODE-219.2"], needs=NEEDS)
async def a_volume_that_is_wanted_again_is_staged_again(node: Node) -> None:
    """A pod that wants a volume while it is unstaged waits for that; then it is staged anew."""
    driver = await running(node, STAGE)
    driver.delays("NodeUnstageVolume", 20, times=1)
    await end_pod(node)
    await wait_calls(node, driver, OUT[1])
    await node.api.create_pod(user("second"))
    await node.run_for(limits.START_S)
    expect_calls(node, driver, VOLUME_CALLS, "early calls")
    await wait_runs(node, "second", within_s=20 + AGAIN_S)
    expect_calls(node, driver, (*VOLUME_CALLS, *IN))


@conformance(id="csi-wanted-after-failure", rules=["NODE-219.2"], needs=LONG)
async def a_volume_that_a_pod_has_again_is_not_unstaged(node: Node) -> None:
    """A volume that could not be unstaged, and that another pod wants meanwhile, is not tried to be
    unstaged any more while that pod has it; it is when that one has ended."""
    driver = await running(node, STAGE)
    driver.fails("NodeUnstageVolume", "busy")
    await end_pod(node)
    await wait_calls(node, driver, OUT[1], 2)
    await run_pod(node, user("second"))
    count = len(driver.requests(OUT[1]))
    await node.run_for(4 * AGAIN_S)
    expect_equal(node, len(driver.requests(OUT[1])), count, "calls to unstage while a pod has it")
    driver.works("NodeUnstageVolume")
    await end_pod(node, "second")
    await wait_end(node, driver)


@conformance(id="csi-data", rules=["NODE-219.3"], needs=NEEDS)
async def the_kubelet_writes_down_what_it_needs_to_end_a_volume(node: Node) -> None:
    """Beside the directories of a volume is a file that says which volume of which driver it
    is."""
    await a_driver(node, STAGE, **BOTH)
    await bind(node, source())
    await run_pod(node, user())
    await run_pod(node, inline("inline"))
    of_node = data(node.storage.staging_path(DISKS, HANDLE))
    expected_data = {"driverName": DISKS, "volumeHandle": HANDLE}
    expect_equal(node, of_node, expected_data, "file beside the staged volume")
    handle = node.storage.inline_handle("inline", "v")
    for pod, name, volume, kind in (
        ("web", "pv", HANDLE, "Persistent"),
        ("inline", "v", handle, "Ephemeral"),
    ):
        expected_data = {
            "driverName": DISKS,
            "volumeHandle": volume,
            "specVolID": name,
            "nodeName": node.name,
            "attachmentID": node.storage.attachment_name(DISKS, volume),
            "volumeLifecycleMode": kind,
        }
        file_data = data(node.storage.target_path(pod, name))
        expect_equal(node, file_data, expected_data, f"file beside the volume of pod {pod}")


@conformance(id="csi-deleted-meanwhile", rules=["NODE-219.3", "NODE-219.2"], needs=RESTART)
async def a_new_kubelet_ends_the_volumes_of_a_pod_that_is_gone(node: Node) -> None:
    """The volumes of a pod that was deleted while no kubelet ran are unpublished and unstaged by
    the next."""
    driver = await a_driver(node, STAGE, **BOTH)
    await bind(node, source())
    await run_pod(node, user())
    await run_pod(node, inline("inline"))
    directories = [node.machine.pod_directory(pod) for pod in ("web", "inline")]
    target = str(node.storage.target_path("web", "pv"))
    await node.kubelet.kill()
    for pod in ("web", "inline"):
        await node.api.delete_pod(pod, grace_s=0)
    await node.kubelet.start()
    await wait_end(node, driver, within_s=RESTARTED_S + 2 * END_S)
    ends = driver.methods(*OUT)
    expect_equal(node, sorted(ends), sorted((OUT[0], *OUT)), "calls of the end")
    web = [str(driver.requests(OUT[0])[n].target_path) for n in range(2)].index(target)
    expect(node, ends.index(OUT[1]) > web, "the volume is unstaged after it was unpublished", ends)
    await node.run_until(
        lambda: not any(place.exists() for place in directories),
        within_s=END_S,
        what="the pods' directories are gone",
    )


@conformance(id="csi-restarted", rules=["NODE-219.4"], needs=RESTART)
async def a_new_kubelet_stages_and_publishes_again(node: Node) -> None:
    """A new kubelet stages and publishes the volumes of running pods again; it ends none, and no
    container is restarted."""
    driver = await running(node, STAGE)
    await node.kubelet.restart()
    await wait_calls(node, driver, IN[1], 2, within_s=RESTARTED_S)
    await node.run_for(limits.START_S)
    expect_calls(node, driver, IN * 2)
    expect_equal(node, node.count("CreateContainer", container="main"), 1, "creations of main")
    expect_equal(node, node.count("StopContainer"), 0, "stops")
    await end_pod(node)
    await wait_end(node, driver)


@conformance(id="csi-end-driver-missing", rules=["NODE-219.4"], needs=LONG)
async def the_end_of_a_volume_waits_for_its_driver(node: Node) -> None:
    """A pod whose driver is gone does not end before it is there again."""
    driver = await running(node, STAGE)
    await node.plugins.withdraw(SOCKET)
    await node.run_until(
        lambda: not node.storage.listed_driver(DISKS),
        within_s=limits.START_S,
        what="the driver is not registered",
    )
    await node.api.delete_pod("web")
    await node.run_for(END_S)
    expect(node, node.api.pod("web"), "the pod is there")
    await register(node, driver)
    await node.run_until(
        lambda: node.api.pod("web") is None, within_s=2 * END_S + AGAIN_S, what="the pod is gone"
    )
    await wait_end(node, driver)
    expect_calls(node, driver, VOLUME_CALLS)
