"""When lastTransitionTime of the Node's conditions moves: with their status alone."""

from typing import Any, Final

from kubelet_conformance.cases.status.node_ready import OFTEN, STATUS_S, becomes, ready
from kubelet_conformance.cases.status.node_repaired import REGISTER_S, UPDATE_S, calm, change
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.node import Node
from kubelet_conformance.registry import Feature, conformance

API = Feature.API
OLD: Final = "2020-02-02T02:02:02Z"
"""A time before everything that a kubelet does."""
PRESSURES: Final = ("MemoryPressure", "DiskPressure", "PIDPressure")
KINDS: Final = (*PRESSURES, "Ready")


def times(node: Node, *kinds: str) -> dict[str, Any]:
    """The lastTransitionTime of each of these conditions."""
    return {kind: node.api.node_condition(kind).get("lastTransitionTime") for kind in kinds}


async def age(node: Node, now: dict[str, Any], **fields: str) -> None:
    """Write the conditions of that status with an old time and these fields."""
    old = {**fields, "lastTransitionTime": OLD}
    await change(node, conditions=[{**c, **old} for c in now["conditions"]])


async def put_right(node: Node) -> None:
    """Run until the Node is Ready and under no pressure, in the kubelet's words."""

    def words() -> list[tuple[Any, Any]]:
        conditions = [node.api.node_condition(kind) for kind in KINDS]
        return [(c.get("status"), c.get("reason")) for c in conditions]

    await node.run_until(
        lambda: (
            [status for status, _ in words()] == ["False", "False", "False", "True"]
            and words()[-1][1] == "KubeletReady"
        ),
        within_s=UPDATE_S + 1,
        what="the conditions are put right",
    )


@conformance(
    id="node-times-of-the-status",
    rules=["NODE-021.1", "NODE-015.3", "EVIC-063.2"],
    needs=[API],
    alone=True,
)
async def only_another_status_moves_the_time_of_a_condition(node: Node) -> None:
    """Where somebody has changed reason and message of the Node's conditions, their times stay when
    that is put right, and with the updates that follow; where he has changed the status, the time
    of each is new."""
    settled = await calm(node)
    await age(node, settled, reason="Other", message="other")
    await put_right(node)
    expect_equal(node, times(node, *KINDS), dict.fromkeys(KINDS, OLD), "times after other words")
    await change(node, capacity={"pods": "7"})
    await node.run_until(
        lambda: node.api.capacity("pods") == settled["capacity"]["pods"],
        within_s=UPDATE_S + 1,
        what="another update",
    )
    expect_equal(node, times(node, *KINDS), dict.fromkeys(KINDS, OLD), "times after an update")
    await age(node, settled, status="Unknown")
    await put_right(node)
    for kind, when in times(node, *KINDS).items():
        expect(node, when > OLD, f"a new lastTransitionTime of {kind}", when)


@conformance(id="node-times-over-restart", rules=["NODE-021.1"], needs=[API, Feature.RESTART])
async def a_kubelet_that_starts_keeps_the_times_of_the_pressure_conditions(node: Node) -> None:
    """A kubelet that finds its Node with the pressure conditions as they shall be keeps their
    times, although it tells their events."""
    settled = await calm(node)
    await node.kubelet.stop()
    await age(node, settled)
    await node.kubelet.start()
    await node.run_for(REGISTER_S + UPDATE_S)
    expect_equal(
        node, times(node, *PRESSURES), dict.fromkeys(PRESSURES, OLD), "times of the conditions"
    )


def broken(text: str) -> Any:
    """Changes an answer of Status: the runtime is not ready, for that reason."""

    def change_answer(answer: Any) -> None:
        for condition in answer.status.conditions:
            if condition.type == "RuntimeReady":
                condition.status, condition.reason, condition.message = False, text, text

    return change_answer


@conformance(
    id="node-not-ready-for-another-reason",
    rules=["NODE-021.1", "NODE-023.4"],
    needs=[API, Feature.FAULTS],
    node_config=OFTEN,
)
async def another_error_is_no_transition(node: Node) -> None:
    """While the Node stays not Ready, another error changes the message of Ready and not its
    lastTransitionTime, and no event is told; it moves again when the Node is Ready."""
    await becomes(node, "True", limits.START_S + 3 * UPDATE_S)
    with node.runtime.on("Status").changes_answer(broken("first")):
        await becomes(node, "False", STATUS_S + 2 * 1.04 + 1)
        since = ready(node)["lastTransitionTime"]
        await node.run_for(limits.EVENTS_S + 1)
        events_before = node.event_count("NodeNotReady")
    with node.runtime.on("Status").changes_answer(broken("second")):
        await node.run_until(
            lambda: "second" in ready(node)["message"],
            within_s=STATUS_S + 2 * 1.04 + 1,
            what="the second error",
        )
        await node.run_for(limits.EVENTS_S + 1)
        expect_equal(node, ready(node)["lastTransitionTime"], since, "lastTransitionTime")
        expect_equal(node, node.event_count("NodeNotReady"), events_before, "events NodeNotReady")
    await becomes(node, "True", STATUS_S + 2 * 1.04 + 1)
    moved = ready(node)["lastTransitionTime"]
    expect(node, moved > since, f"another lastTransitionTime than {since}", moved)
