"""Instances of containers of which the runtime knows little: what the status makes of them."""

from typing import Any

from kubecri.v1 import api_pb2 as cri

from kubelet_conformance.cases.lifecycle.answers.api_pods import api_running
from kubelet_conformance.cases.lifecycle.running.records import remove
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import exits, runs
from kubelet_conformance.registry import Feature, conformance

API, STATUS, FAULTS = Feature.API, Feature.STATUS, Feature.FAULTS
RESTART, KILL = Feature.RESTART, Feature.OUTSIDE_KILL


@conformance(id="lost-before-the-newest", rules=["LIFE-170.4"], needs=[API, FAULTS, RESTART])
async def an_earlier_instance_of_unknown_state_is_shown_as_lost(node: Node) -> None:
    """The API server shows an instance as running that a kubelet has replaced since, and whose
    state the runtime does not know any more. The next kubelet shows the new instance, and the old
    one as lost."""

    def unknown(answer: Any) -> None:
        if answer.status.metadata.attempt == 0:
            answer.status.state = cri.CONTAINER_UNKNOWN

    await node.api.create_pod(pod("web"))
    await api_running(node, "web")
    await node.run_for(limits.NOTICE_S)
    await node.kubelet.stop()
    with node.runtime.on("ContainerStatus", container="main").changes_answer(unknown):
        with node.api.fails("PATCH", "/pods/web/status"):
            await node.kubelet.start()
            await node.run_until(
                lambda: (
                    [one.ended_s is not None for one in node.calls("StartContainer", pod="web")]
                    == [True, True]
                ),
                within_s=limits.START_S + limits.STOP_S,
                what="a second instance that was started",
            )
            await node.kubelet.kill()
        await node.kubelet.start()
        await node.run_until(
            lambda: node.api.container("web", "main").get("lastState"),
            within_s=limits.START_S + limits.STATUS_PASS_S,
            what="a last state",
        )
        row = node.api.container("web", "main")
    ended = row["lastState"].get("terminated", {})
    fields = (ended.get("exitCode"), ended.get("reason"), row["restartCount"])
    expect_equal(node, fields, (137, "ContainerStatusUnknown", 1), "code, reason, restart count")
    expect(node, "running" in row["state"], "the second instance runs", row["state"])


@conformance(id="lost-is-counted", rules=["LIFE-172.2"], needs=[API, FAULTS])
async def a_lost_container_counts_as_a_restart_at_once(node: Node) -> None:
    """A container that was removed behind the kubelet's back counts as a restart before there is
    another instance."""
    await node.api.create_pod(pod("web"))
    await api_running(node, "web")
    await node.run_for(limits.NOTICE_S)
    with node.runtime.on("CreateContainer", container="main").fails("UNKNOWN", "no space"):
        await remove(node, "main")
        await node.run_until(
            lambda: node.api.container("web", "main").get("lastState"),
            within_s=2 * limits.NOTICE_S,
            what="the end of the first instance",
        )
        row = node.api.container("web", "main")
        last = row["lastState"].get("terminated", {})
        expect_equal(node, last.get("reason"), "ContainerStatusUnknown", "reason in lastState")
        expect_equal(node, row["restartCount"], 1, "restart count without another instance")


@conformance(id="lost-of-a-deleted-pod", rules=["LIFE-172.2"], needs=[API, RESTART])
async def a_lost_container_of_a_deleted_pod_is_no_restart(node: Node) -> None:
    """A container that was removed while its pod is being deleted and the kubelet is away does not
    count as a restart: nothing is started again in that pod."""
    keep = {"finalizers": ["example.com/look"]}
    await node.api.create_pod(pod("web", grace_s=2, metadata=keep))
    await api_running(node, "web")
    await node.run_for(limits.NOTICE_S)
    await node.kubelet.stop()
    await node.api.delete_pod("web")
    await remove(node, "main")
    await node.kubelet.start()
    await node.run_until(
        lambda: "terminated" in node.api.container("web", "main").get("state", {}),
        within_s=limits.START_S + limits.STATUS_PASS_S + limits.STOP_S,
        what="the end of main",
    )
    row = node.api.container("web", "main")
    fields = (row["state"]["terminated"].get("exitCode"), row["restartCount"])
    expect_equal(node, fields, (137, 0), "exit code, restart count")
    await node.api.patch_pod("web", {"metadata": {"finalizers": None}})


@conformance(id="pending-again", rules=["LIFE-166.5", "LIFE-161.1"], needs=[STATUS, KILL])
async def a_pod_whose_init_containers_run_again_is_pending_again(node: Node) -> None:
    """When a running pod gets a new sandbox its init containers run again, and the pod is Pending
    until they have ended."""
    setup = container("setup", exits(0, after_s=4))
    await node.apply_static(pod("web", container("main", runs()), init=[setup]))
    await node.run_until(lambda: node.running("web"), within_s=4 + 2 * limits.START_S)
    await node.run_for(limits.NOTICE_S)
    await node.runtime.stop_sandbox("web")
    await node.run_until(
        lambda: node.phases("web")[-2:] == ["Pending", "Running"] and len(node.phases("web")) > 2,
        within_s=4 + 2 * limits.START_S + limits.restart_after(10).high_s,
        what="Pending, then Running again",
    )
    expect_equal(node, node.phases("web"), ["Pending", "Running"] * 2, "phases")


@conformance(id="deadline-starts-nothing", rules=["LIFE-070.2"], needs=[API, FAULTS])
async def a_sync_that_finds_the_deadline_passed_starts_nothing(node: Node) -> None:
    """The deadline of a pod passes during a sync, and one of its containers has died meanwhile,
    which would start again at once. The next sync says Failed and does not start it."""
    short_lived = container("first", exits(1, after_s=2))
    node.runtime.on("CreateContainer", container="second").delays(7)
    plan = pod("web", short_lived, container("second"), activeDeadlineSeconds=5)
    await node.api.create_pod(plan)
    await node.run_until(
        lambda: node.api.phase("web") == "Failed",
        within_s=7 + limits.START_S + limits.STATUS_PASS_S,
        what="Failed",
    )
    await node.run_for(limits.STOP_S)
    status = (node.api.pod("web") or {})["status"]
    expect_equal(node, status.get("reason"), "DeadlineExceeded", "reason")
    expect_equal(node, node.count("CreateContainer", container="first"), 1, "creations of first")


@conformance(id="addresses-by-family", rules=["LIFE-176.1"], needs=[API, FAULTS], alone=True)
async def a_pod_shows_one_address_of_each_family(node: Node) -> None:
    """Of the addresses that the runtime tells of a sandbox the pod shows the first one of the
    node's own family, then the first one of the other family."""
    told = {4: ("192.0.2.7", "192.0.2.8"), 6: ("2001:db8::7", "2001:db8::8")}

    def four(answer: Any) -> None:
        network = answer.status.network
        del network.additional_ips[:]
        network.ip = others[0]
        for address in (own[0], others[1], own[1]):
            network.additional_ips.add(ip=address)

    await node.run_until(
        lambda: node.api.node_status("addresses"),
        within_s=limits.START_S + limits.NODE_STATUS_S,
        what="the addresses of the node",
    )
    addresses = node.api.node_status("addresses")
    first = next(each["address"] for each in addresses if each["type"] == "InternalIP")
    own, others = (told[6], told[4]) if ":" in first else (told[4], told[6])
    node.runtime.on("PodSandboxStatus").changes_answer(four)
    await node.api.create_pod(pod("web"))
    await api_running(node, "web")
    await node.run_for(limits.NOTICE_S)
    status = (node.api.pod("web") or {})["status"]
    shown = [each["ip"] for each in status.get("podIPs") or []]
    expect_equal(node, shown, [own[0], others[0]], "podIPs")
    expect_equal(node, status.get("podIP"), own[0], "podIP")
