"""Whether a resize is under way, and the amounts that are compared and sent."""

from __future__ import annotations

from typing import Any

import pytest
from lightkube.models.core_v1 import ResourceRequirements
from pods import container, make_pod, sidecar
from runtime_doubles import record, status

from refkubelet.kuberuntime.decisions.resize_actions import (
    ComputeAmounts,
    ContainerUpdate,
    amounts_of,
    resize_in_progress,
    resizes_pod_level,
    with_resources,
)

MIB = 1 << 20
ONE = ComputeAmounts(cpu_request_millicores=1000)
TWO = ComputeAmounts(cpu_request_millicores=2000)
STATIC = {"annotations": {"kubernetes.io/config.source": "file"}}


def pod_of(**fields: Any) -> Any:
    return make_pod(
        container("a", cpu="1"),
        container("b", cpu="1"),
        init=[container("i", cpu="1"), sidecar("s", cpu="1")],
        **fields,
    )


@pytest.mark.parametrize(
    ("running", "actuated", "wanted"),
    [
        ("sab", {}, False),
        ("sab", {"s": ONE, "a": ONE, "b": ONE}, False),
        ("sab", {"s": ONE, "a": ONE, "b": TWO}, True),
        ("sab", {"s": TWO}, True),
        ("isab", {"i": TWO}, False),
        ("b", {"a": TWO, "b": TWO}, True),
        ("sa", {"b": TWO}, False),
        ("", {"s": TWO, "a": TWO, "b": TWO}, False),
    ],
)
def test_a_running_container_with_other_resources_is_being_resized_CG_063(
    running: str, actuated: dict[str, ComputeAmounts], wanted: bool
) -> None:
    pod = pod_of()
    records = [record(pod, name, "running" if name in running else "exited") for name in "isa"] + (
        [record(pod, "b")] if "b" in running else []
    )
    assert resize_in_progress(pod, status(*records), actuated, None) is wanted


def test_a_static_pod_is_resized_as_any_other_CG_064() -> None:
    pod = pod_of(meta=STATIC)
    found = status(record(pod, "a"))
    assert resize_in_progress(pod, found, {"a": TWO}, ResourceRequirements())
    assert not resize_in_progress(pod, found, {"a": ONE}, ResourceRequirements())


@pytest.mark.parametrize(
    ("known", "wanted"),
    [
        (ResourceRequirements(limits={"cpu": "2"}), False),
        (ResourceRequirements(limits={"cpu": "2000m"}), False),
        (ResourceRequirements(limits={"cpu": "3"}), True),
        (ResourceRequirements(), True),
    ],
)
def test_the_pod_s_own_resources_count_as_well_CG_063(
    known: ResourceRequirements, wanted: bool
) -> None:
    pod = pod_of(resources={"limits": {"cpu": "2"}})
    assert resizes_pod_level(pod, known) is wanted
    assert resize_in_progress(pod, status(), {}, known) is wanted
    static = pod_of(resources={"limits": {"cpu": "2"}}, meta=STATIC)
    assert resizes_pod_level(static, known) is wanted


def test_unknown_resources_of_the_pod_count_as_none_and_are_no_progress_CG_064() -> None:
    """What a kubelet without a checkpoint finds is compared with the pod's cgroup, and nobody is
    told of a resize."""
    pod = pod_of(resources={"limits": {"cpu": "2"}})
    assert resizes_pod_level(pod, None)
    assert not resizes_pod_level(pod_of(), None)
    assert not resize_in_progress(pod, status(), {}, None)


@pytest.mark.parametrize(
    ("own", "pod_level", "wanted"),
    [
        (None, None, ComputeAmounts()),
        (
            {"requests": {"cpu": "1", "memory": "2Mi"}, "limits": {"cpu": "3", "memory": "4Mi"}},
            {"limits": {"cpu": "9", "memory": "9Mi"}},
            ComputeAmounts(1000, 3000, 2 * MIB, 4 * MIB),
        ),
        (
            {"requests": {"cpu": "1", "memory": "2Mi"}},
            {"requests": {"cpu": "8", "memory": "8Mi"}, "limits": {"cpu": "9", "memory": "9Mi"}},
            ComputeAmounts(1000, 9000, 2 * MIB, 9 * MIB),
        ),
        ({"limits": {"cpu": "100u", "memory": "1500m"}}, None, ComputeAmounts(0, 1, 0, 2)),
    ],
)
def test_amounts_are_rounded_up_and_limits_are_the_pod_s_CG_064(
    own: Any, pod_level: Any, wanted: ComputeAmounts
) -> None:
    def read(value: Any) -> ResourceRequirements | None:
        return None if value is None else ResourceRequirements(**value)

    assert amounts_of(read(own), read(pod_level)) == wanted


@pytest.mark.parametrize("resource", ["cpu", "memory"])
@pytest.mark.parametrize(
    ("before", "after", "decreases"),
    [
        ((2, 4), (2, 4), False),
        ((2, 4), (1, 4), True),
        ((2, 4), (3, 4), False),
        ((2, 4), (3, 3), True),
        ((2, 4), (1, 5), False),
    ],
)
def test_a_lower_limit_is_a_decrease_and_else_a_lower_request_CG_065(
    resource: str, before: tuple[int, int], after: tuple[int, int], decreases: bool
) -> None:
    def amounts(request: int, limit: int) -> ComputeAmounts:
        if resource == "cpu":
            return ComputeAmounts(request, limit, memory_request_bytes=9 - request)
        return ComputeAmounts(9 - request, 0, request, limit)

    main = pod_of().spec.containers[0]
    update = ContainerUpdate("c-1", main, resource, amounts(*before), amounts(*after))
    assert update.is_decrease is decreases


def test_a_container_with_the_checkpoint_s_amounts_CG_065() -> None:
    amounts = ComputeAmounts(1, 2500, 3 * MIB, 4)
    claims = [{"name": "gpu"}]
    (main, bare) = make_pod(container(resources={"claims": claims}), "bare").spec.containers
    made = with_resources(main, amounts).resources
    assert made is not None
    assert made.to_dict() == {
        "claims": claims,
        "requests": {"cpu": "1m", "memory": "3Mi"},
        "limits": {"cpu": "2500m", "memory": "4"},
    }
    made = with_resources(bare, ComputeAmounts()).resources
    assert made is not None
    assert made.to_dict() == {
        "requests": {"cpu": "0", "memory": "0"},
        "limits": {"cpu": "0", "memory": "0"},
    }
