"""Cases that share a kubelet: here refkubelet in virtual time."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable

import pytest

from kubelet_conformance.features import Feature
from kubelet_conformance.harness.expect import expect
from kubelet_conformance.harness.manifests import container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.runs import warped
from kubelet_conformance.harness.runs.batches import shares
from kubelet_conformance.harness.runs.case_run import Outcome, Result, verdict
from kubelet_conformance.harness.runs.choice import Choice
from kubelet_conformance.harness.runs.virtual import run_virtual_case
from kubelet_conformance.harness.runs.virtual_sharing import run_virtual_group
from kubelet_conformance.registry import Case, Level, load_cases
from kubeobjects.structs import replace

Body = Callable[[Node], Awaitable[None]]


def a_case(name: str, body: Body, *needs: Feature) -> Case:
    return Case(
        id=name,
        area="lifecycle",
        title="",
        rules=("LIFE-001",),
        level=Level.MUST,
        needs=frozenset(needs),
        body=body,
    )


async def runs_a_pod(node: Node) -> None:
    await node.apply_static(pod("web", container("main")))
    await node.wait_running("web")
    assert node.count("RunPodSandbox") == 1
    (call,) = node.calls("RunPodSandbox")
    assert call.request.config.metadata.namespace == call.namespace == "default"
    assert "t-0" not in json.dumps(call.to_dict())
    assert (node.pod("web") or {})["metadata"]["namespace"] == "default"


async def fails(node: Node) -> None:
    await runs_a_pod(node)
    expect(node, False, "nothing that can be")


async def stops_the_kubelet(node: Node) -> None:
    try:
        await node.kubelet.stop()
    except Exception:
        return  # the reason is kept


def by_name(results: list[Result]) -> dict[str, Result]:
    return {result.case.id: result for result in results}


def test_tenants_with_pods_of_one_name_do_not_see_each_other() -> None:
    results = run_virtual_group([a_case(f"case-{number}", runs_a_pod) for number in range(12)])
    assert [(r.outcome, r.detail, r.warning) for r in results] == [(Outcome.PASSED, "", "")] * 12
    assert all(result.shared and not result.must_be_alone for result in results)


def test_a_kubelet_with_which_a_case_has_failed_gets_no_further_ones() -> None:
    cases = [a_case("bad", fails), *(a_case(f"good-{number}", runs_a_pod) for number in range(12))]
    found = by_name(run_virtual_group(cases))
    assert {name: r.outcome.value for name, r in found.items()} == {
        "bad": "failed",
        **{f"good-{number}": "passed" for number in range(12)},
    }


def test_what_a_case_may_not_do_is_known_whatever_it_catches() -> None:
    (result,) = run_virtual_group([a_case("stops", stops_the_kubelet)])
    assert result.outcome is Outcome.PASSED
    assert result.must_be_alone == ("the end of the kubelet",)


def test_cases_of_several_areas_pass_beside_others_as_they_do_alone() -> None:
    areas = ("pleg", "static", "status")
    quick = [c for c in load_cases() if shares(c) and Feature.VIRTUAL_TIME not in c.needs]
    cases = [c for area in areas for c in [c for c in quick if c.area == area][:4]]
    for with_api in (True, False):
        group = [c for c in cases if (Feature.API in c.needs) is with_api and not c.node_config]
        found = by_name(run_virtual_group(group))
        assert {n: (r.outcome, r.must_be_alone) for n, r in found.items()} == {
            case.id: (run_virtual_case(case, Choice()).outcome, ()) for case in group
        }
        assert len(group) >= 2


def a_result(outcome: Outcome, *must_be_alone: str) -> Result:
    case = a_case("case", runs_a_pod)
    return Result(case, outcome, "expected: a", shared=True, must_be_alone=must_be_alone)


@pytest.mark.parametrize("outcome", [Outcome.PASSED, Outcome.FAILED])
def test_the_verdict_alone_counts(outcome: Outcome) -> None:
    alone = Result(a_case("case", runs_a_pod), outcome)
    assert verdict(a_result(Outcome.FAILED), alone).outcome is outcome


def test_what_depends_on_sharing_is_told() -> None:
    alone = Result(a_case("case", runs_a_pod), Outcome.PASSED)
    assert "depends on sharing" in verdict(a_result(Outcome.FAILED), alone).warning
    assert "alone=True" in verdict(a_result(Outcome.ERROR, "the Node"), alone).warning
    assert verdict(a_result(Outcome.PASSED, "the Node"), alone).warning
    failed = replace(alone, outcome=Outcome.FAILED)
    assert verdict(a_result(Outcome.FAILED), failed).warning == ""


def test_a_group_is_run_beside_each_other_and_again_alone_where_it_does_not_pass(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names = ["good", "bad", "needy"]
    cases = {name: a_case(name, runs_a_pod) for name in names}

    def beside(group: warped.Group, ended: Callable[[Result], None], _: bool) -> None:
        for case, _choice in reversed(group):
            outcome = Outcome.FAILED if case.id == "bad" else Outcome.PASSED
            ended(Result(case, outcome, shared=True, must_be_alone=("x",) * (case.id == "needy")))

    asked: list[str] = []

    def alone(case: Case, *_: object) -> Result:
        asked.append(case.id)
        return Result(case, Outcome.PASSED)

    monkeypatch.setattr(warped, "run_warped_group", beside)
    monkeypatch.setattr(warped, "run_warped_case", alone)
    found: dict[int, Result] = {}
    group = [(cases[name], Choice()) for name in names]
    warped._run_group(False, group, found.__setitem__)
    assert asked == ["bad", "needy"]
    assert [(found[n].case.id, found[n].shared) for n in range(3)] == [
        *(("good", True), ("bad", False), ("needy", False))
    ]
