"""The order of CRI calls of refkubelet on the fake equals recorded runs of the real kubelet."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from conformance.harness import golden
from conformance.harness.environment import Choice
from conformance.harness.manifests import (
    Container,
    ExecProbe,
    PodPlan,
    container,
    hook,
    pod,
    sidecar,
)
from conformance.harness.node import Node
from conformance.harness.results import Outcome
from conformance.harness.run import run_virtual_case
from conformance.harness.workload import exits, ignores_term, in_turn, runs
from conformance.registry import Case, Level

RECORDED = Path(__file__).parents[1] / "data" / "golden"
Script = Callable[[Node], Awaitable[None]]


def order(script: Script, **config: object) -> list[str]:
    """The normalised calls of a virtual run of `script`."""
    seen: list[list[str]] = []

    async def body(node: Node) -> None:
        await script(node)
        seen.append(golden.order_of(node.calls()))

    made = Case(
        id="golden", area="golden", title="", rules=(), level=Level.MUST, needs=frozenset(),
        body=body, node_config=config,
    )  # fmt: skip
    result = run_virtual_case(made, Choice())
    assert result.outcome is Outcome.PASSED, result.detail
    return seen[0]


def recorded(scenario: str) -> list[str]:
    return golden.recorded_order(RECORDED / scenario / "cri.jsonl")


def test_start_and_removal_equal_s01() -> None:
    async def script(node: Node) -> None:
        await node.apply_static(pod("one", grace_s=None))
        await node.run_for(70)
        await node.remove_static("one")
        await node.run_for(70)

    assert order(script) == recorded("s01")


@pytest.mark.parametrize(("scenario", "longest"), [("s02", None), ("s03", "5s")])
def test_a_crash_loop_equals_s02_and_s03(scenario: str, longest: str | None) -> None:
    wanted = recorded(scenario)
    restarts = sum(name.startswith("StartContainer") for name in wanted)

    async def script(node: Node) -> None:
        await node.apply_static(pod("crash", container("main", exits(3, after_s=1))))
        await node.run_until(lambda: node.count("StartContainer") == restarts, within_s=2000)
        await node.run_until(
            lambda: node.count("RemoveContainer") == restarts - 1, within_s=5, what="last removal"
        )

    config = {"crashLoopBackOff": {"maxContainerRestartPeriod": longest}} if longest else {}
    seen = order(script, **config)
    assert seen == wanted[: len(seen)]
    assert len(seen) >= len(wanted) - 4  # the recording ends with the removal of the pod


def test_hook_and_stubborn_container_equal_s08() -> None:
    async def script(node: Node) -> None:
        hooked = container("hook", hooks={"preStop": hook(takes_s=2)})
        await node.apply_static(
            pod("term", hooked, container("stubborn", ignores_term()), grace_s=6)
        )
        await node.wait_running("term", "hook", "stubborn")
        await node.run_for(5)
        await node.remove_static("term")
        await node.run_until(lambda: node.count("RemoveContainer") == 2, within_s=15)

    assert order(script) == recorded("s08")


def test_init_containers_equal_s06() -> None:
    async def script(node: Node) -> None:
        init = [container(name, exits(0, after_s=1)) for name in ("i1", "i2")]
        slow = runs(stop_takes_s=1.2)  # housekeeping comes between the removal and the deaths
        main = [container("a", slow), container("b", slow)]
        await node.apply_static(pod("ini", *main, init=init, grace_s=None))
        await node.run_for(9.5)
        await node.remove_static("ini")
        await node.run_until(lambda: node.count("RemoveContainer") == 4, within_s=15)

    assert order(script) == recorded("s06")


def test_sidecars_equal_s07() -> None:
    async def script(node: Node) -> None:
        slow, probes = runs(stop_takes_s=0.5), {"startup": ExecProbe(failure_threshold=3)}
        sides: list[Container] = [sidecar(n, slow, probes=probes) for n in ("side1", "side2")]
        main = container("main", runs(stop_takes_s=1))
        plan: PodPlan = pod(
            "sc", main, init=[container("pre", exits(0, after_s=1)), *sides], grace_s=20
        )
        await node.apply_static(plan)
        await node.run_for(10)
        await node.kill_container("side1", pod="sc")
        await node.run_for(5)
        await node.remove_static("sc")
        await node.run_until(lambda: node.count("RemoveContainer") == 5, within_s=15)

    assert order(script) == recorded("s07")


def test_liveness_restarts_equal_s10() -> None:
    async def script(node: Node) -> None:
        probes = {"liveness": ExecProbe(until_s=6, failure_threshold=2)}
        live = pod("live", container("main", probes=probes), container("calm"), grace_s=5)
        await node.apply_static(live)
        await node.run_until(
            lambda: node.count("StartContainer", container="main") == 3, within_s=40
        )

    def without_probes(names: list[str]) -> list[str]:
        return [name for name in names if not name.startswith("ExecSync")]

    seen, wanted = without_probes(order(script)), without_probes(recorded("s10"))
    assert seen == wanted[: len(seen)]


def test_crashes_then_success_equal_s04() -> None:
    async def script(node: Node) -> None:
        work = in_turn(exits(1, after_s=1), exits(1, after_s=1), exits(0, after_s=1))
        plan = pod("of", container("main", work), restartPolicy="OnFailure")
        await node.apply_static(plan)
        await node.run_until(lambda: node.count("StopPodSandbox") == 1, within_s=60)

    seen, wanted = order(script), recorded("s04")
    assert seen == wanted[: len(seen)]
    assert seen[-1] == "StopPodSandbox/0"
