"""Which resizes can never be done: Infeasible (CG-062)."""

from __future__ import annotations

import pytest
from allocation_pods import asking, pod_of
from msgspec.structs import replace

from refkubelet.admission.admit_handler import Operation, PodAdmitAttributes
from refkubelet.allocation.feasibility import ResizeLimits, feasible_resizes, infeasible
from refkubelet.model.objects import Pod

GUARANTEED = pod_of(asking("a", "1/1", "1Gi/1Gi"))
MORE_CPU = pod_of(asking("a", "2/2", "1Gi/1Gi"))
MORE_MEMORY = pod_of(asking("a", "1/1", "2Gi/2Gi"))
CPU_TEXT = 'Resize is infeasible for Guaranteed Pods alongside CPU Manager policy "static"'
MEMORY_TEXT = 'Resize is infeasible for Guaranteed Pods alongside Memory Manager policy "Static"'
EXCLUSIVE = ResizeLimits("static", "Static")


@pytest.mark.parametrize(
    ("wanted", "limits", "message"),
    [
        (MORE_CPU, ResizeLimits(), None),
        (MORE_CPU, EXCLUSIVE, CPU_TEXT),
        (MORE_MEMORY, EXCLUSIVE, MEMORY_TEXT),
        (MORE_MEMORY, ResizeLimits(cpu_manager_policy="static"), None),
        (MORE_CPU, ResizeLimits(memory_manager_policy="Static"), None),
    ],
)
def test_exclusive_resources_are_not_resized_CG_062(
    wanted: Pod, limits: ResizeLimits, message: str | None
) -> None:
    assert infeasible(wanted, GUARANTEED, limits) == message


def test_other_classes_are_resized_under_any_policy_CG_062() -> None:
    now, wanted = pod_of(asking("a", "1/2", "1Gi/2Gi")), pod_of(asking("a", "2/3", "2Gi/3Gi"))
    assert infeasible(wanted, now, EXCLUSIVE) is None


@pytest.mark.parametrize(
    ("old", "new", "refused"),
    [
        (asking("a", "", "1Gi/4Gi"), asking("a", "", "2Gi/4Gi"), True),
        (asking("a", "", "1Gi/4Gi"), asking("a", "1", "1Gi/4Gi"), False),
        (asking("a", "1", "4Gi/4Gi"), asking("a", "1", "5Gi/5Gi"), False),  # no share of the swap
        (asking("a", "1", "4Gi/4Gi"), asking("a", "1", "5Gi/6Gi"), True),
        (asking("a", "1", "4Gi/6Gi"), asking("a", "1", "6Gi/6Gi"), True),
        (asking("a", "1"), asking("a", "2"), False),
    ],
)
def test_memory_of_containers_with_swap_is_not_resized_CG_062(
    old: dict,
    new: dict,
    refused: bool,
) -> None:
    swap = ResizeLimits(swap=True)
    text = "In-place resize of containers with swap is not supported."
    assert infeasible(pod_of(new), pod_of(old), swap) == (text if refused else None)
    assert infeasible(pod_of(new), pod_of(old), ResizeLimits()) is None
    policy = [{"resourceName": "memory", "restartPolicy": "RestartContainer"}]
    restarts = [pod_of({**c, "resizePolicy": policy}) for c in (new, old)]
    assert infeasible(*restarts, swap) is None


def test_critical_pods_do_not_swap_CG_062() -> None:
    old, new = asking("a", "", "1Gi/4Gi"), asking("a", "", "2Gi/4Gi")
    pods = [pod_of(c, priority=2_000_000_000) for c in (new, old)]
    assert infeasible(*pods, ResizeLimits(swap=True)) is None


def test_only_resizes_can_be_infeasible_CG_062() -> None:
    handler = feasible_resizes(EXCLUSIVE, lambda pod: GUARANTEED)
    assert handler(PodAdmitAttributes(MORE_CPU)) is None
    refusal = handler(PodAdmitAttributes(MORE_CPU, (), Operation.RESIZE))
    assert refusal is not None
    assert (refusal.reason, refusal.message) == ("Infeasible", CPU_TEXT)


def test_statuses_class_counts_for_refusals_CG_062() -> None:
    burstable = replace(
        MORE_CPU, status=pod_of(asking("a"), status={"qosClass": "Burstable"}).status
    )
    assert infeasible(burstable, GUARANTEED, EXCLUSIVE) is None


def test_the_handler_compares_with_what_is_allocated_CG_062() -> None:
    asked: list[Pod] = []

    def allocated(pod: Pod) -> Pod:
        asked.append(pod)
        return pod

    handler = feasible_resizes(EXCLUSIVE, allocated)
    assert handler(PodAdmitAttributes(MORE_CPU, (), Operation.RESIZE)) is None
    assert asked == [MORE_CPU]
