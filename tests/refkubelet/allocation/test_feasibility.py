"""Which resizes can never be done: Infeasible (CG-062)."""

from __future__ import annotations

import pytest
from pods import container, make_pod

from kubeobjects.structs import replace
from refkubelet.admission.admit_handler import Operation, PodAdmitAttributes
from refkubelet.allocation import messages
from refkubelet.allocation.feasibility import ResizeLimits, feasible_resizes, infeasible
from refkubelet.config.schema.kubelet_config import KubeletConfiguration, MemorySwap
from refkubelet.model.objects import Pod

GUARANTEED = make_pod(container(cpu="1/1", memory="1Gi/1Gi"))
MORE_CPU = make_pod(container(cpu="2/2", memory="1Gi/1Gi"))
MORE_MEMORY = make_pod(container(cpu="1/1", memory="2Gi/2Gi"))
CPU_TEXT = 'Resize is infeasible for Guaranteed Pods alongside CPU Manager policy "static"'
MEMORY_TEXT = 'Resize is infeasible for Guaranteed Pods alongside Memory Manager policy "Static"'
SURE = {"cpu": "1", "memory": "4Gi/4Gi"}
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
    now = make_pod(container(cpu="1/2", memory="1Gi/2Gi"))
    wanted = make_pod(container(cpu="2/3", memory="2Gi/3Gi"))
    assert infeasible(wanted, now, EXCLUSIVE) is None


@pytest.mark.parametrize(
    ("old", "new", "refused"),
    [
        ({"memory": "1Gi/4Gi"}, {"memory": "2Gi/4Gi"}, True),
        ({"memory": "1Gi/4Gi"}, {"cpu": "1", "memory": "1Gi/4Gi"}, False),
        (SURE, {"cpu": "1", "memory": "5Gi/5Gi"}, False),  # no share of the swap
        (SURE, {"cpu": "1", "memory": "5Gi/6Gi"}, True),
        ({"cpu": "1", "memory": "4Gi/6Gi"}, {"cpu": "1", "memory": "6Gi/6Gi"}, True),
        ({"cpu": "1"}, {"cpu": "2"}, False),
    ],
)
def test_memory_of_containers_with_swap_is_not_resized_CG_062(
    old: dict[str, str], new: dict[str, str], refused: bool
) -> None:
    swap = ResizeLimits(swap=True)
    text = "In-place resize of containers with swap is not supported."
    wanted, now = (make_pod(container(**amounts)) for amounts in (new, old))
    assert infeasible(wanted, now, swap) == (text if refused else None)
    assert infeasible(wanted, now, ResizeLimits()) is None
    policy = [{"resourceName": "memory", "restartPolicy": "RestartContainer"}]
    restarts = [make_pod(container(**c, resizePolicy=policy)) for c in (new, old)]
    assert infeasible(*restarts, swap) is None


def test_critical_pods_do_not_swap_CG_062() -> None:
    old, new = container(memory="1Gi/4Gi"), container(memory="2Gi/4Gi")
    pods = [make_pod(c, priority=2_000_000_000) for c in (new, old)]
    assert infeasible(*pods, ResizeLimits(swap=True)) is None


def test_only_resizes_can_be_infeasible_CG_062() -> None:
    handler = feasible_resizes(EXCLUSIVE, lambda pod: GUARANTEED)
    assert handler(PodAdmitAttributes(MORE_CPU)) is None
    refusal = handler(PodAdmitAttributes(MORE_CPU, (), Operation.RESIZE))
    assert refusal is not None
    assert (refusal.reason, refusal.message) == ("Infeasible", CPU_TEXT)


def test_statuses_class_counts_for_refusals_CG_062() -> None:
    status = make_pod(status={"qosClass": "Burstable"}).status
    burstable = replace(MORE_CPU, status=status)
    assert infeasible(burstable, GUARANTEED, EXCLUSIVE) is None


def test_the_handler_compares_with_what_is_allocated_CG_062() -> None:
    asked: list[Pod] = []

    def allocated(pod: Pod) -> Pod:
        asked.append(pod)
        return pod

    handler = feasible_resizes(EXCLUSIVE, allocated)
    assert handler(PodAdmitAttributes(MORE_CPU, (), Operation.RESIZE)) is None
    assert asked == [MORE_CPU]


@pytest.mark.parametrize(
    ("behavior", "version", "swap"),
    [("LimitedSwap", 2, True), ("LimitedSwap", 1, False), ("NoSwap", 2, False), ("", 2, False)],
)
def test_the_limits_of_a_configuration_CG_062(behavior: str, version: int, swap: bool) -> None:
    config = KubeletConfiguration(
        cpu_manager_policy="static",
        memory_manager_policy="Static",
        memory_swap=MemorySwap(swap_behavior=behavior),
    )
    limits = ResizeLimits.of(config, version)
    assert limits == ResizeLimits("static", "Static", swap)
    assert (limits.policy("cpu"), limits.policy("memory")) == ("static", "Static")


def test_the_messages_of_resizes_CG_063() -> None:
    amounts = {"limits": {"memory": "1Gi", "cpu": "2"}, "requests": {"cpu": "1000m"}}
    claims = {"claims": [{"name": "a"}, {"name": "b", "request": "r"}]}
    pod = make_pod(
        {"name": "c", "resources": amounts}, init=[{"name": "i", "resources": claims}, "j"]
    )
    both = (
        '"initContainers":[{"name":"i","resources":{"claims":[{"name":"a"},'
        '{"name":"b","request":"r"}]}},{"name":"j","resources":{}}],'
        '"containers":[{"name":"c","resources":{"limits":{"cpu":"2","memory":"1Gi"},'
        '"requests":{"cpu":"1"}}}],"generation":3'
    )
    assert messages.started(pod, 3) == f"Pod resize started: {{{both}}}"
    assert messages.completed(pod, 3) == f"Pod resize completed: {{{both}}}"
    assert messages.failed(pod, 3, "no") == f'Pod resize error: {{{both},"error":"no"}}'
    assert messages.pending(pod, 3, "OutOfcpu", "no") == (
        f'Pod resize OutOfcpu: {{{both},"error":"no"}}'
    )
