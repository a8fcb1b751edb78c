"""What the eviction manager remembers over a look at the node that failed."""

from kubelet_conformance.cases.eviction.common import (
    CYCLE_S,
    MI,
    evicted_for,
    has_condition,
    hungry,
    next_look_s,
)
from kubelet_conformance.cases.eviction.cycle import (
    API,
    FAULTS,
    HARD,
    LOW,
    NODE,
    VIRTUAL,
    soft,
)
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.registry import conformance

PRESSURE_S = 60


@conformance(
    id="condition-over-failed-look", rules=["EVIC-050.3", "EVIC-060.2"],
    needs=[API, NODE, VIRTUAL, FAULTS],
    node_config={**HARD, "evictionPressureTransitionPeriod": f"{PRESSURE_S}s"},
)  # fmt: skip
async def a_condition_outlives_a_failed_look(node: Node) -> None:
    """While the node cannot be looked at, its pressure conditions stay as they were: True, with
    their times, and pods are refused for them; afterwards the transition period goes on and is not
    begun again."""
    node.machine.leave_memory(100 * MI)
    await has_condition(node, "MemoryPressure")
    since = node.api.node_condition("MemoryPressure")["lastTransitionTime"]
    node.machine.leave_memory(4000 * MI)
    recovered_s = await next_look_s(node)
    with node.runtime.on("ImageFsInfo").fails("UNAVAILABLE", "not now"):
        await node.run_for(25)
        condition = node.api.node_condition("MemoryPressure")
        fields = (condition["status"], condition["lastTransitionTime"])
        expect_equal(node, fields, ("True", since), "MemoryPressure while nobody can look")
        await node.api.create_pod(pod("web"))
        await node.run_until(
            lambda: node.api.phase("web") == "Failed",
            within_s=limits.START_S + limits.STATUS_PASS_S,
            what="web is refused",
        )
        for kind in ("DiskPressure", "PIDPressure"):
            expect_equal(node, node.api.node_condition(kind)["status"], "False", kind)
    await node.run_until(
        lambda: node.api.node_condition("MemoryPressure")["status"] == "False",
        within_s=PRESSURE_S + CYCLE_S,
        what="no pressure any more",
    )
    ended_s = node.now_s - recovered_s
    most = PRESSURE_S + limits.NODE_STATUS_S + CYCLE_S
    expect(node, ended_s < most, f"the condition ends within {most} s of the recovery", ended_s)


@conformance(
    id="grace-over-failed-look", rules=["EVIC-050.3", "EVIC-053.3"],
    needs=[API, NODE, VIRTUAL, FAULTS], node_config=soft("40s"),
)  # fmt: skip
async def a_grace_period_goes_on_over_a_failed_look(node: Node) -> None:
    """The grace period of a soft threshold that was met before a look failed goes on meanwhile."""
    await node.api.run_pods(hungry("web", memory_mi=50))
    node.machine.leave_memory(100 * MI)
    seen_s = await next_look_s(node)
    with node.runtime.on("ImageFsInfo").fails("UNAVAILABLE", "not now"):
        await node.run_for(15)
    await evicted_for(node, "web", LOW, within_s=40 + CYCLE_S)
    waited_s = node.times_s("StopContainer", pod="web")[0] - seen_s
    expect(node, 40 <= waited_s <= 40 + CYCLE_S, "the eviction 40 s later", f"{waited_s:.2f} s")
